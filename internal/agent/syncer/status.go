package syncer

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// Phase is what a link is doing or why it stands still.
type Phase string

// The phases of a link.
const (
	PhaseStarting Phase = "starting" // no cycle has ended yet
	PhaseSyncing  Phase = "syncing"  // a cycle is under way
	PhaseInSync   Phase = "in-sync"  // the last cycle left nothing to do
	PhasePending  Phase = "pending"  // something waits for the next cycle
	PhaseHalted   Phase = "halted"   // a brake; resume decides
	PhaseNoRoot   Phase = "no-root"  // the directory is missing, replaced or unreadable
	PhaseFailing  Phase = "failing"  // the last cycle failed, the next may not
	PhaseStopped  Phase = "stopped"  // it failed for good until a person acts
)

// Status is what a person wants to know of a link. Values are copies, but for the notes.
type Status struct {
	Phase  Phase
	LinkID string
	Cursor memory.Cursor

	Files   int // living files in the baseline
	Pending int // changes known but not yet made on either side

	// Refused are the files that stay on this machine, with file, line and rule.
	Refused   []Held
	Conflicts []Conflict
	// Resolved are the conflicts that are still to be taken off the hub.
	Resolved []Resolved
	// Warnings were said of the shared files that were sent or received since the
	// program began.
	Warnings []memory.Violation
	// Unreadable are the paths that could not be looked at; "" is the whole root.
	Unreadable []memory.Path

	// Notes are the newest events, oldest first, and Asking those of them that want a
	// person's look; see LinkState. Neither may be written to.
	Notes, Asking []Note

	Halt       *Halt
	RootDetail string

	LastSync time.Time // the last cycle that reached the hub and ended well

	Commits int64 // made on the hub, since the start of the program
	Applied int64 // files written or removed here because the hub changed, since then
}

// Status returns where the link stands, also while a cycle runs.
func (s *Syncer) Status() Status {
	s.view.Lock()
	defer s.view.Unlock()
	st := s.status
	st.Refused = slices.Clone(st.Refused)
	st.Conflicts = slices.Clone(st.Conflicts)
	st.Resolved = slices.Clone(st.Resolved)
	st.Warnings = slices.Clone(st.Warnings)
	st.Unreadable = slices.Clone(st.Unreadable)
	if st.Halt != nil {
		h := *st.Halt
		h.Missing = slices.Clone(h.Missing)
		st.Halt = &h
	}
	return st
}

// ruleHubPath is the rule of a path of the hub that is none here.
const ruleHubPath = "hub-path"

// maxWarnings bounds Status.Warnings.
const maxWarnings = 100

// publish brings the status up to date with the state.
func (s *Syncer) publish(change func(*Status)) {
	s.view.Lock()
	defer s.view.Unlock()
	st := &s.status
	if s.loaded {
		st.LinkID, st.Cursor, st.Files, st.Halt = s.state.LinkID, s.state.Cursor, len(s.state.Baseline), s.state.Halt
		st.Refused = slices.SortedFunc(maps.Values(s.state.Held), func(a, b Held) int { return strings.Compare(string(a.Path), string(b.Path)) })
		st.Conflicts = sortedConflicts(s.state.Conflicts)
		st.Notes, st.Asking = slices.Clip(s.state.Notes), s.state.Asking()
		st.Resolved = slices.SortedFunc(maps.Values(s.state.Resolved), func(a, b Resolved) int { return strings.Compare(a.ID, b.ID) })
	}
	change(st)
}

func sortedConflicts(m map[string]Conflict) []Conflict {
	return slices.SortedFunc(maps.Values(m), func(a, b Conflict) int {
		if d := strings.Compare(string(a.Path), string(b.Path)); d != 0 {
			return d
		}
		if d := a.Time.Compare(b.Time); d != 0 {
			return d
		}
		return strings.Compare(a.ID, b.ID)
	})
}
