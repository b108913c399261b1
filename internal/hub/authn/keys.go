package authn

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/memsvc/memsvc/internal/memory"
)

// How an issuer is asked for its keys.
const (
	// keysFor is how long keys are used before they are fetched again, in the
	// background: how late the withdrawal of a key is noticed.
	keysFor = 10 * time.Minute
	// askEvery is how often, at most, an issuer is asked, whatever callers send.
	askEvery   = 10 * time.Second
	askTimeout = 5 * time.Second
	maxAnswer  = 1 << 20
	maxKeys    = 64
	minRSABits = 2048
)

// keySource keeps the public keys of one issuer.
type keySource struct {
	issuer  Issuer
	now     func() time.Time
	log     *slog.Logger
	observe func(issuer, outcome string)
	life    context.Context //nolint:containedctx // ends the fetching when the hub ends
	works   *sync.WaitGroup

	mu      sync.Mutex // guards what follows
	keys    []jose.JSONWebKey
	fetched time.Time     // last success
	asked   time.Time     // last attempt
	asking  chan struct{} // closed when the attempt under way is over; nil: none is
	err     error         // of the last attempt
}

// find returns the keys that may have signed with alg under kid. Keys once fetched
// serve while the issuer is away. An unknown kid makes it ask again, but not more
// often than askEvery. The error is an ErrUnavailable when nobody can know, or a refusal.
func (s *keySource) find(ctx context.Context, kid, alg string) ([]any, error) {
	asked := false // by this call; an attempt begun before may not know of a new key
	for {
		s.mu.Lock()
		found := s.matching(kid, alg)
		now := s.now()
		stale := s.fetched.IsZero() || now.Sub(s.fetched) >= keysFor
		if len(found) > 0 && !stale {
			s.mu.Unlock()
			return found, nil
		}
		if wait := askEvery - now.Sub(s.asked); s.asking == nil && !s.asked.IsZero() && wait > 0 {
			err := s.err
			s.mu.Unlock()
			switch {
			case len(found) > 0:
				return found, nil
			case asked && err == nil:
				return nil, refuse(whyUnknownKey)
			}
			// What the issuer would say now is not known, and it is not the time to ask.
			return nil, s.unavailable(wait)
		}
		if s.asking == nil {
			s.askLocked(now)
			asked = true
		}
		asking := s.asking
		s.mu.Unlock()
		if len(found) > 0 {
			return found, nil
		}
		select {
		case <-asking:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *keySource) unavailable(wait time.Duration) error {
	return &memory.Error{
		Reason: memory.ReasonUnavailable, RetryAfter: wait,
		Message: "the keys of issuer " + s.issuer.Name + " are not at hand; try again soon",
	}
}

// matching returns the usable keys; s.mu is held.
func (s *keySource) matching(kid, alg string) []any {
	var out []any
	for _, k := range s.keys {
		if (kid == "" || k.KeyID == "" || k.KeyID == kid) && (k.Algorithm == "" || k.Algorithm == alg) {
			out = append(out, k.Key)
		}
	}
	return out
}

// warm fetches the keys before anyone needs them.
func (s *keySource) warm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking == nil && s.fetched.IsZero() {
		s.askLocked(s.now())
	}
}

func (s *keySource) askLocked(now time.Time) {
	done := make(chan struct{})
	s.asked, s.asking = now, done
	s.works.Go(func() {
		ctx, cancel := context.WithTimeout(s.life, askTimeout)
		defer cancel()
		keys, err := fetchKeys(ctx, s.issuer)
		outcome := "ok"
		if err != nil {
			outcome = "failed"
			s.log.Warn("keys of an issuer not fetched; those at hand serve on", "issuer", s.issuer.Name, "error", err.Error())
		}
		s.observe(s.issuer.Name, outcome)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err = err; err == nil {
			s.keys, s.fetched = keys, s.now()
		}
		s.asking = nil
		close(done)
	})
}

// fetchKeys asks the issuer. Everything is read anew: authorities and bearer tokens of
// a cluster rotate, and this happens a few times an hour.
func fetchKeys(ctx context.Context, i Issuer) ([]jose.JSONWebKey, error) {
	client, err := askingClient(i)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	from := i.JWKSURL
	if from == "" {
		p, err := oidc.NewProvider(oidc.ClientContext(ctx, client), i.URL)
		if err != nil {
			return nil, fmt.Errorf("discovery: %w", err)
		}
		var found struct {
			JWKSURL string `json:"jwks_uri"`
		}
		if err := p.Claims(&found); err != nil {
			return nil, fmt.Errorf("discovery: %w", err)
		}
		if err := checkURL(found.JWKSURL); err != nil {
			return nil, fmt.Errorf("discovery: jwks_uri %w", err)
		}
		from = found.JWKSURL
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("keys: %s answers %s", from, res.Status)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.NewDecoder(res.Body).Decode(&set); err != nil {
		return nil, fmt.Errorf("keys: %s: %w", from, err)
	}
	keys := usable(set.Keys)
	if len(keys) == 0 {
		return nil, fmt.Errorf("keys: %s: no key that could sign a token", from)
	}
	return keys, nil
}

// usable leaves out what cannot be: keys for encryption, secret keys, weak ones, and
// kinds that nobody here understands.
func usable(in []json.RawMessage) []jose.JSONWebKey {
	var out []jose.JSONWebKey
	for _, text := range in {
		var k jose.JSONWebKey
		if json.Unmarshal(text, &k) != nil || !k.Valid() || (k.Use != "" && k.Use != "sig") || len(out) == maxKeys {
			continue
		}
		switch key := k.Key.(type) {
		case *rsa.PublicKey:
			if key.N.BitLen() < minRSABits {
				continue
			}
		case *ecdsa.PublicKey, ed25519.PublicKey:
		default:
			continue
		}
		out = append(out, k)
	}
	return out
}

// asking adds the bearer token and bounds the answers.
type asking struct {
	http.RoundTripper
	bearer string
}

func (a asking) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.bearer != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+a.bearer)
	}
	res, err := a.RoundTripper.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}

func askingClient(i Issuer) (*http.Client, error) {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: askTimeout,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, MaxResponseHeaderBytes: maxAnswer,
	}
	if i.CAFile != "" {
		pem, err := os.ReadFile(i.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca-file: %w", err)
		}
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca-file: %s holds no certificate in PEM", i.CAFile)
		}
	}
	a := asking{RoundTripper: t}
	if i.BearerFile != "" {
		text, err := os.ReadFile(i.BearerFile)
		if err != nil {
			return nil, fmt.Errorf("bearer-file: %w", err)
		}
		a.bearer = strings.TrimSpace(string(text))
		if a.bearer == "" || strings.ContainsFunc(a.bearer, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, fmt.Errorf("bearer-file: %s holds no token", i.BearerFile)
		}
	}
	return &http.Client{
		Transport: a,
		// Whoever redirects could make us take keys, or show the bearer token, elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirected; name the final address") },
	}, nil
}
