// Package changefeedtest checks the promises of a watch (SPEC 4.2) on what a
// watcher was told, whether it came from the feed itself, over gRPC or over REST.
package changefeedtest

import (
	"fmt"
	"time"

	"github.com/memsvc/memsvc/internal/hub/changefeed"
	"github.com/memsvc/memsvc/internal/memory"
)

// Checker follows one watcher. Its methods return an error that names the broken
// promise; the zero value is not usable, see New.
type Checker struct{ places map[memory.ProjectKey]*place }

type place struct {
	at      memory.Revision
	ids     map[memory.Revision]memory.CommitID
	changes map[memory.Revision]int
	last    time.Time
	begun   bool
}

// New returns a checker of a watcher that starts after the given revisions at the
// time now.
func New(starts map[memory.ProjectKey]memory.Revision, now time.Time) *Checker {
	c := &Checker{places: map[memory.ProjectKey]*place{}}
	for key, at := range starts {
		c.places[key] = &place{at: at, last: now, ids: map[memory.Revision]memory.CommitID{}, changes: map[memory.Revision]int{}}
	}
	return c
}

func (c *Checker) place(key memory.ProjectKey, now time.Time) (*place, error) {
	p, ok := c.places[key]
	if !ok {
		return nil, fmt.Errorf("event of %s, which is not watched", key)
	}
	if quiet := now.Sub(p.last); quiet > changefeed.MaxQuiet {
		return nil, fmt.Errorf("bookmarked: %s was quiet for %v", key, quiet)
	}
	p.last = now
	return p, nil
}

// Away takes for how long the watcher did not read: that is no quiet of the feed's.
func (c *Checker) Away(d time.Duration) {
	for _, p := range c.places {
		p.last = p.last.Add(d)
	}
}

// Bookmark takes a bookmark at the revision.
func (c *Checker) Bookmark(key memory.ProjectKey, at memory.Revision, now time.Time) error {
	p, err := c.place(key, now)
	if err != nil {
		return err
	}
	p.begun = true
	if at != p.at {
		return fmt.Errorf("reliable: bookmark of %s at %d, but commits came up to %d", key, at, p.at)
	}
	return nil
}

// Commit takes a commit with its number of changes.
func (c *Checker) Commit(key memory.ProjectKey, revision memory.Revision, id memory.CommitID, changes int, now time.Time) error {
	p, err := c.place(key, now)
	if err != nil {
		return err
	}
	switch _, again := p.ids[revision]; {
	case !p.begun:
		return fmt.Errorf("first event of %s is commit %d, want a bookmark or a status", key, revision)
	case again:
		return fmt.Errorf("unique: %s revision %d came twice", key, revision)
	case revision <= p.at:
		return fmt.Errorf("ordered: %s revision %d came after %d", key, revision, p.at)
	case revision != p.at+1:
		return fmt.Errorf("reliable: %s revision %d came after %d", key, revision, p.at)
	}
	p.at, p.ids[revision], p.changes[revision] = revision, id, changes
	return nil
}

// At returns the last revision seen of the project.
func (c *Checker) At(key memory.ProjectKey) memory.Revision { return c.places[key].at }

// Event takes an event of the feed itself.
func (c *Checker) Event(ev changefeed.Event, now time.Time) error {
	switch ev.Kind {
	case changefeed.KindBookmark:
		return c.Bookmark(ev.Project, ev.Cursor.Revision, now)
	case changefeed.KindCommit:
		return c.Commit(ev.Project, ev.Commit.Commit.Revision, ev.Commit.Commit.ID, len(ev.Commit.Commit.Changes), now)
	case changefeed.KindStatus, changefeed.KindPolicy:
		_, err := c.place(ev.Project, now)
		return err
	}
	return fmt.Errorf("event of unknown kind %d", ev.Kind)
}

// Complete compares what came with the log: every commit up to the last seen, whole.
func (c *Checker) Complete(key memory.ProjectKey, log []memory.Commit) error {
	p := c.places[key]
	for i := range log {
		want := &log[i]
		if want.Revision > p.at {
			break
		}
		id, ok := p.ids[want.Revision]
		if !ok {
			continue // before the start
		}
		if id != want.ID {
			return fmt.Errorf("reliable: %s revision %d has id %s, the log has %s", key, want.Revision, id, want.ID)
		}
		if got := p.changes[want.Revision]; got != len(want.Changes) {
			return fmt.Errorf("atomic: %s revision %d came with %d changes of %d", key, want.Revision, got, len(want.Changes))
		}
	}
	return nil
}
