// Package openai is the language model port over OpenAI's chat completions protocol,
// which many other providers and local servers speak too.
package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/model/jsonhttp"
)

// DefaultEndpoint is the provider's own. Endpoints end where the protocol's paths begin,
// as http://127.0.0.1:11434/v1 does.
const DefaultEndpoint = "https://api.openai.com/v1"

const defaultMaxTokens = 4096

// Model speaks to one model. It is safe for concurrent use.
type Model struct {
	name, endpoint string
	key            func() (string, error)
	call           jsonhttp.Caller
}

// New returns the model called name at endpoint, "" for the provider's own. key is asked
// for each call; "" sends none, as local servers want it. Prompts are cached by the
// provider without being asked.
func New(name, endpoint string, key func() (string, error)) *Model {
	if endpoint == "" {
		endpoint = DefaultEndpoint
	}
	return &Model{name: name, endpoint: strings.TrimRight(endpoint, "/"), key: key, call: jsonhttp.Caller{Provider: "openai", Client: jsonhttp.NewClient()}}
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"` // JSON, as the model wrote it
	} `json:"function"`
}

type message struct {
	Role       string  `json:"role"`
	Content    *string `json:"content"` // null beside calls
	ToolCalls  []call  `json:"tool_calls,omitempty"`
	ToolCallID string  `json:"tool_call_id,omitempty"`
}

type request struct {
	Model     string    `json:"model"`
	Messages  []message `json:"messages"`
	Tools     []tool    `json:"tools,omitempty"`
	MaxTokens int       `json:"max_tokens,omitempty"`
	// MaxCompletionTokens is the newer name, which only the provider itself insists on.
	MaxCompletionTokens int            `json:"max_completion_tokens,omitempty"`
	Stream              bool           `json:"stream"`
	StreamOptions       *streamOptions `json:"stream_options,omitempty"`
}

// streamOptions ask for the count of tokens, which a stream otherwise leaves out.
type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type response struct {
	Choices []choice `json:"choices"`
	Usage   usage    `json:"usage"`

	// What has come in pieces: the text, and the arguments of the calls.
	text []byte
	args [][]byte
}

type choice struct {
	Message      message `json:"message"`
	FinishReason string  `json:"finish_reason"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// Complete asks the model; see model.Model.
func (m *Model) Complete(ctx context.Context, req model.Request) (model.Response, error) {
	key, err := m.key()
	if err != nil {
		return model.Response{}, fmt.Errorf("openai: %w: %w", err, model.ErrDenied)
	}
	header := http.Header{}
	if key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
	var resp response
	if err := m.call.Post(ctx, m.endpoint+"/chat/completions", header, m.request(req), &resp); err != nil {
		return model.Response{}, err
	}
	return answer(&resp)
}

func (m *Model) request(req model.Request) request {
	out := request{Model: m.name, Stream: true, StreamOptions: &streamOptions{true}}
	limit := req.MaxTokens
	if limit <= 0 {
		limit = defaultMaxTokens
	}
	if m.endpoint == DefaultEndpoint {
		out.MaxCompletionTokens = limit
	} else {
		out.MaxTokens = limit
	}
	if req.System != "" {
		out.Messages = append(out.Messages, message{Role: "system", Content: &req.System})
	}
	for _, t := range req.Tools {
		out.Tools = append(out.Tools, tool{"function", function{t.Name, t.Description, t.Schema}})
	}
	for _, msg := range req.Messages {
		out.Messages = append(out.Messages, messages(msg)...)
	}
	return out
}

// messages splits a message: answers of tools are messages of their own, before what is
// said beside them.
func messages(msg model.Message) []message {
	var out []message
	said := message{Role: string(msg.Role)}
	text := ""
	for _, p := range msg.Parts {
		switch {
		case p.Result != nil:
			content := p.Result.Text
			if p.Result.Error {
				content = "error: " + content // the protocol has no word for it
			}
			out = append(out, message{Role: "tool", ToolCallID: p.Result.ID, Content: &content})
		case p.Call != nil:
			c := call{ID: p.Call.ID, Type: "function"}
			c.Function.Name, c.Function.Arguments = p.Call.Name, string(p.Call.Input)
			said.ToolCalls = append(said.ToolCalls, c)
		default:
			text += p.Text
		}
	}
	if text != "" {
		said.Content = &text
	}
	if said.Content != nil || said.ToolCalls != nil {
		out = append(out, said)
	}
	return out
}

func answer(resp *response) (model.Response, error) {
	out := model.Response{Stop: model.StopEnd, Usage: model.Usage{
		Input: resp.Usage.Prompt, Output: resp.Usage.Completion, Cached: resp.Usage.Details.Cached,
	}}
	if len(resp.Choices) == 0 {
		return out, fmt.Errorf("openai: %w", model.ErrMalformed)
	}
	choice := resp.Choices[0]
	if t := choice.Message.Content; t != nil && *t != "" {
		out.Parts = append(out.Parts, model.Part{Text: *t})
	}
	for i, c := range choice.Message.ToolCalls {
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d", i+1) // some servers leave it out
		}
		out.Parts = append(out.Parts, model.Part{Call: &model.ToolCall{ID: c.ID, Name: c.Function.Name, Input: json.RawMessage(c.Function.Arguments)}})
		out.Stop = model.StopTools
	}
	switch choice.FinishReason {
	case "length":
		out.Stop = model.StopLength
	case "content_filter":
		return out, fmt.Errorf("openai: it declined this request: %w", model.ErrDenied)
	}
	return out, nil
}
