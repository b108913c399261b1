package agent

import (
	"bytes"
	"context"
	"strings"
	"unicode/utf8"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
)

// keyless is a model whose answers never hold its key: a server that echoes what it was
// sent must not bring the key into a memory, notes or a terminal.
type keyless struct {
	model.Model
	key func() (string, error)
}

// minMasked is the length in bytes from which a key is masked in what becomes of an
// answer. A shorter one is a word that stands for none, such as "ollama", and would be
// taken out of what people wrote.
const minMasked = 8

// maskedKey stands where a key stood.
const maskedKey = "[key]"

// Complete asks the model.
func (k keyless) Complete(ctx context.Context, req model.Request) (model.Response, error) {
	key, err := k.key()
	resp, failed := k.Model.Complete(ctx, req)
	if err != nil || len(key) < minMasked {
		return resp, failed // without a key that can be read, none was sent
	}
	for i, p := range resp.Parts {
		resp.Parts[i].Text = strings.ReplaceAll(p.Text, key, maskedKey)
		if p.Call != nil {
			c := *p.Call
			c.Input = bytes.ReplaceAll(c.Input, []byte(key), []byte(maskedKey))
			resp.Parts[i].Call = &c
		}
	}
	return resp, failed
}

// maxAnswerShown bounds in bytes what is printed of a model's words.
const maxAnswerShown = 2 << 10

// answerShown returns what may be printed of a model's words: their beginning, visible,
// without the key however short that is.
func (s ModelSettings) answerShown(answer string) string {
	if key, err := s.key()(); err == nil && key != "" {
		answer = strings.ReplaceAll(answer, key, maskedKey)
	}
	answer = visibleText(strings.ToValidUTF8(answer, "·"))
	if len(answer) <= maxAnswerShown {
		return answer
	}
	end := maxAnswerShown
	for end > 0 && !utf8.RuneStart(answer[end]) {
		end--
	}
	return answer[:end] + "\n[cut here]"
}
