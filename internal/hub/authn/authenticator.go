package authn

import (
	"context"
	"crypto/subtle"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// Identity is who a credential stands for, as the directory of tokens keeps it.
type Identity struct {
	ID      string
	Name    string
	Hash    string
	Team    memory.Team    // "" reaches the whole hub
	Project memory.Project // "" reaches the whole team
	Role    string
	Expire  time.Time // zero = never
	Revoked bool
}

// Directory finds tokens by their hash. An unknown one is an ErrNotFound.
type Directory interface {
	TokenByHash(ctx context.Context, hash string) (Identity, error)
}

// cacheFor is how long an answer of the directory is believed: how late another
// replica may notice a revocation.
const cacheFor = 5 * time.Second

// maxCached bounds the cache of identities.
const maxCached = 10_000

// Options configures an Authenticator. The zero value of each field is its default.
type Options struct {
	Now func() time.Time // nil: time.Now
	// RecheckEvery is how often the credential of an open stream is looked at again;
	// 0 is 3 s. With the cache it must stay below 10 s (SPEC 4.5).
	RecheckEvery time.Duration
	// RatePerSecond and Burst bound the calls of one credential; 0 is 500 and 1,000,
	// a negative rate is no bound.
	RatePerSecond float64
	Burst         int
}

// Authenticator checks bearer tokens. It is safe for concurrent use.
type Authenticator struct {
	dir   Directory
	opts  Options
	rates *rates

	mu    sync.Mutex // guards what follows
	cache map[string]cached
	holds map[string]*hold // credentials of open streams by token id
}

type cached struct {
	id    Identity
	err   error // ErrUnauthenticated for an unknown token
	until time.Time
}

// New returns an authenticator over a directory of tokens.
func New(dir Directory, opts Options) *Authenticator {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.RecheckEvery <= 0 {
		opts.RecheckEvery = 3 * time.Second
	}
	if opts.RatePerSecond == 0 {
		opts.RatePerSecond, opts.Burst = 500, 1000
	}
	return &Authenticator{
		dir: dir, opts: opts, rates: newRates(opts.RatePerSecond, opts.Burst),
		cache: map[string]cached{}, holds: map[string]*hold{},
	}
}

// unauthenticated is the one answer to every credential that does not hold: unknown,
// malformed, revoked and expired tokens are not told apart.
func unauthenticated() error {
	return &memory.Error{
		Reason:  memory.ReasonUnauthenticated,
		Message: "no valid credential; send \"authorization: Bearer msv_…\" with a token that is neither expired nor revoked",
	}
}

// Authenticate returns who the value of an authorization header stands for. The
// error is an ErrUnauthenticated, or the directory's trouble.
func (a *Authenticator) Authenticate(ctx context.Context, header string) (Identity, error) {
	scheme, text, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "bearer") || !WellFormed(text) {
		return Identity{}, unauthenticated()
	}
	return a.byHash(ctx, Hash(text))
}

func (a *Authenticator) byHash(ctx context.Context, hash string) (Identity, error) {
	now := a.opts.Now()
	a.mu.Lock()
	c, ok := a.cache[hash]
	a.mu.Unlock()
	if !ok || !now.Before(c.until) {
		id, err := a.dir.TokenByHash(ctx, hash)
		switch {
		case errors.Is(err, memory.ErrNotFound):
			err = unauthenticated()
		case err != nil:
			return Identity{}, err
		case subtle.ConstantTimeCompare([]byte(id.Hash), []byte(hash)) != 1:
			err = unauthenticated()
		}
		c = cached{id, err, now.Add(cacheFor)}
		a.remember(hash, c)
	}
	if c.err != nil {
		return Identity{}, c.err
	}
	if c.id.Revoked || (!c.id.Expire.IsZero() && !now.Before(c.id.Expire)) {
		return Identity{}, unauthenticated()
	}
	return c.id, nil
}

func (a *Authenticator) remember(hash string, c cached) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.cache) >= maxCached {
		// Guesses must not push out those who have a token, so the unknown go first.
		for h, old := range a.cache {
			if old.err != nil {
				delete(a.cache, h)
			}
		}
		if len(a.cache) >= maxCached {
			clear(a.cache)
		}
	}
	a.cache[hash] = c
}

// Allow takes one call from the credential's budget. The error is an ErrRateLimited
// that says when to try again.
func (a *Authenticator) Allow(id Identity) error { return a.rates.allow(id.ID, a.opts.Now()) }

// Revoked forgets what is believed of the token and ends its open streams at once.
func (a *Authenticator) Revoked(tokenID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for h, c := range a.cache {
		if c.id.ID == tokenID {
			delete(a.cache, h)
		}
	}
	if h, ok := a.holds[tokenID]; ok {
		h.endLocked()
	}
}
