package syncer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/memsvc/memsvc/internal/agent/reconcile"
	"github.com/memsvc/memsvc/internal/memory"
)

// remoteFile is what the hub holds at a path.
type remoteFile struct {
	ETag     memory.ETag
	Revision memory.Revision
	Size     int64
	ModTime  time.Time
	Author   memory.Author
	Content  []byte // nil until fetched
}

// pull learns what the hub holds: by its changes since the cursor, or in full after
// a lost state, a changed epoch or a cursor that is too old.
func (c *cycle) pull(ctx context.Context) error {
	s := c.s
	if s.state.Fresh {
		// The first saved step ends Fresh; the empty recovery keeps the rest of the
		// first comparison going across a crash.
		c.todo.SetRecovery = &Recovery{}
		return c.pullAll(ctx, reasonFresh, memory.Cursor{}, 0)
	}
	if r := s.state.Recovery; r != nil {
		if r.From == (memory.Cursor{}) {
			return c.pullAll(ctx, reasonFresh, memory.Cursor{}, 0)
		}
		return c.recover(ctx, *r)
	}
	err := c.pullChanges(ctx)
	if err == nil {
		var rewound bool
		if rewound, err = c.rewound(ctx); rewound {
			r := Recovery{From: s.state.Cursor, Epoch: c.cursor.Epoch}
			if err := s.save(ctx, Update{SetRecovery: &r}); err != nil {
				return err
			}
			return c.recover(ctx, r)
		}
	}
	var e *memory.Error
	switch {
	case errors.Is(err, memory.ErrRevisionCompacted):
		return c.pullAll(ctx, reasonCompacted, s.state.Cursor, 0)
	case errors.Is(err, memory.ErrEpochChanged) && errors.As(err, &e):
		r := Recovery{Rewind: e.RewindRevision, From: s.state.Cursor, Epoch: e.Head.Epoch}
		if err := s.save(ctx, Update{SetRecovery: &r}); err != nil {
			return err
		}
		return c.recover(ctx, r)
	}
	return err
}

// recover compares everything with a hub whose history is another one. The hub is
// asked anew how far back it reaches, since it may have been restored once more.
func (c *cycle) recover(ctx context.Context, r Recovery) error {
	_, err := c.s.ports.Remote.Head(ctx, r.From)
	var e *memory.Error
	switch {
	case err == nil:
		// The old history is back. What the baseline learned in between cannot be
		// told apart from it by revisions, only by texts.
		r.Rewind = 0
	case errors.Is(err, memory.ErrEpochChanged) && errors.As(err, &e):
		r.Rewind = e.RewindRevision
	default:
		return &stepError{step: "ask the hub where it stands", err: err}
	}
	return c.pullAll(ctx, reasonRewound, r.From, r.Rewind)
}

// rewound reports whether the hub fell back to a point that our cursor fits, but not
// all we agreed on: a commit of ours that came after others we had not pulled yet is
// in the baseline although the cursor stands before it. Such a commit must be in what
// follows the cursor.
func (c *cycle) rewound(ctx context.Context) (bool, error) {
	st := &c.s.state
	beyond := memory.Revision(0)
	for p, b := range st.Baseline {
		switch {
		case b.HubRevision <= st.Cursor.Revision:
		case b.HubRevision > c.cursor.Revision:
			beyond = max(beyond, b.HubRevision)
		case c.told[p][b.HubRevision] != b.Hub:
			return true, nil
		}
	}
	if beyond == 0 {
		return false, nil
	}
	info, err := c.s.ports.Remote.Head(ctx, c.cursor)
	if err != nil {
		return false, err
	}
	return info.Head.Revision < beyond, nil
}

