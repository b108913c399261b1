package syncer

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/memsvc/memsvc/internal/agent/reconcile"
	"github.com/memsvc/memsvc/internal/memory"
)

// soon is when a cycle should come again after a file moved under its hands.
const soon = time.Second

// applyAll carries out the local side of the plan and queues what goes to the hub.
// Contents are fetched in windows, so that memory stays bounded.
func (c *cycle) applyAll(ctx context.Context, actions []reconcile.Action) error {
	for len(actions) > 0 {
		n, size := 0, int64(0)
		var need []memory.Path
		for n < len(actions) && len(need) < batchFiles && size < batchBytes {
			a := actions[n]
			switch {
			case a.Kind == reconcile.Pull || a.Kind == reconcile.Merge:
				need = append(need, a.Path)
				size += max(c.remote[a.Path].Size, 1)
			case a.Kind == reconcile.PullDelete || a.Kind == reconcile.Agree:
				size += c.snap.Files[a.Path].Size
			}
			n++
		}
		if err := c.fetch(ctx, need); err != nil {
			return err
		}
		if err := c.askLosing(ctx, actions[:n]); err != nil {
			return err
		}
		if err := c.trashAll(ctx, actions[:n]); err != nil {
			return err
		}
		for _, a := range actions[:n] {
			if err := c.apply(ctx, a); err != nil {
				return err
			}
			if err := c.saveFull(ctx); err != nil {
				return err
			}
		}
		for _, p := range need { // what was applied is not needed in memory
			if f, living := c.remote[p]; living {
				f.Content = nil
				c.remote[p] = f
			}
		}
		actions = actions[n:]
	}
	return nil
}

// apply carries out one action. Its error ends the cycle; trouble with one file does not.
func (c *cycle) apply(ctx context.Context, a reconcile.Action) error {
	p := a.Path
	if c.unasked[p] {
		c.result.Pending++
		return nil
	}
	switch a.Kind {
	case reconcile.Agree:
		return c.agree(ctx, a)
	case reconcile.Forget:
		c.dropBase(p)
	case reconcile.Push, reconcile.PushDelete:
		if a.EditKept {
			// The file is a new one from here on, also if it is held back.
			c.note(Note{Kind: NoteEditKept, Path: p})
			c.dropBase(p)
			a.Base = reconcile.Base{}
		}
		c.outs = append(c.outs, out{Action: a})
	case reconcile.PullDelete:
		return c.removeFile(ctx, a)
	case reconcile.Pull, reconcile.Merge:
		f := c.remote[p]
		if f.Content == nil {
			c.later(soon) // the hub went on meanwhile; its change comes with the next pull
			return nil
		}
		if bad := unfit(p, f.Content); len(bad) > 0 {
			c.hold(Held{Path: p, By: HeldByDisk, Revision: c.cursor.Revision, Violations: bad})
			return nil
		}
		if from, moved := c.moves[p]; moved && a.Local == "" && c.local[from] != "" {
			return c.move(ctx, a, from)
		}
		if a.EditKept && c.justGone(p) {
			c.later(saveGap) // an editor's new text must meet the hub's as an edit
			return nil
		}
		if a.Local == "" {
			return c.putFile(ctx, a, f.Content)
		}
		if c.snap.Files[p].Size > memory.MaxMemoryBytes {
			c.hold(c.tooLarge(p))
			return nil
		}
		if memory.IsIndex(p) {
			return c.mergeIndex(ctx, a)
		}
		if a.Kind == reconcile.Merge {
			return c.mergeFile(ctx, a)
		}
		return c.putFile(ctx, a, f.Content)
	}
	return nil
}

// agree takes over a text that both sides hold. The disk is nearer than the hub.
func (c *cycle) agree(ctx context.Context, a reconcile.Action) error {
	f := c.remote[a.Path]
	text := f.Content
	if text == nil {
		var ok bool
		var err error
		if text, ok, err = c.readAs(ctx, a.Path, a.Local); !ok || err != nil {
			return err
		}
	}
	c.setBase(a.Path, BaseEntry{Text: f.ETag, Hub: f.ETag, Local: f.ETag, HubRevision: f.Revision}, text)
	return nil
}

// write puts a text on the disk. ok is false when the path was left alone.
func (c *cycle) write(ctx context.Context, p memory.Path, content []byte, expect memory.ETag) (ok bool, err error) {
	f := c.remote[p]
	mtime := f.ModTime
	if !mtime.IsZero() {
		mtime = mtime.Add(-c.s.ports.Remote.Offset())
	}
	err = c.s.ports.Local.Write(ctx, p, content, mtime, expect)
	if err != nil {
		return false, c.localTrouble(ctx, "write", p, err)
	}
	c.local[p] = memory.ETagOf(content)
	return true, nil
}

