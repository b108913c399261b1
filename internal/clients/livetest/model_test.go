package livetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// ask is a request that a client sent to the model.
type ask struct {
	Tools   []string // names of the tools that the model may call
	Results int      // tool results in the conversation so far
	Body    string   // as it came
}

// say is what the model answers: a tool's call, or a text that ends the turn.
type say struct {
	Tool string
	Args map[string]any
	Text string
}

// model answers the HTTP interfaces of four vendors from one script.
type model struct {
	t      *testing.T
	URL    string
	script func(ask) say

	mu   sync.Mutex // guards asks
	asks []ask
}

func newModel(t *testing.T, script func(ask) say) *model {
	m := &model{t: t, script: script}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, _ *http.Request) { reply(w, map[string]any{"input_tokens": 10}) })
	mux.HandleFunc("POST /v1/responses", m.responses)
	mux.HandleFunc("POST /v1/chat/completions", m.completions)
	mux.HandleFunc("POST /v1beta/models/{call}", m.generate)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		t.Logf("not scripted: %s %s", r.Method, r.URL.Path)
		http.Error(w, `{"error":{"message":"not scripted"}}`, http.StatusNotFound)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	m.URL = s.URL
	return m
}

// next records a request and asks the script. Requests without tools are the client's
// own affairs, such as a title for the conversation.
func (m *model) next(body string, tools []string, results int) say {
	a := ask{Tools: tools, Results: results, Body: body}
	if len(tools) == 0 {
		return say{Text: "a title"}
	}
	m.mu.Lock()
	m.asks = append(m.asks, a)
	m.mu.Unlock()
	return m.script(a)
}

// Asks returns the requests so far.
func (m *model) Asks() []ask {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asks)
}

