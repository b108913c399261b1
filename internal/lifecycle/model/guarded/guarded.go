// Package guarded is the border between this machine and a language model: whatever a
// request holds, no secret that the guard knows goes to the model, and nothing that
// passes for words of a client or for a turn of the conversation.
package guarded

import (
	"context"
	"errors"
	"slices"

	"github.com/memsvc/memsvc/internal/lifecycle/inject"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
)

// Model asks another one.
type Model struct {
	Model   model.Model
	Secrets model.Secrets
}

// errNoVerdict is a question that the guard cannot judge; a tool's answer that it cannot
// judge is left out of the conversation instead.
var errNoVerdict = errors.New("the secret guard cannot judge what the model was to be asked; it was not asked")

// Complete asks with what may leave the machine of the request, which stays as it is. What
// the model itself wrote into its calls of tools goes back to it unchanged: the provider
// wants it so.
func (m Model) Complete(ctx context.Context, req model.Request) (model.Response, error) {
	req.System = m.Secrets.Masked(req.System) // our words and the person's own
	judged := !model.Unjudged(req.System)
	req.Messages = slices.Clone(req.Messages)
	for i, msg := range req.Messages {
		parts := slices.Clone(msg.Parts)
		for j, p := range parts {
			parts[j].Text = m.shown(p.Text)
			judged = judged && !model.Unjudged(parts[j].Text)
			if p.Result != nil {
				r := *p.Result
				r.Text = m.shown(r.Text)
				parts[j].Result = &r
			}
		}
		req.Messages[i].Parts = parts
	}
	if !judged {
		return model.Response{}, errNoVerdict
	}
	return m.Model.Complete(ctx, req)
}

// shown is judged last by the guard, in the very form that leaves.
func (m Model) shown(text string) string { return m.Secrets.Masked(inject.Neutral(text)) }
