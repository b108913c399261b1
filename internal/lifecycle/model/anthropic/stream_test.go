package anthropic_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/model/anthropic"
)

// stream serves a text as a stream that arrives a few bytes at a time.
func stream(t *testing.T, text string) *anthropic.Model {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for len(text) > 0 {
			n := min(len(text), 61)
			if _, err := io.WriteString(w, text[:n]); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			text = text[n:]
		}
	}))
	t.Cleanup(s.Close)
	return anthropic.New("claude-x", s.URL, key)
}

func TestStreams(t *testing.T) {
	tools := testdata(t, "tools.sse")
	half := tools[:strings.Index(tools, "event: message_delta")]
	failed := func(kind string) string {
		return half + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"" + kind + "\",\"message\":\"sk-hush\"}}\n\n"
	}
	for name, test := range map[string]struct {
		text string
		want model.Response
		err  error
	}{
		"tools": {tools, model.Response{Parts: []model.Part{{Text: "我读 it."},
			{Call: &model.ToolCall{ID: "toolu_01", Name: "read", Input: json.RawMessage(`{"path":"a"}`)}},
			{Call: &model.ToolCall{ID: "toolu_02", Name: "list", Input: json.RawMessage(`{}`)}}},
			Stop: model.StopTools, Usage: model.Usage{Input: 2105, Output: 30, Cached: 2000}}, nil},
		"cut off by its length": {testdata(t, "cut.sse"), model.Response{Parts: []model.Part{{Call: &model.ToolCall{ID: "toolu_01", Name: "write", Input: json.RawMessage(`{}`)}}},
			Stop: model.StopLength, Usage: model.Usage{Input: 5, Output: 99}}, nil},
		"broken off":       {half, model.Response{}, model.ErrBusy},
		"overloaded":       {failed("overloaded_error"), model.Response{}, model.ErrBusy},
		"refused":          {failed("invalid_request_error"), model.Response{}, model.ErrDenied},
		"a block missing":  {strings.Replace(tools, `"content_block_start","index":1`, `"content_block_start","index":7`, 1), model.Response{}, model.ErrMalformed},
		"another's stream": {"data: [1]\n\n", model.Response{}, model.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := stream(t, test.text).Complete(t.Context(), model.Request{Messages: []model.Message{model.Say(model.RoleUser, "Hi")}})
			if !errors.Is(err, test.err) || test.err == nil && err != nil {
				t.Errorf("error %v, want %v", err, test.err)
			}
			if err != nil && strings.Contains(err.Error(), "hush") {
				t.Errorf("the error repeats what was said: %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
