// Package anthropic is the language model port over Anthropic's Messages protocol.
package anthropic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/model/jsonhttp"
)

// DefaultEndpoint is the provider's own.
const DefaultEndpoint = "https://api.anthropic.com"

// version is the protocol's, which the provider keeps stable.
const version = "2023-06-01"

const defaultMaxTokens = 4096

// Model speaks to one model. It is safe for concurrent use.
type Model struct {
	name, endpoint string
	key            func() (string, error)
	call           jsonhttp.Caller
}

// New returns the model called name at endpoint, "" for the provider's own. key is asked
// for each call, so that a new key needs no restart; "" sends none.
func New(name, endpoint string, key func() (string, error)) *Model {
	if endpoint == "" {
		endpoint = DefaultEndpoint
	}
	return &Model{name: name, endpoint: strings.TrimRight(endpoint, "/"), key: key, call: jsonhttp.Caller{Provider: "anthropic", Client: jsonhttp.NewClient()}}
}

type cacheControl struct {
	Type string `json:"type"`
}

type block struct {
	Type string `json:"type"`
	// of text
	Text string `json:"text,omitempty"`
	// of tool_use
	ID    string          `json:"id,omitempty"`
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	// of tool_result
	ToolUseID string `json:"tool_use_id,omitempty"`
	Content   string `json:"content,omitempty"`
	IsError   bool   `json:"is_error,omitempty"`

	CacheControl *cacheControl `json:"cache_control,omitempty"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type request struct {
	Model     string    `json:"model"`
	MaxTokens int       `json:"max_tokens"`
	System    []block   `json:"system,omitempty"`
	Messages  []message `json:"messages"`
	Tools     []tool    `json:"tools,omitempty"`
	Stream    bool      `json:"stream"`
}

type response struct {
	Type       string  `json:"type"`
	Content    []block `json:"content"`
	StopReason string  `json:"stop_reason"`
	Usage      usage   `json:"usage"`

	grown [][]byte // the blocks' texts and inputs, as far as they have come in pieces
}

type usage struct {
	Input   int `json:"input_tokens"`
	Created int `json:"cache_creation_input_tokens"`
	Read    int `json:"cache_read_input_tokens"`
	Output  int `json:"output_tokens"`
}

// Complete asks the model; see model.Model.
func (m *Model) Complete(ctx context.Context, req model.Request) (model.Response, error) {
	key, err := m.key()
	if err != nil {
		return model.Response{}, fmt.Errorf("anthropic: %w: %w", err, model.ErrDenied)
	}
	header := http.Header{"Anthropic-Version": {version}}
	if key != "" {
		header.Set("X-Api-Key", key)
	}
	var resp response
	if err := m.call.Post(ctx, m.endpoint+"/v1/messages", header, m.request(req), &resp); err != nil {
		return model.Response{}, err
	}
	return answer(&resp)
}

// request is req in the protocol's words. Whatever stays the same from call to call ends
// with a mark for the provider's cache: tools and system, and, where tools make many
// rounds likely, the conversation so far.
func (m *Model) request(req model.Request) request {
	out := request{Model: m.name, MaxTokens: req.MaxTokens, Messages: []message{}, Stream: true}
	if out.MaxTokens <= 0 {
		out.MaxTokens = defaultMaxTokens
	}
	if req.System != "" {
		out.System = []block{{Type: "text", Text: req.System, CacheControl: &cacheControl{"ephemeral"}}}
	}
	for _, t := range req.Tools {
		out.Tools = append(out.Tools, tool{t.Name, t.Description, t.Schema})
	}
	for _, msg := range req.Messages {
		var blocks []block
		for _, p := range msg.Parts {
			switch {
			case p.Call != nil:
				blocks = append(blocks, block{Type: "tool_use", ID: p.Call.ID, Name: p.Call.Name, Input: object(p.Call.Input)})
			case p.Result != nil:
				blocks = append(blocks, block{Type: "tool_result", ToolUseID: p.Result.ID, Content: p.Result.Text, IsError: p.Result.Error})
			case p.Text != "":
				blocks = append(blocks, block{Type: "text", Text: p.Text})
			}
		}
		if len(blocks) > 0 {
			out.Messages = append(out.Messages, message{string(msg.Role), blocks})
		}
	}
	if n := len(out.Messages); n > 0 && len(out.Tools) > 0 {
		last := out.Messages[n-1].Content
		last[len(last)-1].CacheControl = &cacheControl{"ephemeral"}
	}
	return out
}

// object is a call's input, or an empty one if it is none: the protocol takes no other.
func object(input json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil || fields == nil {
		return json.RawMessage("{}")
	}
	return input
}

func answer(resp *response) (model.Response, error) {
	out := model.Response{Stop: model.StopEnd, Usage: model.Usage{
		Input: resp.Usage.Input + resp.Usage.Created + resp.Usage.Read, Output: resp.Usage.Output, Cached: resp.Usage.Read,
	}}
	if resp.Type != "message" || resp.StopReason == "" {
		return out, fmt.Errorf("anthropic: %w", model.ErrMalformed)
	}
	for _, b := range resp.Content {
		switch b.Type {
		case "text":
			out.Parts = append(out.Parts, model.Part{Text: b.Text})
		case "tool_use":
			out.Parts = append(out.Parts, model.Part{Call: &model.ToolCall{ID: b.ID, Name: b.Name, Input: object(b.Input)}})
		} // others, such as thoughts, are not for us
	}
	switch resp.StopReason {
	case "max_tokens", "model_context_window_exceeded":
		out.Stop = model.StopLength
	case "tool_use":
		out.Stop = model.StopTools
	case "refusal":
		return out, fmt.Errorf("anthropic: it declined this request: %w", model.ErrDenied)
	}
	return out, nil
}