// localTrouble sorts an error of Local: nil means that this path waits.
func (c *cycle) localTrouble(ctx context.Context, step string, p memory.Path, err error) error {
	switch {
	case interrupted(ctx, err):
		return &stepError{step: step, path: p, err: err}
	case errors.Is(err, ErrLocalChanged), errors.Is(err, ErrLocalAbsent):
		c.later(soon)
	case errors.Is(err, ErrLocalName):
		// However often it is tried: the others must not wait for it.
		c.hold(Held{Path: p, By: HeldByDisk, Revision: c.cursor.Revision, Violations: []memory.Violation{{
			Path: string(p), Rule: "local-name", Message: "this disk cannot hold a file of this name; it stays on the hub until it is renamed there",
		}}})
	case errors.Is(err, ErrLocalBlocked):
		c.result.Pending++
		c.hold(Held{Path: p, By: HeldByDisk, Revision: c.cursor.Revision, Violations: []memory.Violation{{
			Path: string(p), Rule: "local-blocked", Message: "something else stands where the hub's file belongs; move it away",
		}}})
	default:
		c.result.Pending++
		c.errs = append(c.errs, &stepError{step: step, path: p, err: err})
	}
	return nil
}

// putFile replaces the local file, which is unchanged or absent, by the hub's.
func (c *cycle) putFile(ctx context.Context, a reconcile.Action, content []byte) error {
	p := a.Path
	if ok, err := c.write(ctx, p, content, a.Local); !ok || err != nil {
		return err
	}
	if a.EditKept {
		c.note(Note{Kind: NoteEditKept, Path: p})
	}
	c.result.Pulled++
	c.flagPulled(p, content, func() []byte {
		was, _ := c.text(ctx, c.base[p].Text) // without it all of the text is new here
		return was
	})
	f := c.remote[p]
	c.setBase(p, BaseEntry{Text: f.ETag, Hub: f.ETag, Local: f.ETag, HubRevision: f.Revision}, content)
	return nil
}

// flagPulled says what there is to say of a text that came from elsewhere, above all
// when it grants permissions that the text which stood here did not (ruling 13.20).
func (c *cycle) flagPulled(p memory.Path, content []byte, before func() []byte) {
	if memory.GrantsApproval(content) > 0 && grantsMore(content, before()) {
		c.note(Note{Kind: NotePermission, Path: p, ETag: memory.ETagOf(content), Origin: c.remote[p].Author.Principal})
	}
	c.warn(p, memory.CheckContent(p, content).Warnings)
}

// stood is a text that stood at the path and is at hand.
func stood(text []byte) func() []byte { return func() []byte { return text } }

// grantsMore reports whether a line of content grants permissions and is none of before.
func grantsMore(content, before []byte) bool {
	had := map[string]bool{}
	for line := range bytes.Lines(before) {
		had[string(bytes.TrimSpace(line))] = true
	}
	for line := range bytes.Lines(content) {
		if memory.GrantsApproval(line) > 0 && !had[string(bytes.TrimSpace(line))] {
			return true
		}
	}
	return false
}

// readAs reads a local file if it still is what was planned with.
func (c *cycle) readAs(ctx context.Context, p memory.Path, want memory.ETag) (text []byte, ok bool, err error) {
	text, err = c.s.ports.Local.Read(ctx, p)
	if err != nil {
		return nil, false, c.localTrouble(ctx, "read", p, err)
	}
	if memory.ETagOf(text) != want {
		c.later(soon)
		return nil, false, nil
	}
	return text, true, nil
}

// trashAll keeps copies of the files that the actions take from the disk, in one step
// of the state. Copies of files that then stay do no harm.
func (c *cycle) trashAll(ctx context.Context, actions []reconcile.Action) error {
	type leaving struct {
		path memory.Path
		text []byte
		why  string
	}
	var all []leaving
	for _, a := range actions {
		why := ""
		switch p := a.Path; {
		case c.unasked[p]:
		case a.Kind == reconcile.PullDelete && memory.IsIndex(p) && a.Base.Local != a.Base.Hub:
		case a.Kind == reconcile.PullDelete:
			why = trashDeleted
		case c.stale[p] && a.Kind == reconcile.Pull && c.snap.Files[p].Size <= memory.MaxMemoryBytes:
			why = trashStale
			c.note(Note{Kind: NoteStale, Path: p, ETag: a.Local})
		}
		if why == "" {
			continue
		}
		text, ok, err := c.readAs(ctx, a.Path, a.Local)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := c.ask(ctx, a.Path, text); err != nil {
			return err
		}
		all = append(all, leaving{a.Path, text, why})
	}
	if err := c.answer(ctx); err != nil {
		return err
	}
	for _, l := range all {
		e := memory.ETagOf(l.text)
		if c.trashed[l.path] = e; !c.redacted[e] { // else it may go without a copy
			c.trash(l.path, l.text, l.why)
		}
	}
	if len(c.todo.PutTrash) == 0 {
		return nil
	}
	return c.save(ctx)
}

