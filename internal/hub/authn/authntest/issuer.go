// Package authntest is an OIDC issuer for tests: it signs whatever it is told, rotates
// its keys, falls silent and comes back.
package authntest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Issuer is a running issuer.
type Issuer struct {
	URL    string
	Server *httptest.Server

	t testing.TB

	mu      sync.Mutex // guards what follows
	keys    []jose.JSONWebKey
	next    int
	down    bool
	bearer  string
	fetches int
	claimed string // what discovery says that the issuer is; "": the truth
	gate    *gate  // nil: keys are handed out at once
}

// gate holds up answers until it is open.
type gate struct {
	reached chan struct{} // gets one for each answer
	open    chan struct{} // closed to open it
}

// New starts an issuer on loopback and ends it with the test. tls serves it with a
// certificate of its own (Server.Certificate).
func New(t testing.TB, tls bool) *Issuer {
	t.Helper()
	i := &Issuer{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("GET /keys", i.serveKeys)
	mux.HandleFunc("GET /moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/keys", http.StatusFound) })
	i.Server = httptest.NewUnstartedServer(mux)
	i.Server.Config.ErrorLog = log.New(io.Discard, "", 0) // who does not trust us says so itself
	if tls {
		i.Server.StartTLS()
	} else {
		i.Server.Start()
	}
	t.Cleanup(i.Server.Close)
	i.URL = i.Server.URL
	i.Rotate()
	return i
}

func (i *Issuer) reachable(w http.ResponseWriter, r *http.Request) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.down:
		http.Error(w, "away", http.StatusServiceUnavailable)
		return false
	case i.bearer != "" && r.Header.Get("Authorization") != "Bearer "+i.bearer:
		http.Error(w, "who are you", http.StatusUnauthorized)
		return false
	}
	return true
}

func (i *Issuer) discovery(w http.ResponseWriter, r *http.Request) {
	if !i.reachable(w, r) {
		return
	}
	i.mu.Lock()
	claimed := i.claimed
	i.mu.Unlock()
	if claimed == "" {
		claimed = i.URL
	}
	i.answer(w, map[string]any{"issuer": claimed, "jwks_uri": i.URL + "/keys"})
}

func (i *Issuer) serveKeys(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.fetches++
	i.mu.Unlock()
	if !i.reachable(w, r) {
		return
	}
	i.mu.Lock()
	set, gate := jose.JSONWebKeySet{}, i.gate
	for _, k := range i.keys {
		set.Keys = append(set.Keys, k.Public())
	}
	i.mu.Unlock()
	if gate != nil {
		select {
		case gate.reached <- struct{}{}:
		default: // it is known by now
		}
		select {
		case <-gate.open:
		case <-r.Context().Done():
		}
	}
	i.answer(w, set)
}

// Hold holds up answers with keys, whose keys are those of when they were asked for, until
// open is called. reached gets a value when the first one is held.
func (i *Issuer) Hold() (reached <-chan struct{}, open func()) {
	g := &gate{reached: make(chan struct{}, 1), open: make(chan struct{})}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.gate = g
	return g.reached, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.gate = nil
		close(g.open)
	}
}

func (i *Issuer) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		i.t.Logf("authntest: the client went away: %v", err)
	}
}

// Rotate makes a new key and forgets the old ones.
func (i *Issuer) Rotate() {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.Use(key, jose.ES256)
}

// Use makes key the only one.
func (i *Issuer) Use(key crypto.Signer, alg jose.SignatureAlgorithm) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.next++
	i.keys = []jose.JSONWebKey{{Key: key, KeyID: fmt.Sprintf("key-%d", i.next), Algorithm: string(alg), Use: "sig"}}
}

// Key returns the present key.
func (i *Issuer) Key() jose.JSONWebKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[len(i.keys)-1]
}

// Down makes the issuer refuse every question, or answer again.
func (i *Issuer) Down(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

// Want makes the issuer answer only to whoever shows the bearer token.
func (i *Issuer) Want(bearer string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.bearer = bearer
}

// Claim makes discovery speak of another issuer.
func (i *Issuer) Claim(issuer string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.claimed = issuer
}

// Fetches returns how often the keys were asked for.
func (i *Issuer) Fetches() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

// Claims returns the claims of a good token, valid for an hour from now, with changes:
// a nil value leaves the claim out.
func (i *Issuer) Claims(now time.Time, changes map[string]any) map[string]any {
	c := map[string]any{
		"iss": i.URL, "aud": "memsvc", "sub": "system:serviceaccount:agents:one",
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	for k, v := range changes {
		if c[k] = v; v == nil {
			delete(c, k)
		}
	}
	return c
}

// Sign returns a JWT with the claims, signed with the present key.
func (i *Issuer) Sign(claims map[string]any) string {
	i.t.Helper()
	return SignWith(i.t, i.Key(), claims)
}

// SignWith returns a JWT signed with any key.
func SignWith(t testing.TB, key jose.JSONWebKey, claims map[string]any) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	compact, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return compact
}

// RSA returns a new RSA key.
func RSA(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
