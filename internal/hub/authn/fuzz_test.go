package authn_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/authn"
	"github.com/memsvc/memsvc/internal/hub/authn/authntest"
)

// FuzzJWT believes no text but the one that the issuer signed.
func FuzzJWT(f *testing.F) {
	i := authntest.New(f, false)
	a := authn.New(&directory{}, authn.Options{})
	f.Cleanup(a.Close)
	err := a.Trusted(&authn.Trust{Issuers: []authn.Issuer{{
		Name: "x", URL: i.URL, Audience: authn.Words{"memsvc"},
		Rules: []authn.Rule{{When: map[string]authn.Words{"sub": {"**"}}, WholeHub: true, Role: "admin"}},
	}}})
	if err != nil {
		f.Fatal(err)
	}
	good := i.Sign(i.Claims(time.Now(), nil))
	parts := strings.Split(good, ".")
	f.Add(good)
	f.Add(parts[0] + "." + parts[1] + ".")
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".")
	f.Add(`{"payload":"` + parts[1] + `"}`)
	f.Add("..")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := a.Authenticate(t.Context(), "Bearer "+text)
		if (err == nil) == (text == good) {
			return
		}
		// The last character of a signature in base64 has bits that say nothing.
		if err == nil && len(text) == len(good) && text[:len(text)-1] == good[:len(good)-1] {
			return
		}
		t.Errorf("%q: %+v, %v", text, id, err)
	})
}

// FuzzRule makes no rule, and applies none, that gives what it must not: another team,
// or a project whose id says more than the claim.
func FuzzRule(f *testing.F) {
	f.Add("acme/*", "acme/pay", "ci~{repository}")
	f.Add("**", "a:b/c", "{repository}")
	f.Add("***", "x", "{repository}~x")
	f.Add("*\n", "\n", "x{repository")
	f.Add("\xe4", "0", "0") // no UTF-8
	f.Fuzz(func(t *testing.T, pattern, value, project string) {
		r := authn.Rule{When: map[string]authn.Words{"repository": {pattern}}, Team: "acme", Project: project, Role: "reader"}
		g, ok, err := authn.Apply(r, map[string]any{"repository": value})
		if err != nil || !ok {
			return
		}
		if g.Team != "acme" || g.Role != "reader" {
			t.Errorf("%+v", g)
		}
		if !strings.Contains(project, "{") && string(g.Project) != project {
			t.Errorf("project %q became %q", project, g.Project)
		}
		if !strings.Contains(pattern, "*") && pattern != value {
			t.Errorf("%q meets %q", pattern, value)
		}
		if !strings.Contains(pattern, "**") && strings.Count(value, "/") != strings.Count(pattern, "/") {
			t.Errorf("%q meets %q", pattern, value)
		}
	})
}
