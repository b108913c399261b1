package hooks

import (
	"context"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/recall"
)

// LookupState says how a lookup stands.
type LookupState string

// The states of a lookup.
const (
	LookupNone    LookupState = ""        // nobody works on it
	LookupPending LookupState = "pending" // it goes on
	LookupDone    LookupState = "done"    // a model has chosen
	LookupFailed  LookupState = "failed"  // a model did not choose, or whether one does is not known
)

// Lookup is a prompt that a language model chooses memories for.
type Lookup struct {
	Session  string
	Turn     string // of the caller's own making
	Personal string // directory
	Team     string // directory, "" = none
	Prompt   string
	Tools    []string // used recently and successfully
	Surfaced []string // refs that the conversation has seen
}

// Chosen is what a model chose, in its order; it may be nothing.
type Chosen struct {
	State LookupState
	Turn  string
	Refs  []string
}

// Lookups choose memories with a language model beside a conversation, in a process that
// does not end with an event. A session has one lookup at most.
type Lookups interface {
	// Begin starts a lookup, in the place of an older one of the session, and waits for it
	// as long as a prompt may.
	Begin(ctx context.Context, l Lookup) (Chosen, error)
	// Late returns what was chosen after Begin had returned, once, and does not wait.
	Late(ctx context.Context, session string) (Chosen, error)
	// End ends the session's lookup, if it has one.
	End(ctx context.Context, session string) error
}

// beginLookup has a model choose, where one is at hand.
func (h *handler) beginLookup(ctx context.Context, p Project, req recall.Request, turn string) ([]string, LookupState) {
	l := h.engine.Lookups()
	if l == nil || h.session() == "" {
		return nil, LookupNone
	}
	c, err := l.Begin(ctx, Lookup{
		Session: h.session(), Turn: turn, Personal: p.Personal, Team: p.Team, Prompt: req.Prompt, Tools: req.Tools, Surfaced: req.Surfaced,
	})
	if err != nil {
		return nil, LookupFailed
	}
	return c.Refs, c.State
}

// lateWait bounds how long a tool or the end of a turn waits for the daemon.
const lateWait = 100 * time.Millisecond

// endLookup ends what an older prompt asked for.
func (h *handler) endLookup(ctx context.Context) {
	l := h.engine.Lookups()
	if l == nil || h.session() == "" {
		return
	}
	limited, cancel := context.WithTimeout(ctx, lateWait)
	defer cancel()
	_ = l.End(limited, h.session()) // nobody is there who could be late
}

// late returns the memories that were chosen for the turn's prompt after it was answered.
// A sub-agent has a context of its own, which they were not chosen for. room is
// how much of the context is left, in Chars.
func (h *handler) late(ctx context.Context, room int) (string, error) {
	l := h.engine.Lookups()
	if l == nil || h.session() == "" || h.in.AgentID != "" {
		return "", nil
	}
	limited, cancel := context.WithTimeout(ctx, lateWait)
	defer cancel()
	chosen, err := l.Late(limited, h.session())
	if err != nil || chosen.State != LookupDone || len(chosen.Refs) == 0 {
		return "", err
	}
	p, err := h.engine.Project(ctx, h.in.CWD, "")
	if err != nil {
		return "", err
	}
	c, err := h.conversation(chosen.Turn)
	if err != nil {
		return "", err
	}
	scanned, err := recall.Scan(ctx, p.Personal, p.Team)
	if err != nil {
		return "", err
	}
	return h.give(ctx, p, pick(scanned, chosen.Refs, c.Surfaced), c.used, room, chosen.Turn), nil
}
