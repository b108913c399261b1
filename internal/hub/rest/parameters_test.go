package rest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/api/openapi"
)

// unconnected returns a front that reaches no server: what it answers, it answers
// alone.
func unconnected(t *testing.T) *Front {
	t.Helper()
	f, err := New(Options{
		Dial:   func(context.Context) (net.Conn, error) { return nil, errors.New("no server") },
		Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// ask returns the status and the message of an answer.
func ask(t *testing.T, f *Front, method, target string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader("{}")))
	var st struct{ Message string }
	if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil && w.Body.Len() > 0 {
		t.Fatalf("%s %s: %v: %s", method, target, err, w.Body)
	}
	return w.Code, st.Message
}

// TestUnknownParameter sends a misspelt parameter to every resource.
func TestUnknownParameter(t *testing.T) {
	f := unconnected(t)
	const base = "/v1/teams/t/projects/p/memories"
	targets := []string{"GET /openapi.json", "GET " + base + "/a.md", "HEAD " + base + "/a.md", "PUT " + base + "/a.md", "DELETE " + base + "/a.md", "GET " + base + ":watch"}
	for route := range f.parameters {
		fill := strings.NewReplacer("{token_id=*}", "tok", "**", "a.md", "*", "x", "}", "")
		at := pathField.ReplaceAllString(route, "$2") // the variable's pattern, with its =
		targets = append(targets, fill.Replace(strings.ReplaceAll(at, "=", "")))
	}
	for _, target := range targets {
		method, path, _ := strings.Cut(target, " ")
		if strings.Contains(path, "//") {
			t.Fatalf("bad target %s", target)
		}
		code, message := ask(t, f, method, path+"?nonsense=1")
		if code != http.StatusBadRequest || (method != http.MethodHead && !strings.HasPrefix(message, `parameter "nonsense": unknown; this resource takes `)) {
			t.Errorf("%s: %d %s", target, code, message)
		}
	}
	if code, message := ask(t, f, http.MethodGet, base+"?pageSize=%zz"); code != http.StatusBadRequest || !strings.Contains(message, "not well-formed") {
		t.Errorf("a broken query: %d %s", code, message)
	}
}

// TestParametersAsPublished compares the parameters that calls take with those that
// the OpenAPI document lists, which another program reads from the contract.
func TestParametersAsPublished(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
		}
	}
	if err := json.Unmarshal(openapi.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	var want []string
	got := []string{"PUT " + strings.Join(writeParameters, " "), "DELETE " + strings.Join(writeParameters, " "), "GET " + strings.Join(watchParameters, " ")}
	for _, methods := range doc.Paths {
		for method, op := range methods {
			var names []string
			for _, p := range op.Parameters {
				if p.In == "query" {
					names = append(names, p.Name)
				}
			}
			slices.Sort(names)
			want = append(want, strings.ToUpper(method)+" "+strings.Join(names, " "))
		}
	}
	for route, names := range unconnected(t).parameters {
		method, _, _ := strings.Cut(route, " ")
		names = slices.DeleteFunc(slices.Clone(names), func(s string) bool { return strings.Contains(s, "_") })
		slices.Sort(names)
		got = append(got, method+" "+strings.Join(names, " "))
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("parameters (-published +taken):\n%s", d)
	}
}

// TestEveryPublishedResourceIsThere asks for each path and method of the document, and for
// methods that no path has.
func TestEveryPublishedResourceIsThere(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(openapi.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	f := unconnected(t)
	for path, methods := range doc.Paths {
		target := variable.ReplaceAllString(path, "x")
		tried := slices.Collect(maps.Keys(methods))
		if methods["get"] != nil && !strings.HasSuffix(path, ":watch") {
			tried = append(tried, "head")
		}
		for _, method := range tried {
			code, message := ask(t, f, strings.ToUpper(method), target)
			if code == http.StatusNotFound || code == http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d %s", method, target, code, message)
			}
		}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(http.MethodOptions, target, nil))
		var allowed []string
		for method := range methods {
			if allowed = append(allowed, strings.ToUpper(method)); method == "get" && !strings.HasSuffix(path, ":watch") {
				allowed = append(allowed, http.MethodHead)
			}
		}
		slices.Sort(allowed)
		if got := w.Header().Get("Allow"); w.Code != http.StatusMethodNotAllowed || got != strings.Join(allowed, ", ") {
			t.Errorf("OPTIONS %s: %d, Allow: %s, want %s", target, w.Code, got, strings.Join(allowed, ", "))
		}
	}
}

// TestKnownParameters lets through what is known, in both spellings: the answer is then
// the missing server's.
func TestKnownParameters(t *testing.T) {
	f := unconnected(t)
	for _, target := range []string{
		"/v1/teams/t/projects/p/memories?pageSize=1&page_token=x&view=MEMORY_VIEW_FULL",
		"/v1/teams/t/projects/p?cursor.commitId=x&cursor.revision=1",
		"/v1/teams/t/projects/p?cursor.commit_id=x",
		"/v1/teams/t/projects/p/memories:search?query=x",
	} {
		if code, message := ask(t, f, http.MethodGet, target); code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %s", target, code, message)
		}
	}
}
