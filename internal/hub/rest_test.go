package hub_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// exchange is one request of the golden transcript.
type exchange struct {
	what    string
	method  string
	path    string
	headers []string // Name: value
	body    string
	as      string // whose token; "" = the writer's, "nobody" = none
}

// shownHeaders are those of an answer that are part of the interface.
var shownHeaders = []string{"Content-Type", "ETag", "Memsvc-Revision", "Last-Modified", "Retry-After", "WWW-Authenticate", "X-Request-Id"}

// random matches what differs from run to run: the policy's key, and the fingerprints
// under it.
var random = regexp.MustCompile(`("fingerprint(?:Key)?": )"[^"]+"`)

// TestRESTGolden keeps the outward shape of the REST interface: statuses, headers and
// bodies, as testdata/rest.golden shows them.
func TestRESTGolden(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	h := hubtest.Start(t, hubtest.Options{Now: func() time.Time { return now }})
	tokens := map[string]string{"": h.Token("acme", "app", "writer"), "reader": h.Token("acme", "app", "reader"), "admin": h.AdminToken}
	const base = "/v1/" + project
	one := string(note("one"))
	etag := func(text string) string { return `"` + string(memory.ETagOf([]byte(text))) + `"` }
	base64One := `{"content":"LS0tCm5hbWU6IG4KdHlwZTogcHJvamVjdAotLS0KSlNPTgo="}`
	var out bytes.Buffer
	for _, x := range []exchange{
		{what: "create with the bare text", method: "PUT", path: base + "/memories/a.md", headers: []string{"Content-Type: text/markdown", "If-None-Match: *"}, body: one},
		{what: "create again is refused", method: "PUT", path: base + "/memories/a.md", headers: []string{"Content-Type: text/markdown", "If-None-Match: *"}, body: "two"},
		{what: "the same bytes make no revision", method: "PUT", path: base + "/memories/a.md", headers: []string{"Content-Type: text/markdown; charset=utf-8"}, body: one},
		{what: "replace what was read", method: "PUT", path: base + "/memories/a.md?message=better", headers: []string{"Content-Type: application/json", "If-Match: " + etag(one)}, body: base64One},
		{what: "replace what was not", method: "PUT", path: base + "/memories/a.md", headers: []string{"Content-Type: text/markdown", "If-Match: " + etag(one)}, body: one},
		{what: "a name in Chinese, percent-encoded", method: "PUT", path: base + "/memories/%E7%AC%94%E8%AE%B0/%E6%95%B0%E6%8D%AE.md", headers: []string{"Content-Type: text/markdown"}, body: "数据库备份\n"},
		{what: "read", method: "GET", path: base + "/memories/a.md"},
		{what: "read the bare text", method: "GET", path: base + "/memories/%e7%ac%94%e8%ae%b0/%e6%95%b0%e6%8d%ae.md", headers: []string{"Accept: text/markdown"}},
		{what: "read an old revision", method: "GET", path: base + "/memories/a.md?revision=1", headers: []string{"Accept: text/markdown"}},
		{what: "not modified", method: "GET", path: base + "/memories/a.md?revision=1", headers: []string{"If-None-Match: " + etag(one)}},
		{what: "head", method: "HEAD", path: base + "/memories/a.md"},
		{what: "unknown memory", method: "GET", path: base + "/memories/none.md"},
		{what: "a path that leaves", method: "GET", path: base + "/memories/%2e%2e/%2e%2e/x.md"},
		{what: "a path encoded twice", method: "PUT", path: base + "/memories/%252e%252e%252fx.md", headers: []string{"Content-Type: text/markdown"}, body: "x"},
		{what: "a revision that is none", method: "GET", path: base + "/memories/a.md?revision=x"},
		{what: "a parameter that is none", method: "GET", path: base + "/commits?pagesize=2"},
		{what: "an etag that is none", method: "PUT", path: base + "/memories/a.md", headers: []string{"Content-Type: text/markdown", `If-Match: "abc"`}, body: one},
		{what: "list", method: "GET", path: base + "/memories"},
		{what: "list in pages", method: "GET", path: base + "/memories?pageSize=1&view=MEMORY_VIEW_FULL"},
		{what: "project", method: "GET", path: base},
		{what: "commit", method: "POST", path: base + "/memories:commit", headers: []string{"Content-Type: application/json"}, body: `{"changes":[{"path":"b.md","put":{"content":"Yg=="}},{"path":"c.md","put":{"content":"Yw=="}}],"message":"two at once","author":{"machine":"m"}}`},
		{what: "commit of a secret", method: "POST", path: base + "/memories:commit", headers: []string{"Content-Type: application/json"}, body: `{"changes":[{"path":"s.md","put":{"content":"Z2hwX0cwdjNhTEs5c1E3eFoyYlRuOHdSNWNNNHBVMWpIZjZ5RXZEawo="}}]}`},
		{what: "an unknown field", method: "POST", path: base + "/memories:commit", headers: []string{"Content-Type: application/json"}, body: `{"chnages":[]}`},
		{what: "log", method: "GET", path: base + "/commits?pageSize=2"},
		{what: "search", method: "GET", path: base + "/memories:search?query=%E5%A4%87%E4%BB%BD"},
		{what: "batch", method: "POST", path: base + "/memories:batchGet", headers: []string{"Content-Type: application/json"}, body: `{"paths":["c.md","none.md"]}`},
		{what: "delete what was not read", method: "DELETE", path: base + "/memories/b.md", headers: []string{"If-Match: " + etag(one)}},
		{what: "delete", method: "DELETE", path: base + "/memories/b.md", headers: []string{"If-Match: *"}},
		{what: "delete again", method: "DELETE", path: base + "/memories/b.md"},
		{what: "restore", method: "POST", path: base + "/memories:restore", headers: []string{"Content-Type: application/json"}, body: `{"revision":"4","paths":["b.md"]}`},
		{what: "no credential", method: "GET", path: base + "/memories", as: "nobody"},
		{what: "a reader writes", method: "PUT", path: base + "/memories/a.md", headers: []string{"Content-Type: text/markdown"}, body: "x", as: "reader"},
		{what: "another content type", method: "PUT", path: base + "/memories/a.md", headers: []string{"Content-Type: image/png"}, body: "x"},
		{what: "an unknown resource", method: "GET", path: "/v2/x"},
		{what: "a method that is not there", method: "PATCH", path: base + "/memories/a.md"},
		{what: "watch in the future", method: "GET", path: base + "/memories:watch?afterRevision=99"},
		{what: "watch of an unknown project", method: "GET", path: "/v1/teams/acme/projects/none/memories:watch?afterRevision=0"},
		{what: "policy", method: "GET", path: "/v1/teams/acme/guardPolicy"},
		{what: "create a team", method: "POST", path: "/v1/teams", headers: []string{"Content-Type: application/json"}, body: `{"teamId":"beta"}`, as: "admin"},
		{what: "teams", method: "GET", path: "/v1/teams", as: "admin"},
		{what: "redact", method: "POST", path: base + "/memories/a.md:redact", headers: []string{"Content-Type: application/json"}, body: `{"reason":"leak"}`, as: "admin"},
		{what: "create with plain text", method: "PUT", path: base + "/memories/plain.md", headers: []string{"Content-Type: text/plain"}, body: string(note("plain"))},
		{what: "create without a type", method: "PUT", path: base + "/memories/typeless.md", headers: []string{"Content-Type: text/markdown"}, body: "no head\n"},
		{what: "the same again", method: "PUT", path: base + "/memories/typeless.md", headers: []string{"Content-Type: text/markdown"}, body: "no head\n"},
	} {
		req, err := http.NewRequest(x.method, "http://"+h.HTTPAddr+x.path, strings.NewReader(x.body))
		if err != nil {
			t.Fatal(err)
		}
		for _, header := range x.headers {
			name, value, _ := strings.Cut(header, ": ")
			req.Header.Set(name, value)
		}
		if token, ok := tokens[x.as]; ok {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		req.Header.Set("X-Request-Id", "golden")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if cerr := res.Body.Close(); err != nil || cerr != nil {
			t.Fatal(err, cerr)
		}
		fmt.Fprintf(&out, "### %s\n%s %s\n", x.what, x.method, x.path)
		for _, header := range x.headers {
			fmt.Fprintln(&out, header)
		}
		if x.body != "" {
			fmt.Fprintf(&out, "\n%s\n", strings.TrimRight(x.body, "\n"))
		}
		fmt.Fprintf(&out, "\n%s\n", res.Status)
		for _, name := range shownHeaders {
			if v := res.Header.Get(name); v != "" {
				fmt.Fprintf(&out, "%s: %s\n", name, v)
			}
		}
		if len(body) > 0 {
			fmt.Fprintf(&out, "\n%s\n", pretty(body))
		}
		fmt.Fprintln(&out)
	}
	golden(t, "rest.golden", random.ReplaceAll(out.Bytes(), []byte(`$1"…"`)))
}

// pretty writes JSON in one stable form; other text stays.
func pretty(body []byte) string {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return strings.TrimRight(string(body), "\n")
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimRight(b.String(), "\n")
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; make it with go test -update", err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got); if it is right, go test -update:\n%s", name, d)
	}
}

