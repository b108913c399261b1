package authn_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/authn"
	"github.com/memsvc/memsvc/internal/hub/authn/authntest"
	"github.com/memsvc/memsvc/internal/memory"
)

func TestRules(t *testing.T) {
	i := authntest.New(t, false)
	when := func(pairs ...string) map[string]authn.Words {
		out := map[string]authn.Words{}
		for n := 0; n < len(pairs); n += 2 {
			out[pairs[n]] = append(out[pairs[n]], pairs[n+1])
		}
		return out
	}
	a, c := believer(t, i, func(s *authn.Issuer) {
		s.Rules = []authn.Rule{
			{When: when("repository", "Acme/*", "ref", "refs/heads/main"), Team: "acme", Project: "github.com~{repository}", Role: "writer"},
			{When: when("repository", "Acme/*"), Team: "acme", Project: "github.com~{repository}", Role: "reader"},
			{When: when("sub", "system:serviceaccount:*:memsync", "sub", "robot"), Team: "pods", Role: "writer"},
			{When: when("/kubernetes.io/namespace", "ops"), Team: "ops", Role: "admin"},
			{When: when("groups", "admins", "email_verified", "true"), WholeHub: true, Role: "admin"},
			{When: when("/a~1b/c~0d", "7"), Team: "pointer", Role: "reader"},
			{When: when("path", "x/**"), Team: "deep", Project: "fixed", Role: "reader"},
		}
	})
	for _, tc := range []struct {
		name   string
		claims map[string]any
		want   string // team/project role; "" is no rule
	}{
		{"CI of the main branch", map[string]any{"repository": "Acme/Pay.API", "ref": "refs/heads/main"}, "acme/github.com~acme~pay.api writer"},
		{"CI of another branch", map[string]any{"repository": "Acme/pay", "ref": "refs/heads/x"}, "acme/github.com~acme~pay reader"},
		{"case counts in conditions", map[string]any{"repository": "acme/pay"}, ""},
		{"another owner", map[string]any{"repository": "Acme-evil/pay"}, ""},
		{"no deeper", map[string]any{"repository": "Acme/pay/x"}, ""},
		{"a tilde could be a slash", map[string]any{"repository": "Acme/pay~x"}, ""},
		{"no id", map[string]any{"repository": "Acme/pay x"}, ""},
		{"a list is no name", map[string]any{"repository": []string{"Acme/pay"}}, ""},
		{"service account", map[string]any{"sub": "system:serviceaccount:any:memsync"}, "pods/ writer"},
		{"not across a colon", map[string]any{"sub": "system:serviceaccount:a:b:memsync"}, ""},
		{"second pattern", map[string]any{"sub": "robot"}, "pods/ writer"},
		{"anchored", map[string]any{"sub": "robot2"}, ""},
		{"pointer", map[string]any{"kubernetes.io": map[string]any{"namespace": "ops"}}, "ops/ admin"},
		{"pointer into text", map[string]any{"kubernetes.io": "ops"}, ""},
		{"list and truth", map[string]any{"groups": []string{"users", "admins"}, "email_verified": true}, "/ admin"},
		{"half a rule", map[string]any{"groups": []string{"admins"}}, ""},
		{"pointer with escapes, number", map[string]any{"a/b": map[string]any{"c~d": 7}}, "pointer/ reader"},
		{"any depth", map[string]any{"path": "x/y:z/é"}, "deep/fixed reader"},
		{"nothing", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			changes := map[string]any{"sub": "somebody"}
			for k, v := range tc.claims {
				changes[k] = v
			}
			id, err := bearer(t, a, i.Sign(i.Claims(c.Now(), changes)))
			if tc.want == "" {
				if !errors.Is(err, memory.ErrPermissionDenied) || !strings.Contains(err.Error(), "oidc:cluster:") || id.Role != "" {
					t.Errorf("got %+v, %v", id, err)
				}
				return
			}
			if got := string(id.Team) + "/" + string(id.Project) + " " + id.Role; err != nil || got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

// TestTrustCheck finds what cannot work before anyone is believed.
func TestTrustCheck(t *testing.T) {
	good := func() authn.Trust {
		return authn.Trust{Issuers: []authn.Issuer{{
			Name: "a", URL: "https://issuer.example", Audience: authn.Words{"memsvc"},
			Rules: []authn.Rule{{When: map[string]authn.Words{"sub": {"x"}}, Team: "t", Role: "reader"}},
		}}}
	}
	if err := good().Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*authn.Trust){
		"nothing would be believed": func(t *authn.Trust) { t.Issuers = nil },
		"name \"\"":                 func(t *authn.Trust) { t.Issuers[0].Name = "" },
		"name \"a\" stands":         func(t *authn.Trust) { t.Issuers = append(t.Issuers, t.Issuers[0]) },
		"put its rules together":    func(t *authn.Trust) { t.Issuers = append(t.Issuers, t.Issuers[0]); t.Issuers[1].Name = "b" },
		"https":                     func(t *authn.Trust) { t.Issuers[0].URL = "http://issuer.example" },
		"jwks-url":                  func(t *authn.Trust) { t.Issuers[0].JWKSURL = "http://10.0.0.1/keys" },
		"audience: name":            func(t *authn.Trust) { t.Issuers[0].Audience = nil },
		"a word is empty":           func(t *authn.Trust) { t.Issuers[0].Audience = authn.Words{""} },
		"clock-skew":                func(t *authn.Trust) { t.Issuers[0].ClockSkew = time.Hour },
		"max-lifetime":              func(t *authn.Trust) { t.Issuers[0].MaxLifetime = time.Second },
		"rules: from":               func(t *authn.Trust) { t.Issuers[0].Rules = nil },
		"meet everybody":            func(t *authn.Trust) { t.Issuers[0].Rules[0].When = nil },
		"patterns are empty":        func(t *authn.Trust) { t.Issuers[0].Rules[0].When["sub"] = nil },
		"a pattern has":             func(t *authn.Trust) { t.Issuers[0].Rules[0].When["sub"] = authn.Words{""} },
		"team: name":                func(t *authn.Trust) { t.Issuers[0].Rules[0].Team = "" },
		"team id":                   func(t *authn.Trust) { t.Issuers[0].Rules[0].Team = "Acme" },
		"leave team":                func(t *authn.Trust) { t.Issuers[0].Rules[0].WholeHub = true },
		"role":                      func(t *authn.Trust) { t.Issuers[0].Rules[0].Role = "owner" },
		"project id":                func(t *authn.Trust) { t.Issuers[0].Rules[0].Project = "A/b" },
		"at most one {claim}":       func(t *authn.Trust) { t.Issuers[0].Rules[0].Project = "{a}~{b}" },
		"with at most one {claim}":  func(t *authn.Trust) { t.Issuers[0].Rules[0].Project = "x{a" },
		"nothing that a certificate": func(t *authn.Trust) {
			t.ClientCertificates = &authn.Certificates{Rules: []authn.Rule{{When: map[string]authn.Words{"sub": {"x"}}, Team: "t", Role: "reader"}}}
		},
	} {
		trust := good()
		change(&trust)
		if err := trust.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestTrustCheckTellsWhere puts every mistake in a line that says where it is.
func TestTrustCheckTellsWhere(t *testing.T) {
	err := authn.Within("file", authn.Trust{Issuers: []authn.Issuer{{Name: "a", URL: "https://x", Rules: []authn.Rule{{Role: "boss"}}}}}.Check())
	want := "file: issuer a: audience: name at least one, made for this hub: without it a token meant for another service would do here\n" +
		"file: issuer a: rules[0]: when: from 1 to 16 claims; without one the rule would meet everybody\n" +
		"file: issuer a: rules[0]: team: name one, or say whole-hub: true\n" +
		"file: issuer a: rules[0]: role \"boss\": use reader, writer or admin"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// TestCertificates maps verified client certificates by their names.
func TestCertificates(t *testing.T) {
	c := &clock{now: time.Now()}
	a := authn.New(&directory{}, authn.Options{Now: c.Now})
	t.Cleanup(a.Close)
	err := a.Trusted(&authn.Trust{ClientCertificates: &authn.Certificates{Rules: []authn.Rule{
		{When: map[string]authn.Words{"uri": {"spiffe://acme.example/agent/*"}}, Team: "acme", Project: "app", Role: "writer"},
		{When: map[string]authn.Words{"cn": {"ann", "Ann Lee"}, "ou": {"people"}}, Team: "acme", Role: "admin"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(cn, ou, uri string) *x509.Certificate {
		tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: cn}, NotBefore: c.Now().Add(-time.Minute), NotAfter: c.Now().Add(time.Hour)}
		if ou != "" {
			tmpl.Subject.OrganizationalUnit = []string{"staff", ou}
		}
		if uri != "" {
			u, err := url.Parse(uri)
			if err != nil {
				t.Fatal(err)
			}
			tmpl.URIs = []*url.URL{u}
		}
		der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return cert
	}
	pod := issue("pod-7", "", "spiffe://acme.example/agent/seven")
	if id, err := a.Certified(pod); err != nil || id.Principal() != "cert:spiffe://acme.example/agent/seven" || id.Project != "app" || id.Role != "writer" {
		t.Errorf("by URI: %+v, %v", id, err)
	}
	if id, err := a.Certified(issue("Ann Lee", "people", "")); err != nil || id.Principal() != "cert:Ann Lee" || id.Role != "admin" {
		t.Errorf("by name and unit: %+v, %v", id, err)
	}
	if _, err := a.Certified(issue("ann", "robots", "")); !errors.Is(err, memory.ErrPermissionDenied) {
		t.Errorf("another unit: %v", err)
	}
	if _, err := a.Certified(issue("", "people", "")); !errors.Is(err, memory.ErrUnauthenticated) {
		t.Errorf("no name: %v", err)
	}
	c.move(2 * time.Hour)
	if _, err := a.Certified(pod); !errors.Is(err, memory.ErrUnauthenticated) {
		t.Errorf("past its time: %v", err)
	}
	if err := a.Trusted(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Certified(pod); !errors.Is(err, memory.ErrUnauthenticated) {
		t.Errorf("without rules: %v", err)
	}
}
