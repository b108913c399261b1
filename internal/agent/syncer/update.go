package syncer

import (
	"maps"
	"slices"

	"github.com/memsvc/memsvc/internal/memory"
)

// NewLinkState returns the state of a link of which nothing is known.
func NewLinkState() LinkState {
	s := LinkState{Fresh: true}
	s.fill()
	return s
}

func (s *LinkState) fill() {
	if s.Baseline == nil {
		s.Baseline = map[memory.Path]BaseEntry{}
	}
	if s.Conflicts == nil {
		s.Conflicts = map[string]Conflict{}
	}
	if s.Resolved == nil {
		s.Resolved = map[string]Resolved{}
	}
	if s.Held == nil {
		s.Held = map[memory.Path]Held{}
	}
	if s.Intents == nil {
		s.Intents = map[memory.Path]Intent{}
	}
	if s.Ahead == nil {
		s.Ahead = map[memory.Path]Ahead{}
	}
	if s.Trash == nil {
		s.Trash = map[string]Trashed{}
	}
}

// Apply makes the update in memory. Every State must mean the same by an Update, so
// this is its definition: drops come before puts, and any update ends Fresh.
func (s *LinkState) Apply(u Update) {
	s.fill()
	s.Fresh = false
	if u.LinkID != "" {
		s.LinkID = u.LinkID
	}
	if u.KeepMarks != nil {
		s.cutMarks(*u.KeepMarks)
	}
	for _, m := range u.PutMarks {
		s.mark(m)
	}
	if u.Cursor != nil {
		s.Cursor = *u.Cursor
		s.mark(Mark{s.Cursor.Revision, s.Cursor.CommitID})
	}
	for _, p := range u.DropBaseline {
		delete(s.Baseline, p)
	}
	maps.Copy(s.Baseline, u.PutBaseline)
	for _, id := range u.DropConflicts {
		delete(s.Conflicts, id)
	}
	for _, c := range u.PutConflicts {
		s.Conflicts[c.ID] = c
	}
	for _, id := range u.DropResolved {
		delete(s.Resolved, id)
	}
	for _, r := range u.PutResolved {
		s.Resolved[r.ID] = r
	}
	for _, p := range u.DropHeld {
		delete(s.Held, p)
	}
	for _, h := range u.PutHeld {
		s.Held[h.Path] = h
	}
	for _, p := range u.DropIntents {
		delete(s.Intents, p)
	}
	for _, i := range u.PutIntents {
		s.Intents[i.Path] = i
	}
	for _, p := range u.DropAhead {
		delete(s.Ahead, p)
	}
	for _, a := range u.PutAhead {
		s.Ahead[a.Path] = a
	}
	if u.ClearHalt {
		s.Halt = nil
	}
	if u.SetHalt != nil {
		h := *u.SetHalt
		s.Halt = &h
	}
	for _, id := range u.DropTrash {
		delete(s.Trash, id)
	}
	for _, t := range u.PutTrash {
		s.Trash[t.ID] = t
	}
	if len(u.DropLines) > 0 {
		s.Notes = slices.Clone(s.Notes) // others may hold the old ones
		for i := range s.Notes {
			if n := &s.Notes[i]; n.Kind == NoteIndexLine && slices.Contains(u.DropLines, n.Path) {
				n.Text = LineRedacted
			}
		}
	}
	s.Notes = append(slices.Clip(s.Notes), u.AddNotes...)
	if n := len(s.Notes) - MaxNotes; n > 0 {
		s.Notes = slices.Clone(s.Notes[n:])
	}
	if u.SetRedacting != nil {
		s.Redacting = *u.SetRedacting
	}
	if u.ClearRecovery {
		s.Recovery = nil
	}
	if u.SetRecovery != nil {
		r := *u.SetRecovery
		s.Recovery = &r
	}
}

// Texts returns the etags of all texts that the state refers to; State must keep
// their bytes and may forget all others.
func (s *LinkState) Texts() map[memory.ETag]bool {
	used := map[memory.ETag]bool{}
	use := func(tags ...memory.ETag) {
		for _, t := range tags {
			if t != "" {
				used[t] = true
			}
		}
	}
	for _, b := range s.Baseline {
		use(b.Text)
	}
	for _, c := range s.Conflicts {
		use(c.Local, c.Hub, c.Base)
	}
	for _, i := range s.Intents {
		use(i.Base)
	}
	for _, t := range s.Trash {
		use(t.ETag)
	}
	return used
}
