package syncer

import (
	"context"
	"maps"
	"slices"

	"github.com/memsvc/memsvc/internal/memory"
)

// setBase notes that both sides agree on a path. text are the bytes of entry.Text. What
// was on its way to the hub before cannot be applied there any more: it was made on
// another text. So what was intended is over.
func (c *cycle) setBase(p memory.Path, entry BaseEntry, text []byte) {
	if _, intended := c.s.state.Intents[p]; intended {
		c.todo.DropIntents = append(c.todo.DropIntents, p)
	}
	c.putBase(p, entry, text)
}

func (c *cycle) putBase(p memory.Path, entry BaseEntry, text []byte) {
	if c.todo.PutBaseline == nil {
		c.todo.PutBaseline = map[memory.Path]BaseEntry{}
	}
	entry.Author = c.authorOf(p, entry.Hub)
	c.base[p] = entry
	c.todo.PutBaseline[p] = entry
	id := textID(string(p), string(entry.Local))
	if t, kept := c.s.state.Trash[id]; kept && t.Reason == trashDeleted {
		// It lives again; should it vanish now, that is not the hub's doing.
		c.todo.DropTrash = append(c.todo.DropTrash, id)
	}
	c.caughtUp(p)
	c.keepText(text)
}

// dropBase notes that both sides lack a path. Until the cursor is saved the baseline
// keeps it on disk: a baseline that lacks a file which the hub had at the cursor would
// know nothing of it any more, should the hub fall back to there.
func (c *cycle) dropBase(p memory.Path) {
	delete(c.base, p)
	delete(c.todo.PutBaseline, p)
	if !c.advanced {
		c.dropped = append(c.dropped, p)
		return
	}
	c.todo.DropBaseline = append(c.todo.DropBaseline, p)
	c.caughtUp(p)
}

// caughtUp forgets that the hub was ahead at p. Before the cursor moves, advance looks
// again at every path that was.
func (c *cycle) caughtUp(p memory.Path) {
	if _, ahead := c.s.state.Ahead[p]; ahead {
		c.todo.DropAhead = append(c.todo.DropAhead, p)
	}
}

func (c *cycle) keepText(text []byte) {
	e := memory.ETagOf(text)
	if _, known := c.unsaved[e]; known {
		return
	}
	c.letGo = c.letGo || c.redacted[e]
	c.unsaved[e] = text
	c.todo.Texts = append(c.todo.Texts, text)
	c.todoBytes += len(text)
}

// save makes durable what was noted.
func (c *cycle) save(ctx context.Context) error {
	if c.todo.empty() {
		return nil
	}
	u := c.todo
	c.todo, c.todoBytes, c.unsaved = Update{}, 0, map[memory.ETag][]byte{}
	return c.s.save(ctx, u)
}

// saveFull saves when so much was noted that it should not wait.
func (c *cycle) saveFull(ctx context.Context) error {
	if c.todoBytes < batchBytes && len(c.todo.PutBaseline)+len(c.todo.DropBaseline) < batchFiles {
		return nil
	}
	return c.save(ctx)
}

func (u *Update) empty() bool {
	return u.LinkID == "" && u.Cursor == nil && len(u.Texts)+len(u.PutBaseline)+len(u.DropBaseline)+len(u.PutConflicts)+
		len(u.DropConflicts)+len(u.PutHeld)+len(u.DropHeld)+len(u.PutIntents)+len(u.DropIntents)+len(u.PutAhead)+
		len(u.DropAhead)+len(u.PutTrash)+len(u.DropTrash)+len(u.AddNotes)+len(u.PutMarks)+len(u.PutResolved)+len(u.DropResolved)+len(u.DropLines) == 0 &&
		u.SetHalt == nil && !u.ClearHalt && u.SetRecovery == nil && !u.ClearRecovery && u.KeepMarks == nil && u.SetRedacting == nil
}

// text returns the bytes of an agreed text, saved or about to be.
func (c *cycle) text(ctx context.Context, e memory.ETag) ([]byte, error) {
	if e == "" {
		return nil, ErrNoText
	}
	if t, ok := c.unsaved[e]; ok {
		return t, nil
	}
	if e == memory.ETagOf(nil) {
		return []byte{}, nil
	}
	return c.s.ports.State.Text(ctx, e)
}

// ancestor returns the agreed text of a path, from the state or, where a rebased
// baseline names a text of the hub, from there.
func (c *cycle) ancestor(ctx context.Context, p memory.Path) (text []byte, known bool) {
	e := c.base[p].Text
	if text, err := c.text(ctx, e); err == nil {
		return text, true
	}
	if e == "" || c.remote[p].ETag != e {
		return nil, false
	}
	if err := c.fetch(ctx, []memory.Path{p}); err != nil || c.remote[p].Content == nil {
		return nil, false
	}
	return c.remote[p].Content, true
}

func (c *cycle) note(n Note) {
	n.Time = c.now
	c.todo.AddNotes = append(c.todo.AddNotes, n)
}

