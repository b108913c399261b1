package syncer

import (
	"bytes"
	"context"
	"slices"

	"github.com/memsvc/memsvc/internal/agent/reconcile"
	"github.com/memsvc/memsvc/internal/memory"
)

// findMoves takes out of the plan the files that were renamed on one side and edited
// on the other, and notes where they go: c.moves maps the path on the hub to the local
// path whose text is to be merged into it. Without this the edit would stay behind at
// the old path, and where the names differ in case only neither could be stored beside
// the other.
//
//   - Renamed there, edited here: the edit follows to the new path.
//   - Renamed here in case only, edited there: the edit wins over the new spelling.
func (c *cycle) findMoves(actions []reconcile.Action) []reconcile.Action {
	at := make(map[memory.Path]reconcile.Action, len(actions))
	spelled := map[string]memory.Path{} // new local files, by folded path
	for _, a := range actions {
		at[a.Path] = a
		if a.Kind == reconcile.Push && a.Remote == "" && a.Base == (reconcile.Base{}) {
			spelled[a.Path.FoldKey()] = a.Path
		}
	}
	for _, a := range actions {
		if a.Kind != reconcile.Pull || a.Local != "" || memory.IsIndex(a.Path) {
			continue
		}
		from, renamed := c.renamed[a.Path]
		old := at[from]
		edited := renamed && a.Base == (reconcile.Base{}) && old.Kind == reconcile.Push && old.EditKept
		if !edited && a.EditKept {
			from, edited = spelled[a.Path.FoldKey()]
		}
		if edited && c.snap.Files[from].Size <= memory.MaxMemoryBytes {
			c.moves[a.Path] = from
		}
	}
	if len(c.moves) == 0 {
		return actions
	}
	taken := map[memory.Path]bool{}
	for _, from := range c.moves {
		taken[from] = true
	}
	return slices.DeleteFunc(actions, func(a reconcile.Action) bool { return taken[a.Path] })
}

// move merges the local file at from into the hub's file at a.Path, which is absent
// here, and lets it live there. The local text is kept as a conflict until the file
// is in its new place: the two names may not be able to exist side by side, so the old
// one goes first.
func (c *cycle) move(ctx context.Context, a reconcile.Action, from memory.Path) error {
	to, f := a.Path, c.remote[a.Path]
	local, ok, err := c.readAs(ctx, from, c.local[from])
	if !ok || err != nil {
		return err
	}
	ancestorAt := from
	if _, known := c.base[from]; !known {
		ancestorAt = to
	}
	base, hasBase := c.ancestor(ctx, ancestorAt)
	m := reconcile.MergeTexts(to, base, hasBase, local, f.Content)
	text := f.Content
	gone, err := c.wasRedacted(ctx, to, local, base)
	if err != nil {
		return err
	}
	if m.OK && !gone {
		text = m.Text
	}
	x := c.newConflict(to, f, c.local[from], c.snap.Files[from].ModTime, base, hasBase, local)
	if !gone {
		c.todo.PutConflicts = append(c.todo.PutConflicts, x)
	}
	if err := c.save(ctx); err != nil {
		return err
	}
	if err := c.s.ports.Local.Remove(ctx, from, c.local[from]); err != nil {
		c.todo.DropConflicts = append(c.todo.DropConflicts, x.ID)
		return c.localTrouble(ctx, "move", from, err)
	}
	c.result.Removed++
	delete(c.local, from)
	if _, known := c.base[from]; known {
		c.dropBase(from)
	}
	if ok, err := c.write(ctx, to, text, ""); !ok || err != nil {
		return err // the conflict stays: it is the text's only place
	}
	c.result.Pulled++
	c.flagPulled(to, f.Content, stood(local))
	agreed := BaseEntry{Text: f.ETag, Hub: f.ETag, Local: f.ETag, HubRevision: f.Revision}
	c.setBase(to, agreed, f.Content)
	if m.OK {
		c.todo.DropConflicts = append(c.todo.DropConflicts, x.ID)
	}
	if !bytes.Equal(text, f.Content) {
		c.outs = append(c.outs, out{Action: reconcile.Action{
			Path: to, Kind: reconcile.Push, Base: planned(agreed), Local: memory.ETagOf(text), Remote: f.ETag,
		}, merged: true})
	}
	return nil
}
