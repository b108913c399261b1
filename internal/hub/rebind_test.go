package hub_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// page is what a page in a browser gets to know of an answer.
type page struct {
	code   int
	body   string
	closed bool // the connection ends
}

// browser sends a request as a page in a browser would have it sent.
func browser(t *testing.T, h *hubtest.Hub, method, path, token, host string, headers map[string]string) page {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+h.HTTPAddr+path, strings.NewReader("---\nname: n\ntype: project\n---\nx\n"))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	r.Header.Set("Content-Type", "text/markdown")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for name, v := range headers {
		r.Header.Set(name, v)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if cerr := res.Body.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	for name := range res.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("%s %s: the answer carries %s", method, path, name)
		}
	}
	return page{res.StatusCode, string(body), res.Close}
}

// TestRebinding asks REST by foreign names and for foreign pages, with a good token:
// nothing is told and nothing changes.
func TestRebinding(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{Config: func(c *hub.Config) { c.AllowHosts = []string{"hub.example"} }})
	token := h.Token("acme", "app", "writer")
	as(t, h, token).mustCommit(t, put("a.md", "private words"))
	memories := "/v1/" + project + "/memories"
	for _, path := range []string{memories, memories + "/a.md", memories + ":watch", "/openapi.json", "/v1/tokens", "/none"} {
		got := browser(t, h, http.MethodGet, path, token, "evil.example", nil)
		if got.code != http.StatusMisdirectedRequest || strings.Contains(got.body, "private words") || strings.Contains(got.body, "evil") {
			t.Errorf("GET %s by a foreign name: %+v", path, got)
		}
	}
	for name, headers := range map[string]map[string]string{
		"cross site":     {"Sec-Fetch-Site": "cross-site"},
		"same site":      {"Sec-Fetch-Site": "same-site"},
		"foreign origin": {"Origin": "http://evil.example"},
		"no origin":      {"Origin": "null"},
		"another port":   {"Origin": "http://127.0.0.1:1"},
	} {
		for method, path := range map[string]string{
			http.MethodPut: memories + "/b.md", http.MethodDelete: memories + "/a.md", http.MethodPost: memories + ":commit", http.MethodPatch: "/v1/teams/acme",
		} {
			if got := browser(t, h, method, path, token, "", headers); got.code != http.StatusForbidden {
				t.Errorf("%s: %s: %+v", name, method, got)
			}
		}
		if got := browser(t, h, http.MethodOptions, memories+"/a.md", "", "", headers); got.code < 400 {
			t.Errorf("%s: a preflight is answered with %+v", name, got)
		}
	}
	for _, host := range []string{"", "localhost", "hub.example", "HUB.example:443"} {
		if got := browser(t, h, http.MethodGet, memories+"/a.md", token, host, nil); got.code != http.StatusOK {
			t.Errorf("by %q: %+v", host, got)
		}
	}
	if got := browser(t, h, http.MethodPut, memories+"/own.md", token, "hub.example", map[string]string{"Origin": "http://hub.example", "Sec-Fetch-Site": "same-origin"}); got.code != http.StatusCreated {
		t.Errorf("the hub's own page: %+v", got)
	}
	if got := browser(t, h, http.MethodGet, memories+"/a.md", "msv_wrong", "", nil); got.code != http.StatusUnauthorized || !got.closed {
		t.Errorf("without a credential: %+v", got)
	}
}