// restWatch opens a watch over REST and returns its content type and lines.
func restWatch(t *testing.T, h *hubtest.Hub, token, query string, headers map[string]string) (kind string, lines *bufio.Reader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.HTTPAddr+"/v1/"+project+"/memories:watch"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		t.Fatalf("watch: %s", res.Status)
	}
	return res.Header.Get("Content-Type"), bufio.NewReader(res.Body)
}

func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	s, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(s, "\n")
}

// TestRESTWatchNDJSON reads one JSON document a line, with 64-bit numbers as strings.
func TestRESTWatchNDJSON(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	token := h.Token("acme", "app", "writer")
	c := as(t, h, token)
	c.mustCommit(t, put("a.md", "one"))
	kind, r := restWatch(t, h, token, "?afterRevision=0", nil)
	if got := kind; got != "application/x-ndjson" {
		t.Errorf("content type %s", got)
	}
	next := func() (commit int) {
		for {
			var ev struct {
				Commit struct {
					Revision string
					Changes  []struct{ Content []byte }
				}
			}
			if err := json.Unmarshal([]byte(line(t, r)), &ev); err != nil {
				t.Fatal(err)
			}
			if ev.Commit.Revision != "" {
				if !bytes.Contains(ev.Commit.Changes[0].Content, []byte("type: project")) {
					t.Error("content is not inline")
				}
				var n int
				if _, err := fmt.Sscan(ev.Commit.Revision, &n); err != nil {
					t.Fatal(err)
				}
				return n
			}
		}
	}
	if got := next(); got != 1 {
		t.Errorf("first commit %d", got)
	}
	c.mustCommit(t, put("a.md", "two"))
	if got := next(); got != 2 {
		t.Errorf("second commit %d", got)
	}
	// A draining hub says why it ends.
	var stopping sync.WaitGroup
	defer stopping.Wait()
	stopping.Go(h.Stop)
	last := ""
	for {
		s, err := r.ReadString('\n')
		if err != nil {
			break
		}
		last = s
	}
	if !strings.Contains(last, `"error"`) || !strings.Contains(last, "UNAVAILABLE") {
		t.Errorf("last line %q", last)
	}
}

