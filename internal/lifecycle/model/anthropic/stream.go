package anthropic

import (
	"encoding/json"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/model/jsonhttp"
)

// piece is one event of a stream; which fields it has goes by its type.
type piece struct {
	Type    string   `json:"type"`
	Index   int      `json:"index"`
	Message response `json:"message"`       // message_start
	Block   block    `json:"content_block"` // content_block_start
	Delta   struct {
		Type       string `json:"type"`
		Text       string `json:"text"`         // text_delta
		Input      string `json:"partial_json"` // input_json_delta
		StopReason string `json:"stop_reason"`  // of message_delta
	} `json:"delta"`
	Usage usage `json:"usage"` // message_delta
}

// Begin forgets the pieces of a try before.
func (r *response) Begin() { *r = response{} }

// Whole is false: a stream that has said all ends with an event that says so.
func (r *response) Whole() bool { return false }

// Event takes one event of the stream.
func (r *response) Event(data []byte) (last bool, err error) {
	var p piece
	if json.Unmarshal(data, &p) != nil {
		return false, model.ErrMalformed
	}
	switch p.Type {
	case "message_start":
		r.Type, r.Usage = p.Message.Type, p.Message.Usage
	case "content_block_start":
		if p.Index != len(r.Content) {
			return false, model.ErrMalformed
		}
		r.Content, r.grown = append(r.Content, p.Block), append(r.grown, []byte(p.Block.Text))
	case "content_block_delta":
		if p.Index != len(r.Content)-1 {
			return false, model.ErrMalformed
		}
		r.grown[p.Index] = append(append(r.grown[p.Index], p.Delta.Text...), p.Delta.Input...)
	case "message_delta":
		r.StopReason = p.Delta.StopReason
		r.Usage.Output = max(r.Usage.Output, p.Usage.Output) // it counts from the start
	case "message_stop":
		for i, b := range r.grown {
			switch {
			case r.Content[i].Type == "text":
				r.Content[i].Text = string(b)
			case len(b) > 0:
				r.Content[i].Input = b
			}
		}
		return true, nil
	case "error":
		return false, jsonhttp.Failed(data)
	} // others, such as ping, say nothing for us
	return false, nil
}
