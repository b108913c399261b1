package authn

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/memory"
)

// believeFor is how long a JWT that was verified is not verified again: how late the
// withdrawal of its key is noticed, beside keysFor.
const believeFor = time.Minute

// others are the credentials of others under one Trust. A changed Trust is a new one.
type others struct {
	book *rulebook

	mu    sync.Mutex // guards cache
	cache map[string]believed
}

type believed struct {
	id    Identity
	until time.Time
}

// otherMetrics counts what happens with credentials of others. Labels are names from
// the configuration and words of our own.
type otherMetrics struct {
	fetches *prometheus.CounterVec
	refused *prometheus.CounterVec
}

func newOtherMetrics(reg prometheus.Registerer) *otherMetrics {
	m := &otherMetrics{
		fetches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memsvc_oidc_key_fetches_total", Help: "Fetches of an issuer's keys, by issuer and outcome: ok or failed.",
		}, []string{"issuer", "outcome"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memsvc_foreign_credentials_refused_total", Help: "JWTs and client certificates refused, by reason: a word of docs/observability.md.",
		}, []string{"why"}),
	}
	for _, w := range whys() {
		m.refused.WithLabelValues(string(w)) // from 0 on, so that the first one is a change
	}
	if reg != nil {
		reg.MustRegister(m.fetches, m.refused)
	}
	return m
}

// Trusted puts another Trust in the place of the present one, nil for none. Keys of
// issuers that are asked in the same way stay. Open streams whose credential has
// another role under it end within seconds. The error names every setting that cannot
// work; then nothing changes.
func (a *Authenticator) Trusted(t *Trust) error {
	if t == nil {
		a.others.Store(nil)
		return nil
	}
	book, err := t.compile()
	if err != nil {
		return err
	}
	var old map[string]*issuer
	if o := a.others.Load(); o != nil {
		old = o.book.issuers
	}
	for url, i := range book.issuers {
		if was := old[url]; was != nil && was.Name == i.Name && was.JWKSURL == i.JWKSURL && was.CAFile == i.CAFile && was.BearerFile == i.BearerFile {
			i.source = was.source
			continue
		}
		i.source = &keySource{
			issuer: i.Issuer, now: a.opts.Now, log: a.opts.Logger, life: a.life, works: &a.works,
			observe: func(issuer, outcome string) { a.metrics.fetches.WithLabelValues(issuer, outcome).Inc() },
		}
		i.source.warm()
	}
	a.others.Store(&others{book: book, cache: map[string]believed{}})
	return nil
}

// Close ends the fetching of keys. Nothing may be asked afterwards.
func (a *Authenticator) Close() {
	a.end()
	a.works.Wait()
}

// jwt returns who a JWT stands for.
func (a *Authenticator) jwt(ctx context.Context, text string) (Identity, error) {
	o := a.others.Load()
	if o == nil {
		return Identity{}, noIssuers()
	}
	sum := sha256.Sum256([]byte(text))
	hash := "jwt:" + hex.EncodeToString(sum[:])
	now := a.opts.Now()
	o.mu.Lock()
	b, ok := o.cache[hash]
	o.mu.Unlock()
	if ok && now.Before(b.until) {
		return b.id, nil
	}
	id, err := o.book.jwtBearer(ctx, text, now)
	if err != nil {
		a.count(err)
		return id, err
	}
	id.Hash = hash
	until := now.Add(believeFor)
	if id.Expire.Before(until) {
		until = id.Expire
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.cache) >= maxCached {
		clear(o.cache)
	}
	o.cache[hash] = believed{id, until}
	return id, nil
}

// Certified returns who a verified client certificate stands for, when no other
// credential comes with it.
func (a *Authenticator) Certified(cert *x509.Certificate) (Identity, error) {
	o := a.others.Load()
	if o == nil || o.book.certs == nil {
		return Identity{}, unauthenticated()
	}
	id, err := o.book.certIdentity(cert, a.opts.Now())
	if err != nil {
		a.count(err)
	}
	return id, err
}

func (a *Authenticator) count(err error) {
	word := Why(err)
	switch {
	case word != "":
	case errors.Is(err, memory.ErrPermissionDenied):
		word = string(whyNoRule)
	case errors.Is(err, memory.ErrUnavailable):
		word = string(whyNoKeys)
	default:
		return // the caller went away
	}
	a.metrics.refused.WithLabelValues(word).Inc()
}

// stillHolds looks at a credential of others again. The Trust may have changed.
func (a *Authenticator) stillHolds(id Identity) error {
	o := a.others.Load()
	if o == nil || !a.opts.Now().Before(id.Expire) {
		return unauthenticated()
	}
	rules := o.book.certs
	if id.Kind == OIDC {
		i := o.book.issuers[id.issuer]
		if i == nil {
			return unauthenticated()
		}
		rules = i.rules
	}
	if g, ok := decide(rules, id.said); !ok || g != (grant{id.Team, id.Project, id.Role}) {
		return unauthenticated()
	}
	return nil
}
