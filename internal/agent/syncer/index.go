package syncer

import (
	"bytes"
	"context"
	"slices"

	"github.com/memsvc/memsvc/internal/agent/reconcile"
	"github.com/memsvc/memsvc/internal/memory"
)

// private reports whether index lines for this file stay on the machine (ruling
// 13.7): it was refused, is ignored, or is here but not (yet) on the hub.
func (c *cycle) private(p memory.Path) bool {
	if _, refused := c.held[p]; refused {
		return true
	}
	if h, was := c.s.state.Held[p]; was && h.By != HeldByDisk && c.local[p] == h.ETag {
		return true // not looked at yet in this cycle
	}
	if c.ignored(p) {
		return true
	}
	_, onHub := c.remote[p]
	_, agreed := c.base[p] // then it was on the hub, and is being deleted or brought back
	return !onHub && !agreed && !c.going[p] && (c.local[p] != "" || c.unknown(p))
}

// shared returns what of a local index goes to the hub, given the agreed text.
func (c *cycle) shared(p memory.Path, local, agreed []byte) []byte {
	s := reconcile.ShareIndex(p, local, agreed, c.private)
	return reconcile.KeepEntries(p, s, agreed, func(t memory.Path) bool { return c.heldDel[t] })
}

// mergeIndex brings a local index and the hub's together, entry by entry. Lines that
// stay on the machine take no part and keep their place. It cannot conflict.
func (c *cycle) mergeIndex(ctx context.Context, a reconcile.Action) error {
	p, f := a.Path, c.remote[a.Path]
	local, ok, err := c.readAs(ctx, p, a.Local)
	if !ok || err != nil {
		return err
	}
	base, hasBase := c.ancestor(ctx, p)
	if !hasBase && memory.ETagOf(local) == a.Base.Text {
		base, hasBase = local, true
	}
	shared := local
	if a.Base.Local != a.Local || a.Base.Local != a.Base.Hub {
		shared = c.shared(p, local, base)
	}
	m := reconcile.MergeTexts(p, base, hasBase, shared, f.Content)
	disk, lost := reconcile.KeepPrivate(p, local, shared, m.Text)
	// What gives way is noted before it does; the cycle may end in between. One that could not
	// write, since the file was just being saved, has noted it already.
	for _, line := range append(m.Lost, lost...) {
		n := Note{Kind: NoteIndexLine, Path: p, Text: line, ETag: f.ETag, Origin: f.Author.Principal}
		if !slices.ContainsFunc(c.s.state.Notes, n.sameEvent) {
			c.note(n)
		}
	}
	if !bytes.Equal(disk, local) {
		if ok, err := c.writeMerged(ctx, a, disk, f.Content); !ok || err != nil {
			return err
		}
		c.result.Pulled++
		c.flagPulled(p, f.Content, stood(local))
	}
	entry := BaseEntry{Text: f.ETag, Hub: f.ETag, Local: memory.ETagOf(disk), HubRevision: f.Revision}
	c.setBase(p, entry, f.Content)
	if entry.Local != entry.Hub {
		c.outs = append(c.outs, out{Action: reconcile.Action{
			Path: p, Kind: reconcile.Push, Base: planned(entry), Local: entry.Local, Remote: f.ETag,
		}, merged: true})
	}
	return nil
}

// shrinkIndex carries out a delete of an index that has lines of its own here: these
// stay, as an index that is not on the hub.
func (c *cycle) shrinkIndex(ctx context.Context, a reconcile.Action) error {
	p := a.Path
	local, ok, err := c.readAs(ctx, p, a.Local)
	if !ok || err != nil {
		return err
	}
	base, _ := c.ancestor(ctx, p)
	rest, _ := reconcile.KeepPrivate(p, local, c.shared(p, local, base), nil)
	if gone, err := c.wasRedacted(ctx, p, local, nil); err != nil {
		return err
	} else if !gone {
		c.trash(p, local, trashDeleted)
	}
	if err := c.save(ctx); err != nil {
		return err
	}
	if len(bytes.TrimSpace(rest)) == 0 {
		if err := c.s.ports.Local.Remove(ctx, p, a.Local); err != nil {
			return c.localTrouble(ctx, "remove", p, err)
		}
		delete(c.local, p)
	} else if ok, err := c.write(ctx, p, rest, a.Local); !ok || err != nil {
		return err
	}
	c.result.Deleted++
	c.result.Removed++
	c.dropBase(p)
	return nil
}
