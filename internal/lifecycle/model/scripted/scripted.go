// Package scripted is a language model that says what a test told it to.
package scripted

import (
	"context"
	"errors"
	"sync"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
)

// Model answers with Turns, one a call, and remembers what it was asked. When they are
// used up it answers with an error.
type Model struct {
	Turns []Turn

	mu    sync.Mutex // guards Asked and next
	asked []model.Request
	next  int
}

// Turn is one answer: Do, if set, else Err, else Response. Hang waits for the context
// to end.
type Turn struct {
	Response model.Response
	Err      error
	Hang     bool
	Do       func(model.Request) (model.Response, error)
}

// Say is a turn that answers with a text.
func Say(text string) Turn {
	return Turn{Response: model.Response{Parts: []model.Part{{Text: text}}, Stop: model.StopEnd}}
}

// Complete gives the next answer.
func (m *Model) Complete(ctx context.Context, req model.Request) (model.Response, error) {
	m.mu.Lock()
	m.asked = append(m.asked, req)
	if m.next >= len(m.Turns) {
		m.mu.Unlock()
		return model.Response{}, errors.New("scripted model: no turn is left")
	}
	t := m.Turns[m.next]
	m.next++
	m.mu.Unlock()
	switch {
	case t.Hang:
		<-ctx.Done()
		return model.Response{}, ctx.Err()
	case t.Do != nil:
		return t.Do(req)
	}
	return t.Response, t.Err
}

// Asked returns the requests so far.
func (m *Model) Asked() []model.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]model.Request(nil), m.asked...)
}
