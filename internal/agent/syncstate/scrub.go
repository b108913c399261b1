package syncstate

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// Scrub removes texts for good (ruling 13.14): their bytes, trash that holds them,
// conflicts whose local text they are, and state put aside as damaged. Other mentions
// of them in conflicts become "". It returns the update that it made, so that the
// holder of a LinkState can make it too. Bytes are overwritten before the file is
// given up; what a disk keeps of overwritten blocks is beyond a program.
func (s *State) Scrub(_ context.Context, etags []memory.ETag) (syncer.Update, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.scrubbing(etags)
	if err := s.scrub(u, etags); err != nil {
		return syncer.Update{}, fmt.Errorf("scrub state in %s: %w", s.dir, err)
	}
	return u, nil
}

// Forget removes the bytes of all texts that the state no longer refers to, now rather
// than when the file is rewritten for its length. After a redaction that the syncer
// has worked off this makes the text leave the disk; opening for writing does it too.
func (s *State) Forget(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case s.readOnly:
		return ErrReadOnly
	}
	if err := s.forget(); err != nil {
		return fmt.Errorf("forget texts in %s: %w", s.dir, err)
	}
	return nil
}

func (s *State) forget() error {
	used := s.state.Texts()
	var wipe []span
	for e, at := range s.texts {
		if !used[e] {
			wipe = append(wipe, at)
		}
	}
	if len(wipe) == 0 {
		return nil
	}
	return s.rewrite(wipe...)
}

// scrubbing returns the update that takes all mention of etags out.
func (s *State) scrubbing(etags []memory.ETag) syncer.Update {
	var u syncer.Update
	gone := func(e memory.ETag) bool { return e != "" && slices.Contains(etags, e) }
	for id, c := range s.state.Conflicts {
		if gone(c.Local) {
			u.DropConflicts = append(u.DropConflicts, id)
			continue
		}
		if gone(c.Hub) || gone(c.Base) {
			if gone(c.Hub) {
				c.Hub = ""
			}
			if gone(c.Base) {
				c.Base = ""
			}
			u.PutConflicts = append(u.PutConflicts, c)
		}
	}
	for id, t := range s.state.Trash {
		if gone(t.ETag) {
			u.DropTrash = append(u.DropTrash, id)
		}
	}
	slices.Sort(u.DropConflicts)
	slices.Sort(u.DropTrash)
	return u
}

func (s *State) scrub(u syncer.Update, etags []memory.ETag) error {
	switch {
	case s.closed:
		return ErrClosed
	case s.readOnly:
		return ErrReadOnly
	}
	if err := s.removeAside(0); err != nil {
		return err
	}
	if s.file == nil {
		return nil // nothing was ever saved
	}
	if err := s.apply(u); err != nil {
		return err
	}
	var wipe []span
	for _, e := range etags {
		if at, ok := s.texts[e]; ok {
			wipe = append(wipe, at)
			delete(s.texts, e)
		}
	}
	return s.rewrite(wipe...)
}

// TrimTrash drops trash that is too old or too much (Options) and returns the update
// that it made.
func (s *State) TrimTrash(context.Context) (syncer.Update, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.trim()
	if len(u.DropTrash) == 0 {
		return u, nil
	}
	if err := s.apply(u); err != nil {
		return syncer.Update{}, fmt.Errorf("trim trash in %s: %w", s.dir, err)
	}
	return u, nil
}

// trim returns the update that brings the trash within its bounds.
func (s *State) trim() syncer.Update {
	trash := make([]syncer.Trashed, 0, len(s.state.Trash))
	for _, t := range s.state.Trash {
		trash = append(trash, t)
	}
	// The newest first; what does not fit behind them goes.
	slices.SortFunc(trash, func(a, b syncer.Trashed) int {
		if c := b.Time.Compare(a.Time); c != 0 {
			return c
		}
		return compare(a.ID, b.ID)
	})
	var u syncer.Update
	now, total := s.opts.Now(), int64(0)
	for _, t := range trash {
		total += s.texts[t.ETag].size
		if total > s.opts.TrashBytes || now.Sub(t.Time) > s.opts.TrashAge {
			u.DropTrash = append(u.DropTrash, t.ID)
		}
	}
	return u
}

// asidePrefix begins the directories of damaged state; keepAside is how many of them
// stay for a person to look into.
const (
	asidePrefix = "damaged-"
	keepAside   = 2
)

// putAside moves a damaged journal out of the way.
func (s *State) putAside() error {
	if err := s.removeAside(keepAside - 1); err != nil {
		return err
	}
	aside := filepath.Join(s.dir, asidePrefix+s.opts.Now().UTC().Format("20060102T150405.000000000"))
	if err := s.disk.MkdirAll(aside); err != nil {
		return err
	}
	if err := s.disk.Rename(filepath.Join(s.dir, journalName), filepath.Join(aside, journalName)); err != nil {
		return err
	}
	s.report.Aside = aside
	return s.disk.SyncDir(s.dir)
}

// removeAside removes all but the newest keep directories of damaged state.
func (s *State) removeAside(keep int) error {
	entries, err := s.disk.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var aside []string
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), asidePrefix) {
			aside = append(aside, e.Name())
		}
	}
	slices.Sort(aside) // the names hold the time
	for _, name := range aside[:max(0, len(aside)-keep)] {
		dir := filepath.Join(s.dir, name)
		if err := s.disk.Remove(filepath.Join(dir, journalName)); err != nil {
			return err
		}
		if err := s.disk.Remove(dir); err != nil {
			return err
		}
	}
	return nil
}
