package openai

import (
	"encoding/json"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/model/jsonhttp"
)

// maxCalls bounds the calls of one answer: their numbers come from the server.
const maxCalls = 256

// piece is one event of a stream.
type piece struct {
	Choices []struct {
		Delta struct {
			Content   string `json:"content"`
			ToolCalls []struct {
				Index int `json:"index"`
				call
			} `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage          `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// Begin forgets the pieces of a try before.
func (r *response) Begin() { *r = response{} }

// Whole reports whether the answer is finished: some servers close the stream without
// the mark that ends it.
func (r *response) Whole() bool {
	r.join()
	return len(r.Choices) > 0 && r.Choices[0].FinishReason != ""
}

// join makes the answer of its pieces.
func (r *response) join() {
	if len(r.Choices) == 0 {
		return
	}
	m := &r.Choices[0].Message
	if text := string(r.text); text != "" {
		m.Content = &text
	}
	for i, args := range r.args {
		m.ToolCalls[i].Function.Arguments = string(args)
	}
}

// Event takes one event of the stream.
func (r *response) Event(data []byte) (last bool, err error) {
	if string(data) == "[DONE]" {
		r.join()
		return true, nil
	}
	var p piece
	if json.Unmarshal(data, &p) != nil {
		return false, model.ErrMalformed
	}
	if len(p.Error) > 0 && string(p.Error) != "null" {
		return false, jsonhttp.Failed(data)
	}
	if p.Usage != nil {
		r.Usage = *p.Usage
	}
	if len(p.Choices) == 0 {
		return false, nil
	}
	if len(r.Choices) == 0 {
		r.Choices = make([]choice, 1)
	}
	from, to := p.Choices[0], &r.Choices[0]
	r.text = append(r.text, from.Delta.Content...)
	for _, c := range from.Delta.ToolCalls {
		if c.Index < 0 || c.Index > len(to.Message.ToolCalls) || c.Index >= maxCalls {
			return false, model.ErrMalformed
		}
		if c.Index == len(to.Message.ToolCalls) {
			to.Message.ToolCalls, r.args = append(to.Message.ToolCalls, call{}), append(r.args, nil)
		}
		into := &to.Message.ToolCalls[c.Index]
		if c.ID != "" {
			into.ID = c.ID
		}
		if c.Function.Name != "" {
			into.Function.Name = c.Function.Name
		}
		r.args[c.Index] = append(r.args[c.Index], c.Function.Arguments...)
	}
	if from.FinishReason != "" {
		to.FinishReason = from.FinishReason
	}
	return false, nil
}
