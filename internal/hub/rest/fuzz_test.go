package rest

import (
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// FuzzMatch reads arbitrary paths: a match names a memory below a project, and what it
// holds is left to the path parser.
func FuzzMatch(f *testing.F) {
	for _, s := range []string{
		"/v1/teams/t/projects/p/memories/a.md", "/v1/teams/t/projects/p/memories/", "/v1/teams/%2f/projects/p/memories/%2e%2e%2fx",
		"/v1/teams/t/projects/p/memories:watch", "//v1/teams", "/v1/teams/t/projects/p/memories/%", "/v1/teams/t/projects/p/memories/a/b/c.md",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if m, ok := matchMemory(s); ok && !strings.HasPrefix(m.name(), "teams/") {
			t.Errorf("%q is memory %q", s, m.name())
		}
		if p, ok := matchCollection(s, "memories"); ok && !strings.HasPrefix(p, "teams/") {
			t.Errorf("%q is project %q", s, p)
		}
	})
}

// FuzzPrecondition reads arbitrary conditional headers: a condition, or a refusal.
func FuzzPrecondition(f *testing.F) {
	f.Add(`"abc"`, "")
	f.Add("", "*")
	f.Add(`W/"x", "y"`, `"`)
	f.Fuzz(func(t *testing.T, match, none string) {
		r := &http.Request{Header: http.Header{"If-Match": {match}, "If-None-Match": {none}}}
		pre, err := precondition(r, func() (string, error) { return "present", nil })
		if err != nil && pre.GetEtag() != "" && pre.GetEtag() != "present" {
			t.Errorf("%q %q: %v and %v", match, none, pre, err)
		}
		if err == nil && pre == nil && (match != "" || none != "") {
			t.Errorf("%q %q were dropped silently", match, none)
		}
		noneMatch(none, "etag")
	})
}

// TestBodiesAreNotQuoted takes what the JSON library quotes out of its messages.
func TestBodiesAreNotQuoted(t *testing.T) {
	for in, want := range map[string]string{
		`proto: (line 1:24): invalid value for bytes field content: "hush"`: `body at line 1:24: invalid value; /openapi.json describes it`,
		`proto: (line 1:2): unknown field "chnages"`:                        `body at line 1:2: unknown field "chnages"; /openapi.json describes it`,
		`proto: syntax error (line 3:7): unexpected token hush`:             `body at line 3:7: unexpected token; /openapi.json describes it`,
		`proto: (line 1:2): unknown field "hush hush"`:                      `body at line 1:2: not what the resource takes; /openapi.json describes it`,
		`strconv.ParseInt: parsing "hush": invalid syntax`:                  `the body or a parameter is not what the resource takes; /openapi.json describes it`,
	} {
		// The library puts a no-break space behind "proto:" in some builds.
		for _, text := range []string{in, strings.Replace(in, "proto: ", "proto:\u00a0", 1)} {
			if got := withoutBody(status.New(codes.InvalidArgument, text)).Message(); got != want {
				t.Errorf("%q became %q, want %q", text, got, want)
			}
		}
	}
}