// removeFile deletes the local file, which the hub's side deleted.
func (c *cycle) removeFile(ctx context.Context, a reconcile.Action) error {
	p := a.Path
	if memory.IsIndex(p) && a.Base.Local != a.Base.Hub {
		return c.shrinkIndex(ctx, a)
	}
	if c.trashed[p] != a.Local {
		if err := c.trashAll(ctx, []reconcile.Action{a}); err != nil || c.trashed[p] != a.Local {
			return err
		}
	}
	if err := c.s.ports.Local.Remove(ctx, p, a.Local); err != nil {
		return c.localTrouble(ctx, "remove", p, err)
	}
	c.result.Deleted++
	c.result.Removed++
	delete(c.local, p)
	c.dropBase(p)
	return nil
}

// mergeFile merges a memory that both sides changed, or records a conflict.
func (c *cycle) mergeFile(ctx context.Context, a reconcile.Action) error {
	p, f := a.Path, c.remote[a.Path]
	local, ok, err := c.readAs(ctx, p, a.Local)
	if !ok || err != nil {
		return err
	}
	base, hasBase := c.ancestor(ctx, p)
	m := reconcile.MergeTexts(p, base, hasBase, local, f.Content)
	if !m.OK {
		return c.conflict(ctx, a, base, hasBase, local)
	}
	agreed := BaseEntry{Text: f.ETag, Hub: f.ETag, Local: f.ETag, HubRevision: f.Revision}
	if !bytes.Equal(m.Text, local) {
		if ok, err := c.writeMerged(ctx, a, m.Text, f.Content); !ok || err != nil {
			return err
		}
		c.result.Pulled++
		c.flagPulled(p, f.Content, stood(local))
	}
	c.setBase(p, agreed, f.Content)
	if !bytes.Equal(m.Text, f.Content) {
		c.outs = append(c.outs, out{Action: reconcile.Action{
			Path: p, Kind: reconcile.Push, Base: planned(agreed), Local: memory.ETagOf(m.Text), Remote: f.ETag,
		}, merged: true})
	}
	return nil
}

// writeMerged puts a merged text on the disk. If the cycle ends before the baseline
// knows, the intent tells the next one that the hub's text is contained in it: merging
// a second time could pair repeated lines otherwise.
func (c *cycle) writeMerged(ctx context.Context, a reconcile.Action, merged, hub []byte) (ok bool, err error) {
	c.todo.PutIntents = append(c.todo.PutIntents, Intent{Path: a.Path, Wanted: memory.ETagOf(merged), Base: memory.ETagOf(hub)})
	c.keepText(hub)
	if err := c.save(ctx); err != nil {
		return false, err
	}
	ok, err = c.write(ctx, a.Path, merged, a.Local)
	c.todo.DropIntents = append(c.todo.DropIntents, a.Path)
	return ok, err
}

// newConflict describes how a local text, of the given etag and time, loses the path
// to the hub's f, and keeps the texts that belong to it.
func (c *cycle) newConflict(p memory.Path, f remoteFile, etag memory.ETag, modTime time.Time, base []byte, hasBase bool, local []byte) Conflict {
	x := Conflict{
		ID: textID(string(p), string(etag), string(f.ETag)), Path: p, Local: etag, Hub: f.ETag,
		HubRevision: f.Revision, LocalModTime: modTime, Time: c.now,
	}
	if e := memory.ETagOf(base); hasBase && !c.redacted[e] {
		x.Base = e
		c.keepText(base)
	}
	c.keepText(local)
	c.keepText(f.Content)
	return x
}

// conflict keeps the local text beside the state, and then gives its place to the hub's.
func (c *cycle) conflict(ctx context.Context, a reconcile.Action, base []byte, hasBase bool, local []byte) error {
	p, f := a.Path, c.remote[a.Path]
	if gone, err := c.wasRedacted(ctx, p, local, base); err != nil {
		return err
	} else if gone {
		return c.giveWay(ctx, a)
	}
	x := c.newConflict(p, f, a.Local, c.snap.Files[p].ModTime, base, hasBase, local)
	_, known := c.s.state.Conflicts[x.ID]
	if !known {
		c.todo.PutConflicts = append(c.todo.PutConflicts, x)
	}
	if err := c.save(ctx); err != nil {
		return err
	}
	ok, err := c.write(ctx, p, f.Content, a.Local)
	if err != nil {
		return err
	}
	if !ok {
		// The file is another one by now, or stays: its text did not lose its place.
		if !known {
			c.todo.DropConflicts = append(c.todo.DropConflicts, x.ID)
		}
		return nil
	}
	c.result.Pulled++
	c.flagPulled(p, f.Content, stood(local))
	c.setBase(p, BaseEntry{Text: f.ETag, Hub: f.ETag, Local: f.ETag, HubRevision: f.Revision}, f.Content)
	return nil
}

// giveWay gives the place of a local text that was redacted to the hub's, and keeps no copy.
func (c *cycle) giveWay(ctx context.Context, a reconcile.Action) error {
	p, f := a.Path, c.remote[a.Path]
	ok, err := c.write(ctx, p, f.Content, a.Local)
	if !ok || err != nil {
		return err
	}
	c.result.Pulled++
	c.setBase(p, BaseEntry{Text: f.ETag, Hub: f.ETag, Local: f.ETag, HubRevision: f.Revision}, f.Content)
	return nil
}