// TestRESTWatchSSE resumes from the id of the last event, as browsers do.
func TestRESTWatchSSE(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	token := h.Token("acme", "app", "writer")
	c := as(t, h, token)
	c.mustCommit(t, put("a.md", "one"))
	c.mustCommit(t, put("a.md", "two"))
	sse := map[string]string{"Accept": "text/event-stream"}
	commits := func(r *bufio.Reader, n int) (ids []string) {
		id, kind := "", ""
		for len(ids) < n {
			switch s := line(t, r); {
			case strings.HasPrefix(s, "id: "):
				id = s[4:]
			case strings.HasPrefix(s, "event: "):
				kind = s[7:]
			case strings.HasPrefix(s, "data: "):
				if !json.Valid([]byte(s[6:])) {
					t.Errorf("data %q", s)
				}
			case s == "":
				if kind == "commit" {
					ids = append(ids, id)
				}
			default:
				t.Errorf("line %q", s)
			}
		}
		return ids
	}
	kind, r := restWatch(t, h, token, "?afterRevision=0", sse)
	if got := kind; got != "text/event-stream" {
		t.Errorf("content type %s", got)
	}
	if d := cmp.Diff([]string{"1", "2"}, commits(r, 2)); d != "" {
		t.Error(d)
	}
	sse["Last-Event-ID"] = "1"
	_, r = restWatch(t, h, token, "?afterRevision=0", sse)
	if d := cmp.Diff([]string{"2"}, commits(r, 1)); d != "" {
		t.Error(d)
	}
}

// TestLargeNumbersOverREST carries revisions beyond 2^53 unharmed, as strings.
func TestLargeNumbersOverREST(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	token := h.Token("acme", "app", "writer")
	req, err := http.NewRequest(http.MethodGet, "http://"+h.HTTPAddr+"/v1/"+project+"/memories/a.md?revision=9007199254740993", nil)
	if err != nil {
		t.Fatal(err)
	}
	as(t, h, token).mustCommit(t, put("a.md", "x"))
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if cerr := res.Body.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	if !strings.Contains(string(body), "9007199254740993") {
		t.Errorf("%s: %s", res.Status, body)
	}
}

// TestSlowHTTPClients drips requests and does not take answers; the hub goes on.
func TestSlowHTTPClients(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	token := h.Token("acme", "app", "writer")
	before := heap()
	var wg sync.WaitGroup
	for i := range 300 {
		c, err := net.Dial("tcp", h.HTTPAddr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		wg.Go(func() {
			switch i % 3 {
			case 0: // half a head
				_, _ = io.WriteString(c, "GET /openapi.json HTTP/1.1\r\nHost: x\r\nX: ")
			case 1: // half a body
				_, _ = fmt.Fprintf(c, "PUT /v1/%s/memories/a.md HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: text/markdown\r\nContent-Length: 9000\r\n\r\nhalf", project, token)
			case 2: // answers that nobody takes
				for range 50 {
					if _, err := io.WriteString(c, "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
						return
					}
				}
			}
		})
	}
	wg.Wait()
	alive(t, h, token, "during")
	if grown := heap() - before; grown > 64<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	req, err := http.NewRequest(http.MethodPut, "http://"+h.HTTPAddr+"/v1/"+project+"/memories/a.md", bytes.NewReader(make([]byte, 20<<20)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "text/markdown")
	res, err := http.DefaultClient.Do(req)
	if err == nil {
		if res.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("20 MiB: %s", res.Status)
		}
		_ = res.Body.Close()
	}
}
