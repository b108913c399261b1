package synctest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// State is a durable state in memory. It refuses an update that refers to a text
// whose bytes it never got, so that a syncer which forgets them is found out.
type State struct {
	// Hook, if set, is called around every operation.
	Hook Hook

	now   syncer.LinkState
	texts map[memory.ETag][]byte
	// safe is what a loss of power leaves: now, less relaxed updates at the end.
	safe      syncer.LinkState
	safeTexts map[memory.ETag][]byte
}

// NewState returns the state of a link of which nothing is known.
func NewState() *State {
	s := &State{}
	s.Lose()
	return s
}

// Lose forgets everything, as when the state directory is deleted.
func (s *State) Lose() {
	s.now, s.safe = syncer.NewLinkState(), syncer.NewLinkState()
	s.texts, s.safeTexts = map[memory.ETag][]byte{}, map[memory.ETag][]byte{}
}

// PowerLoss forgets the relaxed updates that no other update came after.
func (s *State) PowerLoss() {
	s.now, s.texts = clone(s.safe), maps.Clone(s.safeTexts)
}

// Link returns a copy of what is kept.
func (s *State) Link() syncer.LinkState { return clone(s.now) }

// Kept returns all texts that are kept.
func (s *State) Kept() [][]byte {
	var out [][]byte
	for _, e := range slices.Sorted(maps.Keys(s.texts)) {
		out = append(out, s.texts[e])
	}
	return out
}

// Load is syncer.State's.
func (s *State) Load(ctx context.Context) (syncer.LinkState, error) {
	if err := firstError(ctx.Err(), s.Hook.before("load")); err != nil {
		return syncer.LinkState{}, err
	}
	return clone(s.now), s.Hook.after("load")
}

// Apply is syncer.State's.
func (s *State) Apply(ctx context.Context, u syncer.Update) error {
	if err := firstError(ctx.Err(), s.Hook.before("apply")); err != nil {
		return err
	}
	next, texts := clone(s.now), maps.Clone(s.texts)
	for _, t := range u.Texts {
		texts[memory.ETagOf(t)] = bytes.Clone(t)
	}
	next.Apply(u)
	used := next.Texts()
	for e := range used {
		if _, kept := texts[e]; !kept && e != memory.ETagOf(nil) {
			return fmt.Errorf("the update refers to the text %.8s, whose bytes were never given", string(e))
		}
	}
	maps.DeleteFunc(texts, func(e memory.ETag, _ []byte) bool { return !used[e] })
	s.now, s.texts = next, texts
	if !u.Relaxed {
		s.safe, s.safeTexts = clone(next), maps.Clone(texts)
	}
	return s.Hook.after("apply")
}

// Forget is syncer.State's; nothing is kept here that the state does not refer to.
func (s *State) Forget(ctx context.Context) error {
	return firstError(ctx.Err(), s.Hook.before("forget"), s.Hook.after("forget"))
}

// Aside is syncer.State's; nothing is put aside here.
func (s *State) Aside(context.Context, func([]byte) error) (put bool, err error) { return false, nil }

// DropAside is syncer.State's.
func (s *State) DropAside(context.Context) error { return nil }

// Text is syncer.State's.
func (s *State) Text(ctx context.Context, e memory.ETag) ([]byte, error) {
	if err := firstError(ctx.Err(), s.Hook.before("text")); err != nil {
		return nil, err
	}
	t, ok := s.texts[e]
	if !ok {
		return nil, syncer.ErrNoText
	}
	return bytes.Clone(t), s.Hook.after("text")
}

func clone(s syncer.LinkState) syncer.LinkState {
	s.Baseline, s.Conflicts, s.Held = maps.Clone(s.Baseline), maps.Clone(s.Conflicts), maps.Clone(s.Held)
	s.Resolved = maps.Clone(s.Resolved)
	s.Intents, s.Ahead, s.Trash = maps.Clone(s.Intents), maps.Clone(s.Ahead), maps.Clone(s.Trash)
	s.Notes, s.Marks = slices.Clone(s.Notes), slices.Clone(s.Marks)
	if s.Halt != nil {
		h := *s.Halt
		h.Missing = slices.Clone(h.Missing)
		s.Halt = &h
	}
	if s.Recovery != nil {
		r := *s.Recovery
		s.Recovery = &r
	}
	return s
}

// Size is syncer.Sizer's.
func (s *State) Size(etag memory.ETag) int64 { return int64(len(s.texts[etag])) }
