package syncer

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/memsvc/memsvc/internal/agent/reconcile"
	"github.com/memsvc/memsvc/internal/memory"
)

// recover compares everything with a hub whose history is not the one that the cursor
// from is of. The hub is asked anew how far back it reaches, since it may have been
// restored once more. The baseline may have learned already from a history that was there
// in between; what all of them share is what the ones before this one shared.
func (c *cycle) recover(ctx context.Context, from memory.Cursor) error {
	rewind, epoch, err := c.fork(ctx, from)
	if err != nil {
		return &stepError{step: "ask the hub where it stands", err: err}
	}
	now := Recovery{Rewind: rewind, From: from, Epoch: epoch}
	was := c.s.state.Recovery
	if was != nil {
		now.Rewind = min(now.Rewind, was.Rewind)
	}
	if was == nil || c.s.offered == nil {
		c.s.offered, c.s.undone = map[memory.Path]bool{}, map[memory.Path]bool{}
	}
	if was == nil || *was != now {
		if err := c.s.save(ctx, Update{SetRecovery: &now}); err != nil {
			return err
		}
	}
	return c.pullAll(ctx, reasonRewound, from, now.Rewind)
}

type pullReason uint8

const (
	reasonFresh pullReason = iota
	reasonCompacted
	reasonRewound
	reasonUpdated // a path that an older agent could not hold is one now
)

// pullAll lists everything the hub holds and brings the baseline into a form from
// which the plan does the right thing.
func (c *cycle) pullAll(ctx context.Context, why pullReason, from memory.Cursor, rewind memory.Revision) error {
	listing, err := c.s.ports.Remote.List(ctx, ListOptions{Deleted: true, EarlierETags: why == reasonFresh || why == reasonRewound})
	if err != nil {
		return &stepError{step: "list the project", err: err}
	}
	c.full, c.cursor = true, listing.Head
	c.remote = make(map[memory.Path]remoteFile, len(listing.Memories))
	facts := make(map[memory.Path]reconcile.Facts, len(listing.Memories))
	for _, u := range listing.Unfit {
		c.holdUnfit(u)
	}
	for _, m := range listing.Memories {
		if _, err := memory.ParsePath(string(m.Path)); err != nil {
			c.holdUnfit(memory.Unfit{Path: string(m.Path), Deleted: m.Deleted})
			continue
		}
		facts[m.Path] = reconcile.Facts{ETag: m.ETag, Revision: m.Revision, Last: m.LastETag, Earlier: m.EarlierETags}
		seen := map[memory.ETag]memory.Revision{}
		for _, e := range append(m.EarlierETags, m.ETag, m.LastETag) {
			if e != "" {
				seen[e] = m.Revision
			}
		}
		c.passed[m.Path] = seen
		if !m.Deleted {
			c.credited(ctx, m.Path, m.ETag, m.Author)
			c.remote[m.Path] = remoteFile{ETag: m.ETag, Revision: m.Revision, Size: m.Size, ModTime: m.ModTime, Author: m.Author}
		}
	}
	c.admit()
	switch why {
	case reasonFresh:
		c.adopt(facts)
	case reasonRewound:
		c.rebase(ctx, facts, from, rewind)
	case reasonUpdated:
		c.keepKnown(facts)
		c.note(Note{Kind: NoteRecovered, Text: "an older agent could not hold all paths of the hub; compared in full"})
	case reasonCompacted:
		c.keepKnown(facts)
		c.note(Note{Kind: NoteRecovered, Text: "the cursor was older than what the hub keeps; compared in full"})
	}
	return nil
}

// keepKnown readies the baseline for a comparison with a hub that has forgotten what
// lies between. Tombstones are never forgotten: a path that the hub knows nothing of
// was never there, whatever our cursor fits, and is offered again instead of deleted.
func (c *cycle) keepKnown(facts map[memory.Path]reconcile.Facts) {
	for _, p := range slices.Sorted(maps.Keys(c.base)) {
		b := c.base[p]
		f, known := facts[p]
		if !known {
			delete(c.base, p)
			c.note(Note{Kind: NoteReoffered, Path: p, ETag: b.Text})
			continue
		}
		b.HubRevision = 0
		if f.ETag == b.Hub {
			b.HubRevision = f.Revision
		}
		c.base[p] = b
	}
}

// adopt makes a baseline for a machine that has none (ruling 13.5).
func (c *cycle) adopt(facts map[memory.Path]reconcile.Facts) {
	local := reconcile.Without(c.local, func(p memory.Path) bool {
		_, done := c.base[p] // before a crash
		return done || c.masked(p)
	})
	base, stale := reconcile.Adopt(local, facts)
	for _, p := range stale {
		c.stale[p] = true
		b := base[p]
		c.base[p] = BaseEntry{Text: b.Text, Hub: b.Hub, Local: b.Local}
	}
	// Files that are the same on both sides come out of the plan as Agree, which
	// saves their texts; so nothing is put into the baseline for them here.
	if len(local) > 0 && len(facts) > 0 {
		c.note(Note{Kind: NoteRecovered, Text: fmt.Sprintf("no sync state was found; %d local files were compared with the hub", len(local))})
	}
}

// rebase brings the baseline over to another history (ruling 13.4).
func (c *cycle) rebase(ctx context.Context, facts map[memory.Path]reconcile.Facts, from memory.Cursor, rewind memory.Revision) {
	at := make(map[memory.Path]memory.Revision, len(c.base))
	for p, b := range c.base {
		at[p] = b.HubRevision
	}
	for _, x := range c.s.state.Conflicts {
		// The hub may have lost what it kept; that is no resolution.
		if x.Reported {
			x.Reported, x.Kept = false, false
			c.todo.PutConflicts = append(c.todo.PutConflicts, x)
		}
	}
	was := c.baseline()
	for _, p := range reconcile.UndoneDeletes(was, c.local, facts, rewind, from.Revision) {
		if !c.masked(p) {
			c.s.undone[p] = true
			c.note(Note{Kind: NoteDeleteUndone, Path: p, ETag: facts[p].ETag})
		}
	}
	now := reconcile.Rebase(was, at, facts, rewind)
	for _, p := range slices.Sorted(maps.Keys(was)) {
		b := was[p]
		n, kept := now[p]
		if edited := c.local[p] != "" && c.local[p] != b.Local; edited && b.Text == b.Hub && (!kept || n != b) {
			// The hub may come to the agreed text again, by a machine that has not
			// edited it since. Then it is what our edit was made on.
			if text, err := c.text(ctx, b.Text); err == nil {
				c.intend(p, text)
			}
		}
		if (!kept || n != b) && c.local[p] != b.Local && !facts[p].Knew(b.Text) {
			// Neither side holds the agreed text any more: its last copy is ours.
			c.todo.PutTrash = append(c.todo.PutTrash, Trashed{ID: textID(string(p), string(b.Text)), Path: p, ETag: b.Text,
				Reason: trashLost, Time: c.now})
		}
		switch {
		case !kept:
			delete(c.base, p)
			c.s.offered[p] = true
			c.note(Note{Kind: NoteReoffered, Path: p, ETag: b.Text})
		case n != b:
			c.base[p] = BaseEntry{Text: n.Text, Hub: n.Hub, Local: n.Local, HubRevision: facts[p].Revision}
			c.s.offered[p] = true
			c.note(Note{Kind: NoteReoffered, Path: p, ETag: b.Text})
		default:
			// Revisions of the other history say nothing in this one.
			e := c.base[p]
			e.HubRevision = 0
			if facts[p].ETag == e.Hub {
				e.HubRevision = facts[p].Revision
			}
			c.base[p] = e
		}
	}
}
