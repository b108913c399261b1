package syncer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/agent/reconcile"
	"github.com/memsvc/memsvc/internal/memory"
)

// look scans the workspace and decides whether what it sees may be believed. ok is
// false when the cycle ends here.
func (c *cycle) look(ctx context.Context) (ok bool, err error) {
	s := c.s
	if c.snap, err = c.scan(ctx); err != nil {
		return false, &stepError{step: "scan the workspace", err: err}
	}
	first := s.state.Fresh || len(s.state.Baseline)+len(s.state.Intents) == 0
	if c.snap.Root == RootMissing && s.state.Fresh {
		// The first time there is nothing to lose: the directory is made.
		if err := c.mark(ctx); err != nil {
			return false, err
		}
		if c.snap, err = s.ports.Local.Scan(ctx); err != nil {
			return false, &stepError{step: "scan the workspace", err: err}
		}
	}
	if !c.takeSnapshot() {
		return false, nil
	}
	c.base = maps.Clone(s.state.Baseline)
	if halt, why, missing := c.brake(first); halt {
		return false, c.halt(ctx, why, missing)
	}
	if h := s.state.Halt; h != nil && !h.Accepted {
		// What was missing is back.
		u := Update{ClearHalt: true}
		s.distrust(&u, h.Missing, c.snap)
		if err := s.save(ctx, u); err != nil {
			return false, err
		}
		c.base = maps.Clone(s.state.Baseline)
	}
	if mender, able := s.ports.Local.(Mender); able && c.snap.Torn {
		if err := mender.Mend(ctx); err != nil {
			c.errs = append(c.errs, &stepError{step: "mend the workspace", err: err})
		}
		if c.snap, err = s.ports.Local.Scan(ctx); err != nil {
			return false, &stepError{step: "scan the workspace", err: err}
		}
		if !c.takeSnapshot() {
			return false, nil
		}
	}
	if c.snap.Again > 0 {
		c.later(c.snap.Again)
	}
	if c.snap.Marker == "" || s.state.LinkID == "" {
		return true, c.mark(ctx)
	}
	if c.snap.MarkerBare {
		// A disk that does not take it now keeps a marker that is as good as it ever was.
		c.snap.MarkerBare = s.ports.Local.PutMarker(ctx, s.state.LinkID) != nil
	}
	return true, nil
}

// takeSnapshot makes the scanned files the local tree; false means that the root cannot be
// believed.
func (c *cycle) takeSnapshot() bool {
	if c.snap.Root == RootOK && slices.Contains(c.snap.Unreadable, "") {
		c.snap.Root, c.snap.Detail = RootUnknown, "the directory cannot be read"
	}
	if c.snap.Root != RootOK {
		c.result.Phase = PhaseNoRoot
		return false
	}
	c.local = make(reconcile.Tree, len(c.snap.Files))
	for p, f := range c.snap.Files {
		c.local[p] = f.ETag
	}
	return true
}

// scan looks at the disk, or believes the last look; see Follow.
func (c *cycle) scan(ctx context.Context) (Snapshot, error) {
	seen := c.s.seen
	c.s.seen = nil
	if g, able := c.s.ports.Local.(Glancer); able && c.follow && seen != nil && g.Same(ctx, *seen) {
		return *seen, nil
	}
	return c.s.ports.Local.Scan(ctx)
}

// mark makes sure that state and workspace carry the same link id.
func (c *cycle) mark(ctx context.Context) error {
	s := c.s
	id := s.state.LinkID
	if id == "" {
		// After a lost state the directory still knows which link it belongs to.
		if id = c.snap.Marker; id == "" {
			id = s.ports.NewID()
		}
		// The id is not saved by itself: an update would end Fresh before the first
		// comparison is done. It goes out with the first real one.
		c.todo.LinkID = id
	}
	if c.snap.Marker == id {
		return nil
	}
	if err := s.ports.Local.PutMarker(ctx, id); err != nil {
		return &stepError{step: "write the workspace's marker", err: err}
	}
	c.snap.Marker = id
	return nil
}

