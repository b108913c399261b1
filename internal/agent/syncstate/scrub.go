package syncstate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/memory"
)

// Forget removes from the disk every byte of what the state refers to no more (ruling
// 13.14), now rather than when the file is rewritten for its length: texts, and lines that
// notes held. The whole old file is overwritten before it is given up; what a disk keeps of
// overwritten blocks is beyond a program. Opening for writing does it too, where there are
// such texts.
func (s *State) Forget(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case s.readOnly:
		return ErrReadOnly
	case s.file == nil || s.size == s.base && len(s.unused()) == 0:
		return nil // there is nothing but the present state
	}
	if err := s.rewrite(span{0, s.size}); err != nil {
		return fmt.Errorf("forget texts in %s: %w", s.dir, err)
	}
	return nil
}

// unused returns where texts lie that the state refers to no more.
func (s *State) unused() (at []span) {
	used := s.state.Texts()
	for e, where := range s.texts {
		if !used[e] {
			at = append(at, where)
		}
	}
	return at
}

// forget is Forget at a start, where nothing says that lines have to go too.
func (s *State) forget() error {
	if at := s.unused(); len(at) > 0 {
		return s.rewrite(at...)
	}
	return nil
}

// Aside calls look with the texts in damaged state that was put aside; see syncer.State.
// look may ask a hub, and may use s: nothing is locked meanwhile.
func (s *State) Aside(_ context.Context, look func(text []byte) error) (put bool, err error) {
	s.mu.Lock()
	names, err := s.asides()
	s.mu.Unlock()
	if err != nil {
		return false, err
	}
	for _, name := range names {
		f, err := s.disk.Open(filepath.Join(s.dir, name, journalName), false)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return put, err
		}
		put = true
		err = eachText(f, look)
		_ = f.Close()
		if err != nil {
			return put, err
		}
	}
	return put, nil
}

// DropAside removes all damaged state that was put aside.
func (s *State) DropAside(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case s.readOnly:
		return ErrReadOnly
	}
	return s.removeAside(0)
}

// Size returns how many bytes a text has that the state keeps; 0 = it keeps none.
func (s *State) Size(etag memory.ETag) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.texts[etag].size
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

// asides returns the directories of damaged state, the oldest first.
func (s *State) asides() (aside []string, err error) {
	entries, err := s.disk.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), asidePrefix) {
			aside = append(aside, e.Name())
		}
	}
	slices.Sort(aside) // the names hold the time
	return aside, nil
}

// removeAside removes all but the newest keep directories of damaged state.
func (s *State) removeAside(keep int) error {
	aside, err := s.asides()
	if err != nil {
		return err
	}
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
