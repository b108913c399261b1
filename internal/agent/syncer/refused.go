package syncer

import (
	"context"
	"fmt"
	"slices"

	"github.com/memsvc/memsvc/internal/agent/reconcile"
	"github.com/memsvc/memsvc/internal/memory"
)

// refused sorts what is left of a batch that the hub did not take: rest is sent
// again as it is, redo is built anew, giveUp ends the push.
func (c *cycle) refused(ctx context.Context, batch []unit, e *memory.Error) (rest, redo []unit, giveUp error) {
	if definite(e) {
		for _, u := range batch {
			for _, o := range u {
				c.notSent(o.Path)
			}
		}
	}
	switch e.Reason {
	case memory.ReasonETagMismatch:
		rest, err := c.mergeCurrent(ctx, batch, e)
		return rest, nil, err
	case memory.ReasonRequestIDReused:
		return batch, nil, nil // a fresh id next time
	case memory.ReasonSecretDetected, memory.ReasonInvalidPath, memory.ReasonInvalidContent, memory.ReasonPathCollision,
		memory.ReasonTypeNotShared, memory.ReasonMemoryTooLarge, memory.ReasonRedacted, memory.ReasonQuotaExceeded,
		memory.ReasonCommitTooLarge, memory.ReasonAlreadyExists:
	default:
		return nil, nil, &stepError{step: "push", err: e}
	}
	named := map[memory.Path][]memory.Violation{}
	for _, v := range e.Violations {
		named[memory.Path(v.Path)] = append(named[memory.Path(v.Path)], v)
	}
	found := false
	for _, u := range batch {
		vs := append(slices.Clone(named[u[0].Path]), namedOf(u, named)...)
		switch {
		case len(vs) > 0 && !u[0].isDelete():
			found = true
			c.holdByHub(u[0], vs)
		case memory.IsIndex(u[0].Path) && !u[0].isDelete():
			redo = append(redo, unit{{Action: u[0].Action, merged: u[0].merged}}) // its lines may name what is held now
		default:
			rest = append(rest, u)
		}
	}
	if found {
		return rest, redo, nil
	}
	return c.bisect(batch, e)
}

// namedOf returns the violations at the deletes of a rename.
func namedOf(u unit, named map[memory.Path][]memory.Violation) []memory.Violation {
	var vs []memory.Violation
	for _, o := range u[1:] {
		vs = append(vs, named[o.Path]...)
	}
	return vs
}

// definite reports whether the hub certainly did not apply the request.
func definite(e *memory.Error) bool {
	switch e.Reason {
	case memory.ReasonUnavailable, memory.ReasonInternal:
		return false
	}
	return true
}

func (c *cycle) holdByHub(put out, vs []memory.Violation) {
	var version int64
	if v, err := c.s.ports.Guard.Check(context.Background(), put.Path, put.text); err == nil {
		version = v.PolicyVersion
	}
	c.hold(Held{Path: put.Path, ETag: put.Local, By: HeldByHub, Violations: vs, PolicyVersion: version,
		Revision: c.cursor.Revision, RenamedFrom: put.RenamedFrom})
}

// bisect handles a refusal that names none of the paths: a single change is held,
// several are sent in halves.
func (c *cycle) bisect(batch []unit, e *memory.Error) (rest, redo []unit, giveUp error) {
	if len(batch) == 1 {
		if u := batch[0]; !u[0].isDelete() {
			if e.Reason == memory.ReasonQuotaExceeded {
				c.quota = []memory.Violation{{Path: string(u[0].Path), Rule: string(e.Reason), Message: "the project is full: " + e.Message}}
			}
			c.holdByHub(u[0], []memory.Violation{{Path: string(u[0].Path), Rule: string(e.Reason), Message: "the hub refused it: " + e.Message}})
			return nil, nil, nil
		}
		return nil, nil, &stepError{step: "push", path: batch[0][0].Path, err: e}
	}
	// The later half is built anew and so comes in a commit of its own.
	half := len(batch) / 2
	for _, u := range batch[half:] {
		fresh := make(unit, len(u))
		for i, o := range u {
			fresh[i] = out{Action: o.Action, merged: o.merged}
		}
		redo = append(redo, fresh)
	}
	return batch[:half], redo, nil
}

