package authn_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/memsvc/memsvc/internal/hub/authn"
	"github.com/memsvc/memsvc/internal/hub/authn/authntest"
	"github.com/memsvc/memsvc/internal/memory"
)

// clock is a hub's clock that stands until it is moved.
type clock struct {
	mu    sync.Mutex // guards what follows
	now   time.Time
	asked int
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return c.now
}

// count is how often the clock was looked at.
func (c *clock) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

// looks waits until the clock was looked at n more times.
func (c *clock) looks(n int) { c.until(c.count() + n) }

// until waits until the clock was looked at n times in all.
func (c *clock) until(n int) {
	for c.count() < n {
		time.Sleep(time.Millisecond)
	}
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// believer is an authenticator that believes one issuer, and its clock.
func believer(t *testing.T, i *authntest.Issuer, change func(*authn.Issuer)) (*authn.Authenticator, *clock) {
	t.Helper()
	c := &clock{now: time.Now().Truncate(time.Second)}
	a := authn.New(&directory{tokens: map[string]authn.Identity{}}, authn.Options{Now: c.Now, RecheckEvery: 5 * time.Millisecond})
	t.Cleanup(a.Close)
	s := authn.Issuer{
		Name: "cluster", URL: i.URL, Audience: authn.Words{"memsvc", "memsvc.example"},
		Rules: []authn.Rule{{When: map[string]authn.Words{"sub": {"system:serviceaccount:agents:*"}}, Team: "acme", Project: "app", Role: "writer"}},
	}
	if change != nil {
		change(&s)
	}
	if err := a.Trusted(&authn.Trust{Issuers: []authn.Issuer{s}}); err != nil {
		t.Fatal(err)
	}
	return a, c
}

func bearer(t *testing.T, a *authn.Authenticator, text string) (authn.Identity, error) {
	t.Helper()
	return a.Authenticate(t.Context(), "Bearer "+text)
}

func TestJWT(t *testing.T) {
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := authntest.New(t, false)
	for _, alg := range []jose.SignatureAlgorithm{jose.ES256, jose.RS256, jose.PS512, jose.EdDSA} {
		switch alg {
		case jose.EdDSA:
			i.Use(edKey, alg)
		case jose.RS256, jose.PS512:
			i.Use(authntest.RSA(t, 2048), alg)
		}
		a, c := believer(t, i, nil)
		for name, changes := range map[string]map[string]any{
			"one audience":    nil,
			"of several":      {"aud": []string{"other", "memsvc.example"}},
			"no nbf, no iat":  {"nbf": nil, "iat": nil},
			"issued to us":    {"azp": "memsvc"},
			"expired a bit":   {"iat": c.Now().Add(-time.Hour).Unix(), "exp": c.Now().Add(-50 * time.Second).Unix()},
			"begins in a bit": {"iat": c.Now().Add(50 * time.Second).Unix(), "nbf": c.Now().Add(50 * time.Second).Unix()},
		} {
			id, err := bearer(t, a, i.Sign(i.Claims(c.Now(), changes)))
			if err != nil {
				t.Errorf("%s %s: %v (%s)", alg, name, err, authn.Why(err))
				continue
			}
			if id.Principal() != "oidc:cluster:system:serviceaccount:agents:one" || id.Team != "acme" || id.Project != "app" || id.Role != "writer" {
				t.Errorf("%s %s: %s in %s/%s as %s", alg, name, id.Principal(), id.Team, id.Project, id.Role)
			}
		}
	}
}

// TestJWTRefused gives every credential that does not hold the one answer, and the log
// the reason.
func TestJWTRefused(t *testing.T) {
	i := authntest.New(t, false)
	rsaKey := authntest.RSA(t, 2048)
	i.Use(rsaKey, jose.RS256)
	a, c := believer(t, i, nil)
	now := c.Now()
	good := i.Sign(i.Claims(now, nil))
	if _, err := bearer(t, a, good); err != nil {
		t.Fatal(err)
	}
	claims := func(changes map[string]any) string { return i.Sign(i.Claims(now, changes)) }
	key := i.Key()
	public := key.Public()
	der, err := x509.MarshalPKIXPublicKey(&rsaKey.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	hmac := func(secret []byte) string {
		return authntest.SignWith(t, jose.JSONWebKey{Key: secret, KeyID: public.KeyID, Algorithm: string(jose.HS256)}, i.Claims(now, nil))
	}
	jwk, err := json.Marshal(public)
	if err != nil {
		t.Fatal(err)
	}
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	parts := strings.Split(good, ".")
	otherKey := jose.JSONWebKey{Key: authntest.RSA(t, 2048), KeyID: public.KeyID, Algorithm: string(jose.RS256)}
	pssKey := key
	pssKey.Algorithm = string(jose.PS256)
	embedded := func() string {
		s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: otherKey.Key}, &jose.SignerOptions{EmbedJWK: true})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(i.Claims(now, nil))
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Sign(text)
		if err != nil {
			t.Fatal(err)
		}
		compact, err := o.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		return compact
	}()
	for name, tc := range map[string]struct{ text, why string }{
		"wrong audience":         {claims(map[string]any{"aud": "other"}), "audience"},
		"no audience":            {claims(map[string]any{"aud": nil}), "audience"},
		"wrong issuer":           {claims(map[string]any{"iss": "https://elsewhere.example"}), "unknown_issuer"},
		"no issuer":              {claims(map[string]any{"iss": nil}), "unknown_issuer"},
		"issuer with a slash":    {claims(map[string]any{"iss": i.URL + "/"}), "unknown_issuer"},
		"expired":                {claims(map[string]any{"exp": now.Add(-61 * time.Second).Unix()}), "expired"},
		"no expiry":              {claims(map[string]any{"exp": nil}), "no_expiry"},
		"not yet valid":          {claims(map[string]any{"nbf": now.Add(62 * time.Second).Unix()}), "not_valid_yet"},
		"issued in the future":   {claims(map[string]any{"iat": now.Add(62 * time.Second).Unix()}), "not_valid_yet"},
		"valid for a year":       {claims(map[string]any{"exp": now.AddDate(1, 0, 0).Unix()}), "lifetime"},
		"issued to another":      {claims(map[string]any{"azp": "other"}), "authorized_party"},
		"no subject":             {claims(map[string]any{"sub": nil}), "subject"},
		"a subject of two lines": {claims(map[string]any{"sub": "a\nb"}), "subject"},
		"a long subject":         {claims(map[string]any{"sub": strings.Repeat("x", 201)}), "subject"},
		"expiry as text":         {claims(map[string]any{"exp": "tomorrow"}), "signature"},
		"HS256 with the PEM":     {hmac(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), "not_a_jwt"},
		"HS256 with the DER":     {hmac(der), "not_a_jwt"},
		"HS256 with the JWK":     {hmac(jwk), "not_a_jwt"},
		"alg none":               {part(map[string]any{"alg": "none"}) + "." + parts[1] + ".", "not_a_jwt"},
		"alg None":               {part(map[string]any{"alg": "None"}) + "." + parts[1] + ".", "not_a_jwt"},
		"no signature":           {parts[0] + "." + parts[1] + ".", "signature"},
		"another's claims":       {parts[0] + "." + part(i.Claims(now, map[string]any{"sub": "root"})) + "." + parts[2], "signature"},
		"another key":            {authntest.SignWith(t, otherKey, i.Claims(now, nil)), "signature"},
		"a key brought along":    {embedded, "signature"},
		"large":                  {claims(map[string]any{"pad": strings.Repeat("x", 8<<10)}), "too_large"},
		"garbage":                {"a.b.c", "not_a_jwt"},
		"JSON form":              {`{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, "not_a_jwt"},
		"five parts":             {good + ".a.b", "not_a_jwt"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bearer(t, a, tc.text)
			if !errors.Is(err, memory.ErrUnauthenticated) || authn.Why(err) != tc.why {
				t.Errorf("error %v, why %q, want %q", err, authn.Why(err), tc.why)
			}
			said, _, _ := strings.Cut(err.Error(), "; this hub takes its own tokens (msv_…) and JWTs of the issuers in its identity file")
			if said == err.Error() || !strings.Contains(said, "the JWT is not taken: it") {
				t.Errorf("it does not say why, and what is taken: %v", err)
			}
			for part := range strings.SplitSeq(tc.text, ".") {
				if len(part) > 8 && strings.Contains(err.Error(), part) {
					t.Errorf("the error shows a part of the credential: %v", err)
				}
			}
		})
	}
	// The key says which algorithm it is for. Under its id nothing else is known.
	c.move(11 * time.Second)
	if _, err := bearer(t, a, authntest.SignWith(t, pssKey, i.Claims(c.Now(), nil))); authn.Why(err) != "unknown_key" {
		t.Errorf("another algorithm than the key's: %v, %q", err, authn.Why(err))
	}
}

// TestWeakKeys takes no key that is too short, for encryption, or secret.
func TestWeakKeys(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	i := authntest.New(t, false)
	i.Use(authntest.RSA(t, 1024), jose.RS256)
	a, c := believer(t, i, nil)
	if _, err := bearer(t, a, i.Sign(i.Claims(c.Now(), nil))); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("1024 bits: %v; want the issuer to have no usable key", err)
	}
}

func TestAuthorizedParties(t *testing.T) {
	i := authntest.New(t, false)
	a, c := believer(t, i, func(s *authn.Issuer) { s.AuthorizedParties = authn.Words{"ci"} })
	for party, ok := range map[any]bool{"ci": true, "memsvc": false, nil: false} {
		if _, err := bearer(t, a, i.Sign(i.Claims(c.Now(), map[string]any{"azp": party}))); (err == nil) != ok {
			t.Errorf("azp %v: %v", party, err)
		}
	}
}

// TestKeyRotation takes in a new key when a token names it, and lets the old one go.
func TestKeyRotation(t *testing.T) {
	i := authntest.New(t, false)
	a, c := believer(t, i, nil)
	old := i.Sign(i.Claims(c.Now(), nil))
	if _, err := bearer(t, a, old); err != nil {
		t.Fatal(err)
	}
	i.Rotate()
	c.move(11 * time.Second)
	if _, err := bearer(t, a, i.Sign(i.Claims(c.Now(), nil))); err != nil {
		t.Errorf("the new key: %v", err)
	}
	c.move(2 * time.Minute) // what was believed is asked again
	if _, err := bearer(t, a, old); !errors.Is(err, memory.ErrUnauthenticated) {
		t.Errorf("the withdrawn key: %v", err)
	}
}

// TestKeyRotatedWhileAsked shows a token of a new key while keys are fetched that the
// issuer handed out before: that answer says nothing of the new one.
func TestKeyRotatedWhileAsked(t *testing.T) {
	i := authntest.New(t, false)
	a, c := believer(t, i, nil)
	old := i.Sign(i.Claims(c.Now(), map[string]any{"exp": c.Now().Add(10 * time.Hour).Unix()}))
	if _, err := bearer(t, a, old); err != nil {
		t.Fatal(err)
	}
	reached, open := i.Hold()
	c.move(time.Hour) // the keys are past their time, and are fetched beside what is asked for
	if _, err := bearer(t, a, old); err != nil {
		t.Fatal(err)
	}
	<-reached
	i.Rotate()
	fresh := i.Sign(i.Claims(c.Now(), nil))
	answered := make(chan error, 1)
	looked := c.count()
	go func() {
		_, err := a.Authenticate(context.Background(), "Bearer "+fresh)
		answered <- err
	}()
	c.until(looked + 2) // the second look, under a lock, finds keys that are being fetched
	open()
	if err := <-answered; !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("the new key: %v, want that nobody can know yet", err)
	}
	c.move(11 * time.Second)
	if _, err := bearer(t, a, fresh); err != nil {
		t.Errorf("the new key, asked again: %v", err)
	}
}

// TestUnknownKeysDoNotHammer sends a flood of tokens with made-up key ids: the issuer
// is asked once in 10 s, and the hub neither refuses nor believes what it cannot know.
func TestUnknownKeysDoNotHammer(t *testing.T) {
	i := authntest.New(t, false)
	a, c := believer(t, i, nil)
	good := i.Sign(i.Claims(c.Now(), nil))
	if _, err := bearer(t, a, good); err != nil {
		t.Fatal(err)
	}
	key := i.Key()
	flood := func() {
		var wg sync.WaitGroup
		for n := range 200 {
			k := key
			k.KeyID = fmt.Sprint("made-up-", n)
			text := authntest.SignWith(t, k, i.Claims(c.Now(), nil))
			wg.Go(func() {
				_, err := a.Authenticate(context.Background(), "Bearer "+text)
				if !errors.Is(err, memory.ErrUnavailable) && !errors.Is(err, memory.ErrUnauthenticated) {
					t.Errorf("made-up key: %v", err)
				}
			})
		}
		wg.Wait()
	}
	before := i.Fetches()
	for range 3 {
		flood()
	}
	if n := i.Fetches() - before; n != 0 {
		t.Errorf("%d fetches within 10 s of the last", n)
	}
	for range 3 {
		c.move(10 * time.Second)
		flood()
	}
	if n := i.Fetches() - before; n != 3 {
		t.Errorf("%d fetches in 30 s, want 3", n)
	}
	if _, err := bearer(t, a, good); err != nil {
		t.Errorf("a good token in the flood: %v", err)
	}
}

// TestIssuerAway lives on the keys at hand, and without any says that it cannot know.
func TestIssuerAway(t *testing.T) {
	i := authntest.New(t, false)
	i.Down(true)
	a, c := believer(t, i, nil)
	text := i.Sign(i.Claims(c.Now(), nil))
	for range 3 {
		var e *memory.Error
		if _, err := bearer(t, a, text); !errors.As(err, &e) || e.Reason != memory.ReasonUnavailable || e.RetryAfter <= 0 || e.RetryAfter > 10*time.Second {
			t.Fatalf("no keys yet: %v", err)
		}
	}
	i.Down(false)
	c.move(10 * time.Second)
	if _, err := bearer(t, a, text); err != nil {
		t.Fatalf("the issuer is back: %v", err)
	}
	i.Down(true)
	for range 4 {
		c.move(12 * time.Minute) // the keys are past their time
		if _, err := bearer(t, a, i.Sign(i.Claims(c.Now(), nil))); err != nil {
			t.Errorf("keys at hand: %v", err)
		}
	}
	i.Rotate()
	c.move(time.Minute)
	if _, err := bearer(t, a, i.Sign(i.Claims(c.Now(), nil))); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("a new key that cannot be fetched: %v", err)
	}
}

// TestClusterIssuer reads keys over TLS with an authority from a file, with a bearer
// token that rotates, past discovery; and refuses to be sent elsewhere.
func TestClusterIssuer(t *testing.T) {
	i := authntest.New(t, true)
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	write := func(name string, text []byte) {
		t.Helper()
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Server.Certificate().Raw}))
	write(token, []byte("first\n"))
	i.Want("first")
	for name, tc := range map[string]struct {
		change func(*authn.Issuer)
		ok     bool
	}{
		"discovery":           {func(s *authn.Issuer) { s.CAFile, s.BearerFile = ca, token }, true},
		"past discovery":      {func(s *authn.Issuer) { s.CAFile, s.BearerFile, s.JWKSURL = ca, token, i.URL+"/keys" }, true},
		"redirected":          {func(s *authn.Issuer) { s.CAFile, s.BearerFile, s.JWKSURL = ca, token, i.URL+"/moved" }, false},
		"no bearer token":     {func(s *authn.Issuer) { s.CAFile = ca }, false},
		"another authority":   {func(s *authn.Issuer) { s.BearerFile = token }, false},
		"a file that is gone": {func(s *authn.Issuer) { s.CAFile, s.BearerFile = ca, token+"x" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, c := believer(t, i, tc.change)
			_, err := bearer(t, a, i.Sign(i.Claims(c.Now(), nil)))
			if tc.ok && err != nil || !tc.ok && !errors.Is(err, memory.ErrUnavailable) {
				t.Errorf("error %v", err)
			}
		})
	}
	a, c := believer(t, i, func(s *authn.Issuer) { s.CAFile, s.BearerFile = ca, token })
	if _, err := bearer(t, a, i.Sign(i.Claims(c.Now(), nil))); err != nil {
		t.Fatal(err)
	}
	write(token, []byte("second\n"))
	i.Want("second")
	i.Rotate()
	c.move(10 * time.Second)
	if _, err := bearer(t, a, i.Sign(i.Claims(c.Now(), nil))); err != nil {
		t.Errorf("after the bearer token rotated: %v", err)
	}
	i.Claim("https://elsewhere.example")
	i.Rotate()
	c.move(10 * time.Second)
	if _, err := bearer(t, a, i.Sign(i.Claims(c.Now(), nil))); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("discovery speaks of another issuer: %v", err)
	}
}

// TestHoldJWT ends a stream when its JWT has expired, and when the rules change.
func TestHoldJWT(t *testing.T) {
	i := authntest.New(t, false)
	trust := func(role string) *authn.Trust {
		return &authn.Trust{Issuers: []authn.Issuer{{Name: "cluster", URL: i.URL, Audience: authn.Words{"memsvc"},
			Rules: []authn.Rule{{When: map[string]authn.Words{"sub": {"**"}}, Team: "acme", Role: role}}}}}
	}
	for name, end := range map[string]func(*authn.Authenticator, *clock) error{
		"expired":      func(_ *authn.Authenticator, c *clock) error { c.move(2 * time.Second); return nil },
		"another role": func(a *authn.Authenticator, _ *clock) error { return a.Trusted(trust("reader")) },
		"no issuer":    func(a *authn.Authenticator, _ *clock) error { return a.Trusted(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			a, c := believer(t, i, nil)
			if err := a.Trusted(trust("writer")); err != nil {
				t.Fatal(err)
			}
			id, err := bearer(t, a, i.Sign(i.Claims(c.Now(), nil)))
			if err != nil {
				t.Fatal(err)
			}
			later, err := bearer(t, a, i.Sign(i.Claims(c.Now(), map[string]any{"exp": c.Now().Add(2 * time.Hour).Unix()})))
			if err != nil {
				t.Fatal(err)
			}
			held, stop := a.Hold(t.Context(), id)
			defer stop()
			other, stopOther := a.Hold(t.Context(), later)
			defer stopOther()
			c.move(time.Hour + 59*time.Second) // the expiry, but not the skew
			if err := a.Trusted(trust("writer")); err != nil {
				t.Fatal(err)
			}
			c.looks(6) // three at each of the two
			if held.Err() != nil {
				t.Fatal("ended while its credential held")
			}
			if err := end(a, c); err != nil {
				t.Fatal(err)
			}
			<-held.Done()
			if !errors.Is(context.Cause(held), memory.ErrUnauthenticated) {
				t.Errorf("cause %v", context.Cause(held))
			}
			if name == "expired" && other.Err() != nil {
				t.Error("another JWT of the same subject ended too")
			}
		})
	}
}
