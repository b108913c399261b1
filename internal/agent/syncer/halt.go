package syncer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// ResumeMode says what a person decided about a halted link.
type ResumeMode uint8

// The decisions.
const (
	// AcceptDeletes lets the deletes that were held back go to the hub.
	AcceptDeletes ResumeMode = iota + 1
	// Restore brings the missing files back from the hub.
	Restore
)

// ErrNotHalted means that there is nothing to resume.
var ErrNotHalted = errors.New("the link is not halted")

// Resume ends a halt as the person decided; the next cycle acts on it. Whatever
// directory lies at the path is the workspace from here on, and gets the marker; where
// it had none, its texts that differ from the agreed ones are no edits of these, but
// meet the hub's as equals. It is an ErrNotHalted when there is no halt.
func (s *Syncer) Resume(ctx context.Context, mode ResumeMode) error {
	s.run.Lock()
	defer s.run.Unlock()
	if err := s.load(ctx); err != nil {
		return err
	}
	h := s.state.Halt
	if h == nil {
		return ErrNotHalted
	}
	if mode != AcceptDeletes && mode != Restore {
		return fmt.Errorf("resume: say whether to accept the deletes or to restore the files")
	}
	// A directory that is not there is not decided about.
	snap, err := s.ports.Local.Scan(ctx)
	if err != nil {
		return &stepError{step: "scan the workspace", err: err}
	}
	if snap.Root != RootOK {
		return &stepError{step: "resume", err: fmt.Errorf("the directory is %s: %s", snap.Root, snap.Detail)}
	}
	if snap.Marker == "" {
		// Before the marker is there: after it nothing tells that it was gone.
		var u Update
		s.distrust(&u, slices.Sorted(maps.Keys(s.state.Baseline)), snap)
		if err := s.save(ctx, u); err != nil {
			return err
		}
	}
	if err := s.ports.Local.PutMarker(ctx, s.state.LinkID); err != nil {
		return &stepError{step: "write the workspace's marker", err: err}
	}
	u := Update{ClearHalt: true}
	if mode == AcceptDeletes {
		accepted := *h
		accepted.Accepted = true
		u = Update{SetHalt: &accepted}
	} else {
		s.distrust(&u, h.Missing, snap)
		if err := s.bringBack(ctx, h.Missing, &u); err != nil {
			return err
		}
		s.forgetTaken(&u, snap)
	}
	if err := s.save(ctx, u); err != nil {
		return err
	}
	s.publish(func(st *Status) {
		if st.Phase == PhaseHalted {
			st.Phase = PhasePending
		}
	})
	return nil
}

// distrust takes from the baseline the files that were missing during a halt and are
// there again with another text. Somebody wrote them anew into an empty directory, or
// brought back something old; taken for an edit, an index of one line would take all
// other lines from the team. Without a baseline both texts meet as equals.
func (s *Syncer) distrust(u *Update, missing []memory.Path, snap Snapshot) {
	keep := func(p memory.Path, e memory.ETag) {
		// A hub that was restored meanwhile may not have it any more.
		u.PutTrash = append(u.PutTrash, Trashed{ID: textID(string(p), string(e)), Path: p, ETag: e,
			Reason: "missing, and written anew since", Time: s.ports.Clock()})
	}
	for _, p := range missing {
		f, here := snap.Files[p]
		if !here {
			continue
		}
		if i, sent := s.state.Intents[p]; sent && i.ToHub && f.ETag != i.Wanted {
			if i.Base != "" {
				keep(p, i.Base)
			}
			u.DropIntents = append(u.DropIntents, p)
		}
		if b, known := s.state.Baseline[p]; known && f.ETag != b.Local {
			keep(p, b.Text)
			s.unlearn(u, p, b)
		}
	}
}

// unlearn takes a path from the baseline, and keeps what is known of the hub's side.
func (s *Syncer) unlearn(u *Update, p memory.Path, b BaseEntry) {
	u.DropBaseline = append(u.DropBaseline, p)
	if _, ahead := s.state.Ahead[p]; !ahead && b.Hub != "" {
		u.PutAhead = append(u.PutAhead, Ahead{Path: p, ETag: b.Hub, Revision: b.HubRevision})
	}
}

// forgetTaken takes from the baseline the absent files that an earlier cycle took for
// deleted by the hub, which are on no list of missing ones. A hub that has one again, or
// whose delete met an edit that vanished later, is not told of a delete by nobody: its
// file is pulled.
func (s *Syncer) forgetTaken(u *Update, snap Snapshot) {
	for _, t := range s.state.Trash {
		b, agreed := s.state.Baseline[t.Path]
		if _, here := snap.Files[t.Path]; here || !agreed || t.Reason != trashDeleted || t.ETag != b.Local || slices.Contains(u.DropBaseline, t.Path) {
			continue
		}
		s.unlearn(u, t.Path, b)
	}
}

// bringBack writes the agreed texts of missing files to the disk. They are kept here, so
// that this works without the hub, and with one that has lost them too. If it stops
// half-way the link is still halted, since some of what was missing is missing.
func (s *Syncer) bringBack(ctx context.Context, missing []memory.Path, u *Update) error {
	for _, p := range missing {
		b, known := s.state.Baseline[p]
		source := b.Text
		if i, sent := s.state.Intents[p]; sent && i.ToHub && i.Base != "" {
			// What was on its way to the hub is newer, whether it arrived or not.
			source, known = i.Base, true
		}
		if !known || slices.Contains(u.DropBaseline, p) {
			continue
		}
		text, err := s.textOf(ctx, source)
		if err == nil {
			err = s.ports.Local.Write(ctx, p, text, time.Time{}, "")
		}
		switch {
		case err == nil: // also when it was back by itself
			continue
		case errors.Is(err, ErrLocalChanged), errors.Is(err, ErrLocalBlocked):
			// Something else is there, perhaps unseen by the scan. See distrust.
			u.Texts = append(u.Texts, text)
			e := memory.ETagOf(text)
			u.PutTrash = append(u.PutTrash, Trashed{ID: textID(string(p), string(e)), Path: p, ETag: e,
				Reason: "missing, and its place is taken", Time: s.ports.Clock()})
		case !errors.Is(err, ErrNoText):
			return &stepError{step: "bring back", path: p, err: err}
		}
		// Without a baseline the hub's file is one that this machine never had, and is
		// pulled when it can be.
		u.DropIntents = append(u.DropIntents, p)
		s.unlearn(u, p, b)
	}
	return nil
}