// mergeCurrent takes in what the hub holds where preconditions failed, and settles these
// paths anew without another trip. The units that are not concerned are queued with them,
// or, where others are faster time and again, returned to be sent at once.
func (c *cycle) mergeCurrent(ctx context.Context, batch []unit, e *memory.Error) (rest []unit, err error) {
	failed := map[memory.Path]bool{}
	for _, m := range e.Current {
		failed[m.Path] = true
		if m.Deleted || m.ETag == "" {
			delete(c.remote, m.Path)
			continue
		}
		f := remoteFile{ETag: m.ETag, Revision: m.Revision, Size: m.Size, ModTime: m.ModTime, Author: m.Author}
		if memory.ETagOf(m.Content) == m.ETag {
			f.Content = m.Content
			if f.Content == nil {
				f.Content = []byte{}
			}
		}
		c.remote[m.Path] = f
		if i := c.s.state.Intents[m.Path]; f.Content != nil && i.ours(f.ETag) {
			c.agreeOn(m.Path, i, f.ETag, f.Revision, f.Content)
		}
	}
	if err := c.askConcerned(ctx, batch, failed); err != nil {
		return nil, err
	}
	concerned := false
	for _, u := range batch {
		if !slices.ContainsFunc(u, func(o out) bool { return failed[o.Path] }) {
			rest = append(rest, u)
			continue
		}
		concerned = true
		for _, o := range u { // a rename falls apart: each path is settled by itself
			if err := c.settle(ctx, o.Path); err != nil {
				return nil, err
			}
		}
	}
	if !concerned {
		return nil, &stepError{step: "push", err: fmt.Errorf("the hub named no path of the commit: %w", e)}
	}
	if c.met++; c.met <= maxTogether {
		// What was saved together goes up together: the rest waits for what was merged.
		for _, u := range rest {
			for _, o := range u {
				c.outs = append(c.outs, out{Action: o.Action, merged: o.merged})
			}
		}
		rest = nil
	}
	return rest, c.save(ctx)
}

// askConcerned asks about the texts that may lose their place where preconditions failed.
func (c *cycle) askConcerned(ctx context.Context, batch []unit, failed map[memory.Path]bool) error {
	var paths []memory.Path
	for _, u := range batch {
		if !slices.ContainsFunc(u, func(o out) bool { return failed[o.Path] }) {
			continue
		}
		for _, o := range u {
			paths = append(paths, o.Path)
		}
	}
	if err := c.fetch(ctx, paths); err != nil {
		return err
	}
	var actions []reconcile.Action
	for _, p := range paths {
		if a, ok := c.decide(p); ok {
			actions = append(actions, a)
		}
	}
	return c.askLosing(ctx, actions)
}

// decide decides one path anew.
func (c *cycle) decide(p memory.Path) (reconcile.Action, bool) {
	b := c.base[p]
	if a, ok := reconcile.Decide(p, planned(b), c.local[p], c.remote[p].ETag); ok {
		return a, true
	}
	a := reconcile.Action{Path: p, Kind: reconcile.Push, Base: planned(b), Local: c.local[p], Remote: c.remote[p].ETag}
	return a, memory.IsIndex(p) && b.Local != b.Hub
}

// settle decides one path anew and carries the decision out.
func (c *cycle) settle(ctx context.Context, p memory.Path) error {
	if err := c.fetch(ctx, []memory.Path{p}); err != nil {
		return err
	}
	if a, ok := c.decide(p); ok {
		return c.apply(ctx, a)
	}
	return nil
}
