package anthropic_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/model/anthropic"
)

func key() (string, error) { return "sk-hush", nil }

// serve answers every request with a text, and returns the model and what it was asked.
func serve(t *testing.T, answer string) (*anthropic.Model, *map[string]any) {
	t.Helper()
	asked := map[string]any{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/messages" || r.Method != http.MethodPost || r.Header.Get("X-Api-Key") != "sk-hush" || r.Header.Get("Anthropic-Version") != "2023-06-01" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s with %v", r.Method, r.URL, r.Header)
		}
		b, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(b, &asked); err != nil {
			t.Errorf("request %s: %v", b, err)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return anthropic.New("claude-x", s.URL+"/", key), &asked
}

func testdata(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestRequest holds a whole conversation with tools against the recorded shape.
func TestRequest(t *testing.T) {
	m, asked := serve(t, testdata(t, "text.json"))
	_, err := m.Complete(t.Context(), model.Request{
		System: "Be brief.", MaxTokens: 99,
		Tools: []model.Tool{{Name: "read", Description: "Read a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}},
		Messages: []model.Message{
			model.Say(model.RoleUser, "Look."),
			{Role: model.RoleAssistant, Parts: []model.Part{{Text: "I will."}, {Text: ""},
				{Call: &model.ToolCall{ID: "t1", Name: "read", Input: json.RawMessage(`{"path":"a"}`)}},
				{Call: &model.ToolCall{ID: "t2", Name: "read", Input: json.RawMessage(`{"path":`)}}}},
			{Role: model.RoleUser, Parts: []model.Part{{Result: &model.ToolResult{ID: "t1", Text: "A"}}, {Result: &model.ToolResult{ID: "t2", Text: "no", Error: true}}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal([]byte(testdata(t, "request.json")), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, *asked); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestSmallestRequest(t *testing.T) {
	m, asked := serve(t, testdata(t, "text.json"))
	if _, err := m.Complete(t.Context(), model.Request{Messages: []model.Message{model.Say(model.RoleUser, "Hi")}}); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"model": "claude-x", "max_tokens": 4096.0, "stream": true, "messages": []any{map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": "Hi"}}}}}
	if diff := cmp.Diff(want, *asked); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestResponses(t *testing.T) {
	for _, test := range []struct {
		file string
		want model.Response
		err  error
	}{
		{"text.json", model.Response{Parts: []model.Part{{Text: "Hello."}}, Stop: model.StopEnd, Usage: model.Usage{Input: 2105, Output: 12, Cached: 2000}}, nil},
		{"tools.json", model.Response{Parts: []model.Part{{Text: "I read it."}, {Call: &model.ToolCall{ID: "toolu_01", Name: "read", Input: json.RawMessage(`{"path":"a"}`)}}},
			Stop: model.StopTools, Usage: model.Usage{Input: 50, Output: 30}}, nil},
		{"cut.json", model.Response{Parts: []model.Part{{Text: "Half a sen"}}, Stop: model.StopLength, Usage: model.Usage{Input: 5, Output: 99}}, nil},
		{"refusal.json", model.Response{Stop: model.StopEnd, Usage: model.Usage{Input: 5, Output: 1}}, model.ErrDenied},
		{"other.json", model.Response{Stop: model.StopEnd}, model.ErrMalformed},
	} {
		m, _ := serve(t, testdata(t, test.file))
		got, err := m.Complete(t.Context(), model.Request{Messages: []model.Message{model.Say(model.RoleUser, "Hi")}})
		if !errors.Is(err, test.err) || test.err == nil && err != nil {
			t.Errorf("%s: error %v, want %v", test.file, err, test.err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.file, diff)
		}
	}
}

func TestKeyThatCannotBeRead(t *testing.T) {
	m := anthropic.New("claude-x", "http://127.0.0.1:0", func() (string, error) { return "", errors.New("key-file: gone") })
	if _, err := m.Complete(t.Context(), model.Request{}); !errors.Is(err, model.ErrDenied) || !strings.Contains(err.Error(), "key-file: gone") {
		t.Errorf("got %v", err)
	}
}
