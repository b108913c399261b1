package syncer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

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
}

func (o *out) isDelete() bool { return o.Kind == reconcile.PushDelete }

// unit is what must go in one commit: a change, or a rename's two.
type unit []out

// push sends what is queued: files first, with or before the indexes that name them,
// deletes last, in commits within the limits.
func (c *cycle) push(ctx context.Context) error {
	queue := c.units(c.outs)
	c.outs = nil
	newcomers := c.newcomers(queue)
	var batch []unit
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

// newcomers indexes the paths that will be on the hub besides the new ones, to find
// those that could not live beside them; nil when nothing new goes out.
func (c *cycle) newcomers(queue []unit) *memory.CollisionIndex {
	isNew := false
	gone := map[memory.Path]bool{}
	for _, u := range queue {
		for _, o := range u {
			isNew = isNew || !o.isDelete() && o.Remote == ""
			if o.isDelete() {
				gone[o.Path] = true
			}
		}
	}
	if !isNew {
		return nil
	}
	x := &memory.CollisionIndex{}
	for p := range c.remote {
		if !gone[p] {
			x.Add(p)
		}
	}
	return x
}

// build reads and judges the changes of a unit. ready is false when it does not go out.
func (c *cycle) build(ctx context.Context, u unit, others *memory.CollisionIndex) (built unit, ready bool, err error) {
	put := u[0]
	if put.isDelete() {
		if c.heldDel[put.Path] {
			return nil, false, nil
		}
		put.change = memory.Change{Path: put.Path, Kind: memory.Delete, Precondition: memory.IfMatch(put.Remote)}
		return unit{put}, true, nil
	}
	if put.Remote == "" && c.quota != nil {
		c.holdByHub(put, c.quota)
		c.heldDel[put.RenamedFrom] = true
		return nil, false, nil
	}
	refuse := func(by string, v Verdict) {
		c.hold(Held{Path: put.Path, ETag: put.Local, By: by, Violations: v.Violations, PolicyVersion: v.PolicyVersion,
			Revision: c.cursor.Revision, RenamedFrom: put.RenamedFrom})
	}
	waits := func(ok bool) { // the delete of a rename waits with it
		if !ok && put.RenamedFrom != "" {
			c.heldDel[put.RenamedFrom] = true
		}
	}
	defer func() { waits(ready) }()

	p := put.Path
	file := c.snap.Files[p]
	if !put.merged && file.Size > memory.MaxMemoryBytes {
		h := c.tooLarge(p)
		h.RenamedFrom = put.RenamedFrom
		c.hold(h)
		return nil, false, nil
	}
	text, ok, err := c.readAs(ctx, p, put.Local)
	if !ok || err != nil {
		return nil, false, err
	}
	if age := c.now.Sub(file.ModTime); len(text) == 0 && put.Remote != "" && age >= 0 && age < emptyGrace {
		c.later(emptyGrace) // probably being written
		return nil, false, nil
	}
	onDisk := text
	if memory.IsIndex(p) {
		if text, ok, err = c.outgoingIndex(ctx, put, text); !ok || err != nil {
			return nil, false, err
		}
	}
	if put.Remote == "" && others != nil {
		if other, collides := others.Check(p); collides {
			refuse(HeldByName, Verdict{Violations: []memory.Violation{{Path: string(p), Rule: "path-collision",
				Message: fmt.Sprintf("the project has %q, which is the same name on some disks; rename one", string(other))}}})
			return nil, false, nil
		}
	}
	v, err := c.s.ports.Guard.Check(ctx, p, text)
	switch {
	case err != nil && interrupted(ctx, err):
		return nil, false, &stepError{step: "check", path: p, err: err}
	case err != nil:
		refuse(HeldByGuard, Verdict{Violations: []memory.Violation{{Path: string(p), Rule: "guard-failed",
			Message: "the guard has no verdict; the file stays here until it has"}}})
		c.later(soon)
		return nil, false, nil
	case len(v.Violations) > 0:
		refuse(HeldByGuard, v)
		return nil, false, nil
	}
	if h, was := c.s.state.Held[p]; was && h.By == HeldByHub && h.ETag == put.Local && h.PolicyVersion == v.PolicyVersion &&
		h.Revision == c.cursor.Revision && h.RenamedFrom == put.RenamedFrom {
		c.hold(h) // nothing moved that could have changed the hub's mind
		return nil, false, nil
	}
	c.warn(p, v.Warnings)
	c.flagShrunk(ctx, put, text)
	put.text = text
	put.change = memory.Change{Path: p, Kind: memory.Put, Content: text, Precondition: memory.IfAbsent()}
	if put.Remote != "" {
		put.change.Precondition = memory.IfMatch(put.Remote)
	}
	if mtime := file.ModTime; !put.merged && !mtime.IsZero() {
		put.change.ModTime = mtime.Add(c.s.ports.Remote.Offset())
	} else {
		put.change.ModTime = c.now.Add(c.s.ports.Remote.Offset())
	}
	put.Local = memory.ETagOf(onDisk)
	if put.Remote == "" && others != nil {
		others.Add(p)
	}
	built = unit{put}
	if len(u) == 2 {
		from := u[1]
		from.change = memory.Change{Path: from.Path, Kind: memory.Delete, Precondition: memory.IfMatch(from.Remote)}
		built[0].change.RenamedFrom = from.Path
		built = append(built, from)
	}
	return built, true, nil
}

func (c *cycle) tooLarge(p memory.Path) Held {
	f := c.snap.Files[p]
	return Held{Path: p, ETag: f.ETag, By: HeldByGuard, Violations: []memory.Violation{{Path: string(p), Rule: memory.RuleContentSize,
		Message: fmt.Sprintf("the memory has %d bytes, the limit is %d; split it", f.Size, memory.MaxMemoryBytes)}}}
}

// outgoingIndex leaves out what stays here. ok is false when nothing is left to send;
// the baseline then learns what the disk holds.
func (c *cycle) outgoingIndex(ctx context.Context, put out, onDisk []byte) (text []byte, ok bool, err error) {
	p := put.Path
	agreed, known := c.ancestor(ctx, p)
	text = c.shared(p, onDisk, agreed)
	switch {
	case put.Remote == "":
		return text, len(bytes.TrimSpace(text)) > 0 || len(onDisk) == 0, nil
	case memory.ETagOf(text) != put.Remote:
		return text, true, nil
	case !known:
		return nil, false, nil
	}
	b := c.base[p]
	if b.Hub == put.Remote && b.Local != put.Local {
		b.Local = put.Local
		c.setBase(p, b, agreed)
	}
	return nil, false, nil
}

// flagShrunk notes an edit that took most of a file; it is pushed all the same.
func (c *cycle) flagShrunk(ctx context.Context, put out, text []byte) {
	if put.Remote == "" || put.merged {
		return
	}
	old, err := c.text(ctx, c.base[put.Path].Text)
	if err != nil || len(text)*100 >= len(old)*30 {
		return
	}
	c.note(Note{Kind: NoteShrunk, Path: put.Path, ETag: memory.ETagOf(old)})
	c.warn(put.Path, []memory.Violation{{Path: string(put.Path), Rule: "shrunk",
		Message: fmt.Sprintf("the file went from %d to %d bytes in one edit; restore it if that was not meant", len(old), len(text))}})
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
				if !o.isDelete() {
					e := memory.ETagOf(o.text)
					c.todo.PutIntents = append(c.todo.PutIntents, Intent{Path: o.Path, ToHub: true, Wanted: e, Base: e})
					c.keepText(o.text)
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
	if !res.Created {
		// Somebody had put the same there already; when, the next pull may tell.
		rev = c.cursor.Revision
	}
	for _, u := range batch {
		for _, o := range u {
			p := o.Path
			if o.isDelete() {
				delete(c.remote, p)
				c.dropBase(p)
				c.result.Deleted++
				continue
			}
			e := memory.ETagOf(o.text)
			c.remote[p] = remoteFile{ETag: e, Revision: rev, Size: int64(len(o.text)), ModTime: o.change.ModTime}
			c.setBase(p, BaseEntry{Text: e, Hub: e, Local: o.Local, HubRevision: rev}, o.text)
			c.todo.DropIntents = append(c.todo.DropIntents, p)
			delete(c.held, p)
			c.result.Pushed++
		}
	}
	// Nothing of others lies between: the cursor can move over our own commit, which
	// then need not be pulled again.
	if at := c.s.state.Cursor; res.Created && at == c.cursor && at.Epoch == res.Head.Epoch && res.Commit.Revision == at.Revision+1 && res.Commit.ID != "" {
		c.cursor = memory.Cursor{Epoch: at.Epoch, Revision: res.Commit.Revision, CommitID: res.Commit.ID}
		cursor := c.cursor
		c.todo.Cursor = &cursor
	}
	return c.save(ctx)
}

// refused sorts what is left of a batch that the hub did not take: rest is sent
// again as it is, redo is built anew, giveUp ends the push.
func (c *cycle) refused(ctx context.Context, batch []unit, e *memory.Error) (rest, redo []unit, giveUp error) {
	if definite(e) {
		for _, u := range batch {
			for _, o := range u {
				if !o.isDelete() {
					c.todo.DropIntents = append(c.todo.DropIntents, o.Path)
				}
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

// mergeCurrent takes in what the hub holds where preconditions failed, settles these
// paths anew without another trip, and returns the units that are not concerned.
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
	return rest, c.save(ctx)
}

// settle decides one path anew and carries the decision out.
func (c *cycle) settle(ctx context.Context, p memory.Path) error {
	if err := c.fetch(ctx, []memory.Path{p}); err != nil {
		return err
	}
	b := c.base[p]
	a, ok := reconcile.Decide(p, planned(b), c.local[p], c.remote[p].ETag)
	if !ok && memory.IsIndex(p) && b.Local != b.Hub {
		a = reconcile.Action{Path: p, Kind: reconcile.Push, Base: planned(b), Local: c.local[p], Remote: c.remote[p].ETag}
		ok = true
	}
	if !ok {
		return nil
	}
	return c.apply(ctx, a)
}
