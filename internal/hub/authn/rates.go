package authn

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/memsvc/memsvc/internal/memory"
)

// maxRates bounds the credentials whose rate is remembered.
const maxRates = 10_000

// rates keeps a token bucket a credential.
type rates struct {
	limit rate.Limit
	burst int

	mu      sync.Mutex // guards what follows
	buckets map[string]*rate.Limiter
}

func newRates(perSecond float64, burst int) *rates {
	if perSecond < 0 {
		return &rates{limit: rate.Inf}
	}
	return &rates{limit: rate.Limit(perSecond), burst: max(burst, 1), buckets: map[string]*rate.Limiter{}}
}

func (r *rates) allow(id string, calls int, now time.Time) error {
	if r.limit == rate.Inf {
		return nil
	}
	r.mu.Lock()
	b, ok := r.buckets[id]
	if !ok {
		if len(r.buckets) >= maxRates {
			r.dropFullLocked(now)
		}
		b = rate.NewLimiter(r.limit, r.burst)
		r.buckets[id] = b
	}
	r.mu.Unlock()
	res := b.ReserveN(now, min(calls, r.burst))
	wait := res.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	res.CancelAt(now)
	return &memory.Error{
		Reason: memory.ReasonRateLimited, RetryAfter: wait,
		Message: "too many calls with this token; slow down",
	}
}

// dropFullLocked forgets the buckets that are full again, which changes nothing for
// their owners; if none is, all start anew.
func (r *rates) dropFullLocked(now time.Time) {
	for id, b := range r.buckets {
		if b.TokensAt(now) >= float64(r.burst) {
			delete(r.buckets, id)
		}
	}
	if len(r.buckets) >= maxRates {
		clear(r.buckets)
	}
}
