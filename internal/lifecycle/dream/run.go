package dream

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

// Run tidies, if the gates let it. What was interrupted before is ended first. On an error
// nothing was changed, or a journal is there that Recover ends, and the lock says of the
// last dream what it said before.
func (d *Dreamer) Run(ctx context.Context, o Options) (Report, error) {
	now := d.Now()
	r := Report{DryRun: o.DryRun, By: "rules"}
	defer func() { r.Took = d.Now().Sub(now) }()
	if !o.DryRun {
		if _, err := d.Recover(ctx); err != nil && !errors.Is(err, ErrBusy) {
			return r, err
		}
	}
	touched, err := d.gates(ctx, o, now, &r)
	if err != nil || r.Skipped != "" {
		return r, err
	}
	if o.DryRun {
		if held, err := d.held(); err != nil || held {
			r.Skipped = GateLock
			return r, err
		}
		err := d.dream(ctx, o, touched, now, nil, &r)
		return r, err
	}
	release, err := d.exclusive()
	if errors.Is(err, ErrBusy) {
		r.Skipped = GateLock
		return r, nil
	}
	if err != nil {
		return r, err
	}
	defer release()
	lock, ok, err := d.take(now)
	if err != nil {
		return r, err
	}
	if !ok {
		r.Skipped = GateLock
		return r, nil
	}
	d.sweepTemps(ctx)
	err = d.dream(ctx, o, touched, now, &lock, &r)
	lock.Done = err == nil
	return r, errors.Join(err, d.release(lock))
}

// dream makes the change set and, but for a dry run, applies it. The uploads of the
// project wait from before the first look at the memories until all is done.
func (d *Dreamer) dream(ctx context.Context, o Options, touched []session, now time.Time, lock *taken, r *Report) error {
	if !o.DryRun {
		free, err := d.hold(ctx)
		if err != nil {
			return err
		}
		defer free()
	}
	t, err := d.plan(ctx, o, touched, r)
	if err != nil {
		return err
	}
	r.Changes, r.Left = t.changes(), t.left
	if o.DryRun || len(r.Changes) == 0 {
		return nil
	}
	if !d.ours(*lock) {
		return errors.New("dream: another client took the lock; nothing was changed")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	id, err := d.newID(now)
	if err != nil {
		return err
	}
	j := &journal{Record: Record{ID: id, Time: now, By: r.By, Changes: r.Changes, Left: r.Left}}
	if err := d.commit(ctx, j); err != nil {
		return err
	}
	r.ID, r.Changes = id, j.Changes
	for _, c := range j.Changes {
		if c.Skipped != "" {
			r.Left = append(r.Left, Left{c.Ref.String(), c.Skipped})
		}
	}
	return nil
}

// plan returns the tree as it is to be. What the guard refuses is left as it is, and all
// that depends on it: the rules are followed again without it.
func (d *Dreamer) plan(ctx context.Context, o Options, touched []session, r *Report) (*tree, error) {
	base, err := d.snapshot(ctx, d.Store)
	if err != nil {
		return nil, err
	}
	records, err := d.Log(ctx)
	if err != nil {
		return nil, err
	}
	base.recall(records)
	if !o.Force {
		base.decline(records)
	}
	plain := base
	switch {
	case d.Model == nil || len(base.items) == 0:
	case len(base.sealed) > 0: // its changes need an index that can be changed
		r.Fallback = "an index cannot be read"
	default:
		base = d.consult(ctx, o, base, touched, r)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	for {
		t := base.clone()
		if err := d.tidy(ctx, t); err != nil {
			return nil, err
		}
		refused, err := d.judge(ctx, t)
		if err != nil {
			return nil, err
		}
		if len(refused) == 0 {
			return t, nil
		}
		for ref, why := range refused {
			if it := base.at[ref]; it != nil && !bytes.Equal(it.first, it.Content) {
				// What the model did hangs together: none of it is taken.
				base, r.By, r.Fallback = plain, "rules", errUnfit.Error()+": "+why
			}
			base.left = append(base.left, Left{ref.String(), why})
			if memory.IsIndex(ref.Path) {
				delete(base.indexes, ref.Scope)
			} else {
				base.at[ref].frozen = true
			}
		}
	}
}

// judge asks the guard about every text that would be written to the team's directory.
func (d *Dreamer) judge(ctx context.Context, t *tree) (map[memories.Ref]string, error) {
	out := map[memories.Ref]string{}
	for _, c := range t.changes() {
		if c.Ref.Scope != memory.ScopeTeam || c.Kind == Delete {
			continue
		}
		err := d.vet(ctx, c.Ref, c.New)
		var refused *memories.RefusedError
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &refused):
			out[c.Ref] = "the guard refuses it, so it is left as it is: " + refused.Violations[0].Rule
		case err != nil:
			out[c.Ref] = "the guard has no verdict, so it is left as it is"
		}
	}
	return out, nil
}

// vet asks the guard about a text for the team's directory.
func (d *Dreamer) vet(ctx context.Context, ref memories.Ref, content []byte) error {
	if d.Guard == nil {
		return d.Store.Vet(ctx, ref, content)
	}
	violations, _, err := d.Guard.Check(ctx, ref.Path, content)
	if err == nil && len(violations) > 0 {
		err = &memories.RefusedError{Ref: ref, Violations: violations}
	}
	return err
}

// decline leaves alone what a person took back: memories that are again what they were
// before a dream that was undone.
func (t *tree) decline(records []Record) {
	for _, r := range records {
		if r.Undone.IsZero() {
			continue
		}
		for _, c := range r.Changes {
			it := t.at[c.Ref]
			if it != nil && c.Old != nil && bytes.Equal(it.first, c.Old) && !it.frozen {
				it.frozen = true
				t.left = append(t.left, Left{it.Ref.String(), "a dream that was undone had changed it; it is left as it is until it changes"})
			}
		}
	}
}