// warn replaces what is said of one path.
func (c *cycle) warn(p memory.Path, vs []memory.Violation) {
	c.s.view.Lock()
	defer c.s.view.Unlock()
	st := &c.s.status
	st.Warnings = slices.DeleteFunc(st.Warnings, func(v memory.Violation) bool { return v.Path == string(p) })
	st.Warnings = append(st.Warnings, vs...)
	if n := len(st.Warnings) - maxWarnings; n > 0 {
		st.Warnings = slices.Clone(st.Warnings[n:])
	}
}

// trash notes that a text leaves the disk. The note must be saved before the text goes.
func (c *cycle) trash(p memory.Path, text []byte, why string) {
	e := memory.ETagOf(text)
	c.todo.PutTrash = append(c.todo.PutTrash, Trashed{ID: textID(string(p), string(e)), Path: p, ETag: e, Reason: why, Time: c.now})
	c.keepText(text)
}

// textID returns a short stable id for something made of these parts.
func textID(parts ...string) string {
	var all []byte
	for _, p := range parts {
		all = append(append(all, p...), 0)
	}
	return string(memory.ETagOf(all))[:12]
}

// advance saves where the pull came to, and what of it could not be put in place.
func (c *cycle) advance(ctx context.Context) error {
	st := &c.s.state
	var replaced *Replaced
	behind := func(p memory.Path, rev memory.Revision) {
		hub := c.remote[p]
		if c.base[p].Hub == hub.ETag {
			if a, was := st.Ahead[p]; was && (c.full || a.Revision <= c.cursor.Revision) {
				c.todo.DropAhead = append(c.todo.DropAhead, p)
			}
			return
		}
		if was, known := st.Ahead[p]; known && was.ETag == hub.ETag && was.Revision == rev && !slices.Contains(c.todo.DropAhead, p) {
			return
		}
		c.todo.PutAhead = append(c.todo.PutAhead, Ahead{Path: p, ETag: hub.ETag, Revision: rev, Author: c.authorOf(p, hub.ETag)})
	}
	if c.full {
		if err := c.saveRebased(ctx); err != nil {
			return err
		}
		seen := map[memory.Path]bool{}
		for p, f := range c.remote {
			seen[p] = true
			behind(p, f.Revision)
		}
		for p := range c.base {
			if !seen[p] {
				behind(p, c.cursor.Revision)
			}
		}
		for p := range st.Ahead {
			if _, agreed := c.base[p]; !seen[p] && !agreed {
				c.todo.DropAhead = append(c.todo.DropAhead, p)
			}
		}
		if r := st.Recovery; r != nil && r.From != (memory.Cursor{}) {
			keep := r.Rewind
			c.todo.KeepMarks = &keep
			replaced = &Replaced{From: r.From, To: c.cursor, Shared: r.Rewind,
				Offered: slices.Sorted(maps.Keys(c.s.offered)), Undone: slices.Sorted(maps.Keys(c.s.undone))}
		}
		c.todo.SetRecovery = nil
		c.todo.ClearRecovery = st.Recovery != nil
	} else {
		for p, rev := range c.touched {
			behind(p, rev)
		}
	}
	c.creditBase()
	for _, p := range c.dropped {
		if _, back := c.base[p]; !back {
			c.todo.DropBaseline = append(c.todo.DropBaseline, p)
		}
	}
	c.advanced = true
	if c.cursor != st.Cursor {
		cursor := c.cursor
		c.todo.Cursor, c.todo.PutMarks = &cursor, c.marks
	}
	if err := c.save(ctx); err != nil {
		return err
	}
	if c.result.Replaced = replaced; replaced != nil {
		c.s.offered, c.s.undone = nil, nil
	}
	return nil
}

// saveRebased adds what a full comparison changed in the baseline by itself.
func (c *cycle) saveRebased(ctx context.Context) error {
	for p := range c.s.state.Baseline {
		if _, kept := c.base[p]; !kept && !slices.Contains(c.todo.DropBaseline, p) {
			c.todo.DropBaseline = append(c.todo.DropBaseline, p)
		}
	}
	var changed []memory.Path
	for p, b := range c.base {
		_, put := c.todo.PutBaseline[p]
		if old, known := c.s.state.Baseline[p]; !put && (!known || old != b) {
			changed = append(changed, p)
		}
	}
	slices.Sort(changed)
	for len(changed) > 0 {
		n, size := 0, int64(0)
		for n < len(changed) && n < batchFiles && size < batchBytes {
			size += max(c.remote[changed[n]].Size, 1)
			n++
		}
		if err := c.fetch(ctx, changed[:n]); err != nil {
			return err
		}
		for _, p := range changed[:n] {
			if text, known := c.ancestor(ctx, p); known {
				c.putBase(p, c.base[p], text)
			} else {
				// Without its text it cannot be an ancestor; the path is compared anew.
				c.dropBase(p)
			}
			if f, living := c.remote[p]; living {
				f.Content = nil
				c.remote[p] = f
			}
		}
		if err := c.saveFull(ctx); err != nil {
			return err
		}
		changed = changed[n:]
	}
	return nil
}
