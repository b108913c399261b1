package syncer

import (
	"bytes"
	"context"
	"fmt"

	"github.com/memsvc/memsvc/internal/memory"
)

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
		if c.justGone(put.Path) {
			c.gap = true
			c.later(saveGap)
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
	c.flagShrunk(ctx, &put, text)
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
		Message: memory.TooLarge(f.Size)}}}
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

// flagShrunk flags an edit that took most of a file; it is pushed all the same.
func (c *cycle) flagShrunk(ctx context.Context, put *out, text []byte) {
	if put.Remote == "" || put.merged {
		return
	}
	old, err := c.text(ctx, c.base[put.Path].Text)
	if err != nil || len(text)*100 >= len(old)*30 {
		return
	}
	put.shrunk = memory.ETagOf(old)
	c.warn(put.Path, []memory.Violation{{Path: string(put.Path), Rule: "shrunk",
		Message: fmt.Sprintf("the file went from %d to %d bytes in one edit; restore it if that was not meant", len(old), len(text))}})
}