func read(r *http.Request, v any) string {
	b, err := io.ReadAll(io.LimitReader(r.Body, 32<<20))
	if err != nil || json.Unmarshal(b, v) != nil {
		return ""
	}
	return string(b)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// event writes a server-sent event; name "" leaves the name away.
func event(w http.ResponseWriter, name string, v any) {
	w.Header().Set("Content-Type", "text/event-stream")
	b, _ := json.Marshal(v)
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", b)
}

type named struct {
	Type     string `json:"type"`
	Name     string `json:"name"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
	// Tools are those of a namespace.
	Tools []named `json:"tools"`
}

func names(list []named) (out []string) {
	for _, n := range list {
		for _, in := range n.Tools {
			out = append(out, n.Name+"."+in.Name)
		}
		switch {
		case len(n.Tools) > 0:
		case n.Name != "":
			out = append(out, n.Name)
		case n.Function.Name != "":
			out = append(out, n.Function.Name)
		default:
			out = append(out, n.Type)
		}
	}
	return out
}

// messages is the Anthropic Messages interface.
func (m *model) messages(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Stream bool    `json:"stream"`
		Tools  []named `json:"tools"`
	}
	body := read(r, &in)
	s := m.next(body, names(in.Tools), strings.Count(body, `"type":"tool_result"`))
	block, start, delta, stop := map[string]any{"type": "text", "text": s.Text}, map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": s.Text}, "end_turn"
	if s.Tool != "" {
		args, _ := json.Marshal(s.Args)
		id := fmt.Sprintf("toolu_%d", len(m.Asks()))
		block = map[string]any{"type": "tool_use", "id": id, "name": s.Tool, "input": s.Args}
		start = map[string]any{"type": "tool_use", "id": id, "name": s.Tool, "input": map[string]any{}}
		delta, stop = map[string]any{"type": "input_json_delta", "partial_json": string(args)}, "tool_use"
	}
	msg := map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []any{block}, "stop_reason": stop, "stop_sequence": nil, "usage": map[string]any{"input_tokens": 10, "output_tokens": 5}}
	if !in.Stream {
		reply(w, msg)
		return
	}
	msg["content"], msg["stop_reason"] = []any{}, nil
	event(w, "message_start", map[string]any{"type": "message_start", "message": msg})
	event(w, "content_block_start", map[string]any{"type": "content_block_start", "index": 0, "content_block": start})
	event(w, "content_block_delta", map[string]any{"type": "content_block_delta", "index": 0, "delta": delta})
	event(w, "content_block_stop", map[string]any{"type": "content_block_stop", "index": 0})
	event(w, "message_delta", map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 5}})
	event(w, "message_stop", map[string]any{"type": "message_stop"})
}

// responses is the OpenAI Responses interface, streamed. A tool called NAMESPACE.NAME is
// one of a namespace; arguments with the only key "input" are a free-form tool's.
func (m *model) responses(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Tools []named `json:"tools"`
	}
	body := read(r, &in)
	s := m.next(body, names(in.Tools), strings.Count(body, `call_output"`))
	item := map[string]any{"type": "message", "id": "m1", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": s.Text}}}
	if s.Tool != "" {
		id := fmt.Sprintf("call_%d", len(m.Asks()))
		args, _ := json.Marshal(s.Args)
		if free, ok := s.Args["input"].(string); ok && len(s.Args) == 1 {
			item = map[string]any{"type": "custom_tool_call", "id": id, "call_id": id, "name": s.Tool, "input": free}
		} else {
			item = map[string]any{"type": "function_call", "id": id, "call_id": id, "name": s.Tool, "arguments": string(args)}
			if space, name, ok := strings.Cut(s.Tool, "."); ok {
				item["namespace"], item["name"] = space, name
			}
		}
	}
	event(w, "response.created", map[string]any{"type": "response.created", "response": map[string]any{"id": "r1"}})
	event(w, "response.output_item.done", map[string]any{"type": "response.output_item.done", "output_index": 0, "item": item})
	event(w, "response.completed", map[string]any{"type": "response.completed", "response": map[string]any{"id": "r1", "usage": map[string]any{
		"input_tokens": 10, "input_tokens_details": nil, "output_tokens": 5, "output_tokens_details": nil, "total_tokens": 15,
	}}})
}

// completions is the OpenAI Chat Completions interface.
func (m *model) completions(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Stream bool    `json:"stream"`
		Tools  []named `json:"tools"`
	}
	body := read(r, &in)
	s := m.next(body, names(in.Tools), strings.Count(body, `"role":"tool"`))
	delta, stop := map[string]any{"role": "assistant", "content": s.Text}, "stop"
	if s.Tool != "" {
		args, _ := json.Marshal(s.Args)
		delta, stop = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"index": 0, "id": fmt.Sprintf("call_%d", len(m.Asks())), "type": "function", "function": map[string]any{"name": s.Tool, "arguments": string(args)},
		}}}, "tool_calls"
	}
	usage := map[string]any{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
	if !in.Stream {
		reply(w, map[string]any{"id": "c1", "object": "chat.completion", "model": "scripted", "choices": []any{map[string]any{"index": 0, "message": delta, "finish_reason": stop}}, "usage": usage})
		return
	}
	chunk := func(delta map[string]any, stop any) map[string]any {
		return map[string]any{"id": "c1", "object": "chat.completion.chunk", "model": "scripted", "choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": stop}}}
	}
	event(w, "", chunk(delta, nil))
	last := chunk(map[string]any{}, stop)
	last["usage"] = usage
	event(w, "", last)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// generate is the Gemini interface.
func (m *model) generate(w http.ResponseWriter, r *http.Request) {
	_, call, _ := strings.Cut(r.PathValue("call"), ":")
	if call == "countTokens" {
		reply(w, map[string]any{"totalTokens": 10})
		return
	}
	var in struct {
		Tools []struct {
			Functions []named `json:"functionDeclarations"`
		} `json:"tools"`
	}
	body := read(r, &in)
	var tools []string
	for _, t := range in.Tools {
		tools = append(tools, names(t.Functions)...)
	}
	s := m.next(body, tools, strings.Count(body, `"functionResponse":`))
	part := map[string]any{"text": s.Text}
	if s.Tool != "" {
		part = map[string]any{"functionCall": map[string]any{"name": s.Tool, "args": s.Args}}
	}
	out := map[string]any{
		"candidates":    []any{map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": []any{part}}, "finishReason": "STOP"}},
		"usageMetadata": map[string]any{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
	}
	if call == "streamGenerateContent" {
		event(w, "", out)
		return
	}
	reply(w, out)
}
