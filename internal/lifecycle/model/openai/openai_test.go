package openai_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/model/openai"
)

// serve answers every request with a text, and returns the model and what it was asked.
func serve(t *testing.T, key, answer string) (*openai.Model, *map[string]any) {
	t.Helper()
	asked := map[string]any{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearer := r.Header.Get("Authorization")
		if r.URL.Path != "/v1/chat/completions" || r.Method != http.MethodPost || key != "" && bearer != "Bearer "+key || key == "" && bearer != "" {
			t.Errorf("%s %s with %v", r.Method, r.URL, r.Header)
		}
		b, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(b, &asked); err != nil {
			t.Errorf("request %s: %v", b, err)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return openai.New("gpt-x", s.URL+"/v1", func() (string, error) { return key, nil }), &asked
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
	m, asked := serve(t, "sk-hush", testdata(t, "text.json"))
	_, err := m.Complete(t.Context(), model.Request{
		System: "Be brief.", MaxTokens: 99,
		Tools: []model.Tool{{Name: "read", Description: "Read a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}},
		Messages: []model.Message{
			model.Say(model.RoleUser, "Look."),
			{Role: model.RoleAssistant, Parts: []model.Part{
				{Call: &model.ToolCall{ID: "t1", Name: "read", Input: json.RawMessage(`{"path":"a"}`)}},
				{Call: &model.ToolCall{ID: "t2", Name: "read", Input: json.RawMessage(`{"path":`)}}}},
			{Role: model.RoleUser, Parts: []model.Part{{Result: &model.ToolResult{ID: "t1", Text: "A"}}, {Result: &model.ToolResult{ID: "t2", Text: "no", Error: true}}, {Text: "Go on."}}},
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

func TestResponses(t *testing.T) {
	for _, test := range []struct {
		file string
		want model.Response
		err  error
	}{
		{"text.json", model.Response{Parts: []model.Part{{Text: "Hello."}}, Stop: model.StopEnd, Usage: model.Usage{Input: 2105, Output: 12, Cached: 2000}}, nil},
		{"tools.json", model.Response{Parts: []model.Part{
			{Call: &model.ToolCall{ID: "call_a", Name: "read", Input: json.RawMessage(`{"path":"a"}`)}},
			{Call: &model.ToolCall{ID: "call_2", Name: "read", Input: json.RawMessage(`{"path":`)}},
		}, Stop: model.StopTools, Usage: model.Usage{Input: 50, Output: 30}}, nil},
		{"cut.json", model.Response{Parts: []model.Part{{Text: "Half a sen"}}, Stop: model.StopLength, Usage: model.Usage{Input: 5, Output: 99}}, nil},
		{"filter.json", model.Response{Stop: model.StopEnd, Usage: model.Usage{Input: 5}}, model.ErrDenied},
		{"other.json", model.Response{Stop: model.StopEnd}, model.ErrMalformed},
	} {
		m, _ := serve(t, "", testdata(t, test.file)) // a local server: no key
		got, err := m.Complete(t.Context(), model.Request{Messages: []model.Message{model.Say(model.RoleUser, "Hi")}})
		if !errors.Is(err, test.err) || test.err == nil && err != nil {
			t.Errorf("%s: error %v, want %v", test.file, err, test.err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.file, diff)
		}
	}
}
