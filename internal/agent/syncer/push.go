package syncer

import (
	"context"
	"errors"

	"github.com/memsvc/memsvc/internal/agent/reconcile"
	"github.com/memsvc/memsvc/internal/memory"
)

// out is one change on its way to the hub.
type out struct {
	reconcile.Action
	merged bool // written by this cycle, so not in the scan

	// Filled when the change is built.
	change memory.Change
	text   []byte
	shrunk memory.ETag // the text that lost most of itself; "" = it did not
}

func (o *out) isDelete() bool { return o.Kind == reconcile.PushDelete }

// unit is what must go in one commit: a change, or a rename's two.
type unit []out

// push sends what is queued: files first, with or before the indexes that name them,
// deletes last, in commits within the limits.
func (c *cycle) push(ctx context.Context) (err error) {
	queue := c.units(c.outs)
	c.outs = nil
	newcomers := c.newcomers(queue)
	var batch []unit
	defer func() {
		if err != nil {
			c.unsent(append(batch, queue...))
		}
	}()
	size, n := 0, 0
	for len(queue) > 0 || len(batch) > 0 {
		if len(queue) > 0 && len(batch) < memory.MaxCommitChanges {
			u, ready, err := c.build(ctx, queue[0], newcomers)
			if err != nil {
				return err
			}
			if !ready {
				queue = queue[1:]
				continue
			}
			bytes := 0
			for _, o := range u {
				bytes += len(o.text)
			}
			if n+len(u) <= memory.MaxCommitChanges && size+bytes <= memory.MaxCommitBytes {
				batch, size, n, queue = append(batch, u), size+bytes, n+len(u), queue[1:]
				for _, o := range u {
					c.going[o.Path] = !o.isDelete()
				}
				if len(queue) > 0 {
					continue
				}
			}
		}
		again, err := c.send(ctx, batch)
		if err != nil {
			return err
		}
		batch, size, n = nil, 0, 0
		// What has to be looked at anew comes before what waits, so that indexes
		// stay last.
		queue = append(append(again, c.units(c.outs)...), queue...)
		c.outs = nil
		clear(c.going)
	}
	return nil
}

// units orders what goes out and joins renames. A delete that stands in the way of a
// new path comes first.
func (c *cycle) units(outs []out) []unit {
	if len(outs) == 0 {
		return nil
	}
	actions := make([]reconcile.Action, len(outs))
	byPath := make(map[memory.Path]out, len(outs))
	for i, o := range outs {
		actions[i] = o.Action
		byPath[o.Path] = o
	}
	var us []unit
	for _, a := range reconcile.Order(actions) {
		o := byPath[a.Path]
		if o.isDelete() {
			if _, paired := byPath[o.RenamedTo]; paired {
				continue // goes with its other half
			}
		}
		u := unit{o}
		if from, paired := byPath[o.RenamedFrom]; paired && o.RenamedFrom != "" {
			u = append(u, from)
		}
		us = append(us, u)
	}
	return us
}

// send commits a batch. What the hub refuses is held and what met another edit is
// merged; the rest of the batch goes out. again must be built anew.
func (c *cycle) send(ctx context.Context, batch []unit) (again []unit, err error) {
	for attempt := 0; len(batch) > 0; attempt++ {
		if attempt == maxPushAttempts {
			c.later(soon)
			return nil, nil
		}
		for _, u := range batch {
			for _, o := range u {
				if o.isDelete() {
					c.intendDelete(o.Path)
				} else {
					c.intend(o.Path, o.text)
				}
			}
		}
		c.todo.Relaxed = len(c.todo.PutBaseline)+len(c.todo.DropBaseline) == 0
		if err := c.save(ctx); err != nil {
			return nil, err
		}
		req := CommitRequest{RequestID: c.s.ports.NewID(), Epoch: c.cursor.Epoch, Message: c.s.opts.Message}
		for _, u := range batch {
			for _, o := range u {
				req.Changes = append(req.Changes, o.change)
			}
		}
		res, err := c.s.ports.Remote.Push(ctx, req)
		if err == nil {
			return again, c.pushed(ctx, batch, res)
		}
		var e *memory.Error
		if !errors.As(err, &e) {
			return nil, &stepError{step: "push", err: err}
		}
		rest, redo, giveUp := c.refused(ctx, batch, e)
		if giveUp != nil {
			return nil, giveUp
		}
		again = append(again, redo...)
		batch = rest
	}
	return again, nil
}

// pushed advances the baseline over a commit that the hub took.
func (c *cycle) pushed(ctx context.Context, batch []unit, res CommitResult) error {
	rev := res.Commit.Revision
	if res.Created {
		c.result.Commits++
	} else {
		// Somebody had put the same there already; when, the next pull may tell.
		rev = c.cursor.Revision
	}
	// Nothing of others lies between: the cursor can move over our own commit, which
	// then need not be pulled again.
	at := c.s.state.Cursor
	next := res.Created && at == c.cursor && at.Epoch == res.Head.Epoch && rev == at.Revision+1 && res.Commit.ID != ""
	for _, u := range batch {
		for _, o := range u {
			p := o.Path
			if o.isDelete() {
				delete(c.remote, p)
				c.dropBase(p)
				c.todo.DropIntents = append(c.todo.DropIntents, p)
				if !next {
					// The commit must turn up among what follows the cursor; see rewound.
					c.todo.PutAhead = append(c.todo.PutAhead, Ahead{Path: p, Revision: rev})
				}
				c.result.Deleted++
				continue
			}
			e := memory.ETagOf(o.text)
			if o.shrunk != "" {
				c.note(Note{Kind: NoteShrunk, Path: p, ETag: o.shrunk})
			}
			if res.Created {
				c.credited(ctx, p, e, res.Commit.Author)
			}
			c.remote[p] = remoteFile{ETag: e, Revision: rev, Size: int64(len(o.text)), ModTime: o.change.ModTime}
			c.setBase(p, BaseEntry{Text: e, Hub: e, Local: o.Local, HubRevision: rev}, o.text)
			c.todo.DropIntents = append(c.todo.DropIntents, p)
			delete(c.held, p)
			c.result.Pushed++
		}
	}
	if next {
		c.cursor = memory.Cursor{Epoch: at.Epoch, Revision: rev, CommitID: res.Commit.ID}
		cursor := c.cursor
		c.todo.Cursor = &cursor
	}
	return c.save(ctx)
}
