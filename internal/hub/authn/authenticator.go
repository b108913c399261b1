package authn

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/memory"
)

// Kind says what kind of credential an identity comes from.
type Kind uint8

// The kinds of credential.
const (
	Token       Kind = iota // a bearer token of this hub
	OIDC                    // a JWT of an issuer that the hub believes
	Certificate             // a client certificate
)

// Identity is who a credential stands for: as the directory of tokens keeps it, or as
// the Trust says.
type Identity struct {
	Kind    Kind
	ID      string // bounds the rate; of a token: what it is revoked by
	Name    string
	Hash    string
	Team    memory.Team    // "" reaches the whole hub
	Project memory.Project // "" reaches the whole team
	Role    string
	Expire  time.Time // zero = never
	Revoked bool

	said   claims // of a credential of others
	issuer string // of a JWT
}

// Principal returns the name under which the credential acts and is on record:
// token:NAME, oidc:ISSUER:SUBJECT or cert:NAME.
func (id Identity) Principal() string {
	switch id.Kind {
	case OIDC:
		return "oidc:" + id.Name
	case Certificate:
		return "cert:" + id.Name
	}
	return "token:" + id.Name
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
	// Logger hears of issuers that cannot be asked; nil: nobody does.
	Logger *slog.Logger
	// Registerer gets the metrics of credentials of others; nil: nobody does.
	Registerer prometheus.Registerer
}

// Authenticator checks bearer tokens, JWTs and client certificates. It is safe for
// concurrent use. End it with Close if it was ever Trusted.
type Authenticator struct {
	dir   Directory
	opts  Options
	rates *rates

	others  atomic.Pointer[others] // nil: tokens only
	metrics *otherMetrics
	life    context.Context //nolint:containedctx // of the fetching of keys; ended by Close
	end     func()
	works   sync.WaitGroup

	mu          sync.Mutex // guards what follows
	cache       map[string]cached
	holds       map[string]*hold // credentials of open streams by holdKey
	revocations int              // so many are known of
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
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	life, end := context.WithCancel(context.Background())
	return &Authenticator{
		dir: dir, opts: opts, rates: newRates(opts.RatePerSecond, opts.Burst),
		metrics: newOtherMetrics(opts.Registerer), life: life, end: end,
		cache: map[string]cached{}, holds: map[string]*hold{},
	}
}

// unauthenticated is the one answer to every token that does not hold, and to none:
// unknown, malformed, revoked and expired ones are not told apart.
func unauthenticated() error {
	return &memory.Error{
		Reason:  memory.ReasonUnauthenticated,
		Message: "no valid credential; send \"authorization: Bearer\" with a token of this hub (msv_…) that is neither expired nor revoked, or with a JWT if the hub is set up for its issuer",
	}
}

// Authenticate returns who the value of an authorization header stands for. The
// error is an ErrUnauthenticated, with the identity beside it if the token is known and
// revoked or expired; of a JWT also an ErrUnavailable when its issuer's keys
// are not at hand, and an ErrPermissionDenied, with the identity beside it, when no
// rule gives it a role; or the directory's trouble.
func (a *Authenticator) Authenticate(ctx context.Context, header string) (Identity, error) {
	scheme, text, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return Identity{}, unauthenticated()
	}
	if !WellFormed(text) {
		if strings.HasPrefix(text, Prefix) {
			return Identity{}, unauthenticated()
		}
		return a.jwt(ctx, text)
	}
	return a.byHash(ctx, Hash(text))
}

// recheck looks at the credential of an identity again.
func (a *Authenticator) recheck(ctx context.Context, id Identity) error {
	if id.Kind != Token {
		return a.stillHolds(id)
	}
	_, err := a.byHash(ctx, id.Hash)
	return err
}

func (a *Authenticator) byHash(ctx context.Context, hash string) (Identity, error) {
	now := a.opts.Now()
	a.mu.Lock()
	c, ok := a.cache[hash]
	asked := a.revocations
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
		a.remember(hash, c, asked)
	}
	if c.err != nil {
		return Identity{}, c.err
	}
	if c.id.Revoked || (!c.id.Expire.IsZero() && !now.Before(c.id.Expire)) {
		return c.id, unauthenticated()
	}
	return c.id, nil
}

// remember keeps an answer of the directory, which was asked when so many revocations were
// known of: one that came meanwhile may be younger than the answer.
func (a *Authenticator) remember(hash string, c cached, revocations int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.revocations != revocations {
		return
	}
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

// Allow takes so many calls from the credential's budget, the whole of a full one at most.
// The error is an ErrRateLimited that says when to try again.
func (a *Authenticator) Allow(id Identity, calls int) error {
	return a.rates.allow(id.ID, calls, a.opts.Now())
}

// Revoked forgets what is believed of the token and ends its open streams at once.
func (a *Authenticator) Revoked(tokenID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revocations++
	for h, c := range a.cache {
		if c.id.ID == tokenID {
			delete(a.cache, h)
		}
	}
	if h, ok := a.holds[tokenID]; ok {
		h.endLocked()
	}
}