// pullChanges folds the commits since the cursor into the tree that the state knows.
func (c *cycle) pullChanges(ctx context.Context) error {
	st := &c.s.state
	c.remote = make(map[memory.Path]remoteFile, len(c.base))
	for p, b := range c.base {
		if b.Hub != "" {
			c.remote[p] = remoteFile{ETag: b.Hub, Revision: b.HubRevision}
		}
	}
	for p, a := range st.Ahead {
		if c.base[p].HubRevision > a.Revision {
			continue
		}
		c.touched[p] = a.Revision
		if a.ETag == "" {
			delete(c.remote, p)
		} else {
			c.pass(p, a.ETag, a.Revision)
			c.remote[p] = remoteFile{ETag: a.ETag, Revision: a.Revision}
		}
	}
	c.cursor = st.Cursor
	for {
		page, err := c.s.ports.Remote.Changes(ctx, c.cursor)
		if err != nil {
			return &stepError{step: "pull changes", err: err}
		}
		for i := range page.Commits {
			c.fold(&page.Commits[i])
			c.cursor = page.Cursors[i]
		}
		if !page.More || len(page.Commits) == 0 {
			return nil
		}
	}
}

// fold takes one commit into the remote tree. What the baseline has seen already, as
// after a crash before the cursor was saved, is passed over.
func (c *cycle) fold(commit *memory.Commit) {
	for _, ch := range commit.Changes {
		p := ch.Path
		if _, err := memory.ParsePath(string(p)); err != nil {
			c.warn(p, []memory.Violation{{Path: fmt.Sprintf("%.256q", string(p)), Rule: "hub-path", Message: "the hub sent a path that is none; it is left alone"}})
			continue
		}
		if ch.ETag != "" {
			c.pass(p, ch.ETag, commit.Revision)
			if c.told[p] == nil {
				c.told[p] = map[memory.Revision]memory.ETag{}
			}
			c.told[p][commit.Revision] = ch.ETag
		}
		if ch.Kind == memory.Redact {
			c.scrub(p)
		}
		if b, known := c.base[p]; known && b.HubRevision >= commit.Revision || c.touched[p] >= commit.Revision {
			continue
		}
		c.touched[p] = commit.Revision
		c.inline -= int64(len(c.remote[p].Content))
		if ch.Kind == memory.Delete {
			delete(c.remote, p)
			delete(c.renamed, p)
			continue
		}
		if ch.RenamedFrom != "" {
			c.renamed[p] = ch.RenamedFrom
		}
		f := remoteFile{ETag: ch.ETag, Revision: commit.Revision, Size: ch.Size, ModTime: ch.ModTime, Author: commit.Author}
		if c.inline+int64(len(ch.Content)) <= inlineBytes && memory.ETagOf(ch.Content) == ch.ETag {
			f.Content = ch.Content
			c.inline += int64(len(ch.Content))
		}
		c.remote[p] = f
	}
}

// pass notes that a path went through a text on the hub.
func (c *cycle) pass(p memory.Path, e memory.ETag, rev memory.Revision) {
	if c.passed[p] == nil {
		c.passed[p] = map[memory.ETag]memory.Revision{}
	}
	c.passed[p][e] = rev
}

// scrub forgets the copies of a text that was redacted on the hub (ruling 13.14).
// The baseline and the file follow when the marker is pulled.
func (c *cycle) scrub(p memory.Path) {
	for id, x := range c.s.state.Conflicts {
		if x.Path == p {
			c.todo.DropConflicts = append(c.todo.DropConflicts, id)
		}
	}
	for id, x := range c.s.state.Trash {
		if x.Path == p {
			c.todo.DropTrash = append(c.todo.DropTrash, id)
		}
	}
}

type pullReason uint8

const (
	reasonFresh pullReason = iota
	reasonCompacted
	reasonRewound
)

