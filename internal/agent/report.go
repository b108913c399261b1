package agent

import (
	"context"
	"errors"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
)

// reporter keeps the texts of a link's open conflicts on the hub, so that any writer
// of the project can resolve them (ruling 13.22), and takes them off when they were
// resolved here. It comes after a cycle and is never in a push's way; what fails is
// done after the next cycle.
type reporter struct {
	c     *client.Client
	key   memory.ProjectKey
	guard syncer.Guard
	open  map[string]syncer.Conflict // as of the last round, by id
}

// round brings the hub up to date with the open conflicts.
func (p *reporter) round(ctx context.Context, s *syncer.Syncer, conflicts []syncer.Conflict) error {
	now := make(map[string]syncer.Conflict, len(conflicts))
	var errs []error
	for _, c := range conflicts {
		now[c.ID] = c
		if !c.Reported {
			errs = append(errs, p.report(ctx, s, c.ID))
		}
	}
	var gone []syncer.Conflict
	for id, c := range p.open {
		if _, still := now[id]; !still {
			gone = append(gone, c)
		}
	}
	if len(gone) > 0 {
		if err := p.resolve(ctx, gone); err != nil {
			errs = append(errs, err)
			for _, c := range gone {
				now[c.ID] = c // once more after the next cycle
			}
		}
	}
	p.open = now
	return errors.Join(errs...)
}

// report sends one conflict. A text that the guard refuses stays here.
func (p *reporter) report(ctx context.Context, s *syncer.Syncer, id string) error {
	t, err := s.Conflict(ctx, id)
	if errors.Is(err, syncer.ErrNoConflict) {
		return nil
	}
	if err != nil {
		return err
	}
	verdict, err := p.guard.Check(ctx, t.Path, t.Ours)
	if err != nil {
		return err
	}
	if len(verdict.Violations) == 0 {
		_, err := p.c.ReportConflict(ctx, p.key, client.Conflict{Path: t.Path, Text: t.Ours, HubETag: t.Hub, BaseETag: t.Conflict.Base})
		if err != nil {
			return err
		}
	}
	return s.MarkReported(ctx, id)
}

// resolve takes conflicts off the hub that are resolved here.
func (p *reporter) resolve(ctx context.Context, gone []syncer.Conflict) error {
	there, err := p.c.Conflicts(ctx, p.key)
	if err != nil {
		return err
	}
	for _, x := range there {
		for _, c := range gone {
			if x.Path == c.Path && memory.ETagOf(x.Text) == c.Local {
				if err := p.c.ResolveConflict(ctx, x.Name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
