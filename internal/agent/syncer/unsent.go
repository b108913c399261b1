package syncer

import (
	"context"

	"github.com/memsvc/memsvc/internal/agent/reconcile"
	"github.com/memsvc/memsvc/internal/memory"
)

// unsent counts what was on its way to the hub when the push ended.
func (c *cycle) unsent(units []unit) {
	count := func(o out) {
		if _, held := c.held[o.Path]; !held {
			c.result.Pending++
		}
	}
	for _, u := range units {
		for _, o := range u {
			count(o)
		}
	}
	for _, o := range c.outs {
		count(o)
	}
}

// weigh says what waits on this machine while the hub cannot be asked: it compares with
// the hub as it was last known, and has the guard judge, so that whoever saved a file that
// must stay here hears of it without the hub. It writes no file. Where the hub's tree is
// not known, as before the first comparison, nothing is said.
func (c *cycle) weigh(ctx context.Context) error {
	st := &c.s.state
	if st.Fresh || st.Recovery != nil || c.full || c.remote == nil {
		return nil
	}
	c.todo, c.todoBytes, c.unsaved = Update{}, 0, map[memory.ETag][]byte{} // half of a pull is none
	unsure := map[memory.Path]bool{}
	for _, a := range c.plan(ctx) {
		switch a.Kind {
		case reconcile.PushDelete:
			if !c.heldDel[a.Path] {
				c.result.Pending++
			}
			continue
		case reconcile.Push, reconcile.Merge:
		default:
			continue
		}
		if memory.IsIndex(a.Path) && a.Local == a.Base.Local && a.Remote == a.Base.Hub {
			continue // it only keeps lines to itself
		}
		refused, sure, err := c.judge(ctx, a)
		if err != nil {
			return err
		}
		unsure[a.Path] = !sure
		if !refused {
			c.result.Pending++
		}
	}
	for p, h := range st.Held {
		if _, still := c.held[p]; !still && !unsure[p] && h.By == HeldByGuard && h.RenamedFrom == "" && !c.masked(p) {
			c.todo.DropHeld = append(c.todo.DropHeld, p)
		}
	}
	return c.finish(ctx, false)
}

// judge holds a local text that would be refused; sure is false where that cannot be told.
func (c *cycle) judge(ctx context.Context, a reconcile.Action) (refused, sure bool, err error) {
	p := a.Path
	if h, was := c.s.state.Held[p]; was && h.By != HeldByGuard && h.ETag == a.Local {
		c.hold(h)
		return true, true, nil
	}
	if c.snap.Files[p].Size > memory.MaxMemoryBytes {
		h := c.tooLarge(p)
		h.RenamedFrom = a.RenamedFrom
		c.hold(h)
		return true, true, nil
	}
	text, err := c.s.ports.Local.Read(ctx, p)
	if err != nil || memory.ETagOf(text) != a.Local {
		return false, false, nil //nolint:nilerr // it is being edited; the next cycle looks again
	}
	if memory.IsIndex(p) {
		agreed, _ := c.ancestor(ctx, p)
		text = c.shared(p, text, agreed)
	}
	v, err := c.s.ports.Guard.Check(ctx, p, text)
	switch {
	case err != nil && interrupted(ctx, err):
		return false, false, &stepError{step: "check", path: p, err: err}
	case err != nil || len(v.Violations) == 0:
		return false, err == nil, nil
	}
	c.hold(Held{Path: p, ETag: a.Local, By: HeldByGuard, Violations: v.Violations, PolicyVersion: v.PolicyVersion,
		Revision: c.s.state.Cursor.Revision, RenamedFrom: a.RenamedFrom})
	return true, true, nil
}