// pullAll lists everything the hub holds and brings the baseline into a form from
// which the plan does the right thing.
func (c *cycle) pullAll(ctx context.Context, why pullReason, from memory.Cursor, rewind memory.Revision) error {
	listing, err := c.s.ports.Remote.List(ctx, ListOptions{Deleted: true, EarlierETags: why != reasonCompacted})
	if err != nil {
		return &stepError{step: "list the project", err: err}
	}
	c.full, c.cursor = true, listing.Head
	c.remote = make(map[memory.Path]remoteFile, len(listing.Memories))
	facts := make(map[memory.Path]reconcile.Facts, len(listing.Memories))
	for _, m := range listing.Memories {
		if _, err := memory.ParsePath(string(m.Path)); err != nil {
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
			c.remote[m.Path] = remoteFile{ETag: m.ETag, Revision: m.Revision, Size: m.Size, ModTime: m.ModTime, Author: m.Author}
		}
	}
	switch why {
	case reasonFresh:
		c.adopt(facts)
	case reasonRewound:
		c.rebase(facts, from, rewind)
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
func (c *cycle) rebase(facts map[memory.Path]reconcile.Facts, from memory.Cursor, rewind memory.Revision) {
	at := make(map[memory.Path]memory.Revision, len(c.base))
	for p, b := range c.base {
		at[p] = b.HubRevision
	}
	was := c.baseline()
	for _, p := range reconcile.UndoneDeletes(was, c.local, facts, rewind, from.Revision) {
		if !c.masked(p) {
			c.note(Note{Kind: NoteDeleteUndone, Path: p, ETag: facts[p].ETag})
		}
	}
	now := reconcile.Rebase(was, at, facts, rewind)
	for p, b := range was {
		n, kept := now[p]
		if (!kept || n != b) && c.local[p] != b.Local && !facts[p].Knew(b.Text) {
			// Neither side holds the agreed text any more: its last copy is ours.
			c.todo.PutTrash = append(c.todo.PutTrash, Trashed{ID: textID(string(p), string(b.Text)), Path: p, ETag: b.Text,
				Reason: "the restored hub had lost it", Time: c.now})
		}
		switch {
		case !kept:
			delete(c.base, p)
			c.note(Note{Kind: NoteReoffered, Path: p, ETag: b.Text})
		case n != b:
			c.base[p] = BaseEntry{Text: n.Text, Hub: n.Hub, Local: n.Local, HubRevision: facts[p].Revision}
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

// honourIntents settles the steps whose end an earlier cycle did not see.
func (c *cycle) honourIntents(ctx context.Context) error {
	for _, p := range slices.Sorted(maps.Keys(c.s.state.Intents)) {
		i := c.s.state.Intents[p]
		if c.masked(p) {
			continue
		}
		rev, happened := memory.Revision(0), false
		if i.ToHub {
			rev, happened = c.passed[p][i.Wanted]
			if f := c.remote[p]; f.ETag == i.Wanted {
				rev, happened = f.Revision, true
			}
		} else if c.local[p] == i.Wanted {
			rev, happened = c.passed[p][i.Base]
			if f := c.remote[p]; f.ETag == i.Base {
				rev = f.Revision
			}
			happened = true
		}
		if !happened {
			// A write that did not happen is over; a request may still arrive.
			if !i.ToHub || c.base[p].Hub == i.Wanted {
				c.todo.DropIntents = append(c.todo.DropIntents, p)
			}
			continue
		}
		entry := BaseEntry{Text: i.Base, Hub: i.Base, HubRevision: rev, Local: i.Base}
		if memory.IsIndex(p) {
			// What of the file on disk stays private is worked out anew.
			entry.Local = ""
			if !i.ToHub {
				entry.Local = i.Wanted
			}
		}
		if text, err := c.text(ctx, i.Base); err == nil {
			c.setBase(p, entry, text)
			c.todo.DropIntents = append(c.todo.DropIntents, p)
		}
	}
	return nil
}

// fetch makes sure that the contents of these paths are in c.remote, as far as the
// hub still holds the texts that were planned with.
func (c *cycle) fetch(ctx context.Context, paths []memory.Path) error {
	var want []memory.Path
	for _, p := range paths {
		if f, living := c.remote[p]; living && f.Content == nil {
			want = append(want, p)
		}
	}
	for len(want) > 0 {
		ask := want[:min(len(want), batchFiles)]
		batch, err := c.s.ports.Remote.Get(ctx, ask)
		if err != nil {
			return &stepError{step: "fetch memories", err: err}
		}
		for _, m := range batch.Memories {
			f := c.remote[m.Path]
			if m.ETag == f.ETag && memory.ETagOf(m.Content) == m.ETag {
				f.Content, f.ModTime, f.Author, f.Size = m.Content, m.ModTime, m.Author, m.Size
				if f.Content == nil {
					f.Content = []byte{}
				}
				c.remote[m.Path] = f
			}
		}
		if len(batch.Remaining) >= len(ask) {
			return &stepError{step: "fetch memories", err: errors.New("the hub answered none of them")}
		}
		want = append(append([]memory.Path(nil), batch.Remaining...), want[len(ask):]...)
	}
	return nil
}