// brake judges whether what is missing looks like an accident (SPEC 3.6).
func (c *cycle) brake(first bool) (halt bool, why string, missing []memory.Path) {
	if first {
		return false, "", nil
	}
	st := &c.s.state
	all := c.baseline()
	for p, i := range st.Intents {
		// What may have reached the hub would be deleted there too.
		if _, agreed := all[p]; !agreed && i.ToHub && i.Wanted != "" {
			all[p] = reconcile.Agreed(i.Wanted)
		}
	}
	base, local := seen(c, all), seen(c, c.local)
	var accepted []memory.Path
	if st.Halt != nil && st.Halt.Accepted {
		accepted = st.Halt.Missing
	}
	pulled := c.pulledDeletes(base)
	accepted = append(slices.Clip(accepted), pulled...)
	missing = slices.DeleteFunc(reconcile.Missing(base, local), func(p memory.Path) bool { return slices.Contains(pulled, p) })
	if st.Halt != nil && !st.Halt.Accepted {
		// What was missing and cannot be seen now is not back.
		for _, p := range st.Halt.Missing {
			if _, agreed := all[p]; agreed && c.masked(p) {
				missing = append(missing, p)
			}
		}
		slices.Sort(missing)
	}
	switch {
	case c.snap.Marker != "" && c.snap.Marker != st.LinkID:
		return true, "the directory carries the marker of another link", missing
	case c.snap.Marker == "" && !c.asAgreed():
		what := ""
		if len(missing) > 0 {
			what = fmt.Sprintf(" and %d of %d files", len(missing), len(base))
		}
		return true, "the directory has lost its marker" + what + ": it may be another directory; resuming takes what lies at this path for the team's", missing
	case st.Halt != nil && !st.Halt.Accepted && slices.ContainsFunc(missing, func(p memory.Path) bool { return slices.Contains(st.Halt.Missing, p) }):
		// A directory that comes back bit by bit is not back before all of it is.
		return true, st.Halt.Reason, missing
	}
	halt, why = reconcile.Brake(base, local, accepted)
	return halt, why, missing
}

// pulledDeletes returns the files that an earlier cycle took from the disk because the
// hub's side deleted them, and was ended before the baseline knew: each left its agreed
// text in the trash first. Nobody on this machine did that, so it is no accident either.
func (c *cycle) pulledDeletes(base reconcile.Baseline) []memory.Path {
	var out []memory.Path
	for _, t := range c.s.state.Trash {
		if b, agreed := base[t.Path]; agreed && t.Reason == trashDeleted && t.ETag == b.Local && c.local[t.Path] == "" {
			out = append(out, t.Path)
		}
	}
	return out
}

// admit takes files back in that a scan refused for another one beside them, where it is
// the hub that holds them or did at the cursor: only the others are newcomers.
func (c *cycle) admit() {
	var still []Refusal
	for _, r := range c.snap.Refused {
		_, agreed := c.base[r.Path]
		if _, there := c.remote[r.Path]; r.File.ETag == "" || !agreed && !there {
			still = append(still, r)
			continue
		}
		c.snap.Files[r.Path], c.local[r.Path] = r.File, r.File.ETag
	}
	c.snap.Refused = still
}

// asAgreed reports whether the disk holds exactly the files of the baseline, each with
// its text. Only then a directory without a marker is surely the one that had it:
// another one has its own files, which nobody offered to the team, and its own ignore
// rules may hide them for now, so nothing is left out of the comparison.
func (c *cycle) asAgreed() bool {
	if len(c.base) != len(c.local) {
		return false
	}
	for p, b := range c.base {
		if c.local[p] != b.Local {
			return false
		}
	}
	return true
}

func (c *cycle) halt(ctx context.Context, why string, missing []memory.Path) error {
	c.result.Phase = PhaseHalted
	old := c.s.state.Halt
	if old != nil && !old.Accepted {
		// Whatever was missing once stays on the list: if it was written anew since,
		// that is no edit of what had been there.
		missing = append(slices.Clone(missing), old.Missing...)
		slices.Sort(missing)
		missing = slices.Compact(missing)
		if old.Reason == why && slices.Equal(old.Missing, missing) {
			return nil
		}
	}
	return c.s.save(ctx, Update{SetHalt: &Halt{Reason: why, Missing: missing, Of: len(c.base), Time: c.now}})
}

// baseline returns the planner's view of c.base.
func (c *cycle) baseline() reconcile.Baseline {
	b := make(reconcile.Baseline, len(c.base))
	for p, e := range c.base {
		b[p] = planned(e)
	}
	return b
}

func planned(e BaseEntry) reconcile.Base {
	return reconcile.Base{Text: e.Text, Hub: e.Hub, Local: e.Local}
}

// seen returns a tree less what is out of this cycle's sight. The result may be m itself.
func seen[M ~map[memory.Path]V, V any](c *cycle, m M) M {
	if c.snap.Ignored == nil && len(c.snap.Unreadable)+len(c.snap.Refused) == 0 {
		return m
	}
	return reconcile.Without(m, c.masked)
}

// masked reports whether a path is out of this cycle's sight: unknown or ignored.
func (c *cycle) masked(p memory.Path) bool { return c.ignored(p) || c.unknown(p) }

func (c *cycle) ignored(p memory.Path) bool { return c.snap.Ignored != nil && c.snap.Ignored(p) }

// unknown reports whether p lies at or below something that could not be looked at,
// or that stands there under a name or of a kind that is refused.
func (c *cycle) unknown(p memory.Path) bool {
	below := func(top memory.Path) bool {
		return top == p || strings.HasPrefix(string(p), string(top)+"/")
	}
	if slices.ContainsFunc(c.snap.Unreadable, below) {
		return true
	}
	return slices.ContainsFunc(c.snap.Refused, func(r Refusal) bool { return r.Path != "" && below(r.Path) })
}
