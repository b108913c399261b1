package agent

import (
	"context"
	"errors"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
)

// reporter keeps the texts of a link's open conflicts on the hub, so that any writer
// of the project can resolve them (ruling 13.22), takes them off when they were resolved
// here, and ends them here when they were resolved elsewhere. It comes after a cycle and
// is never in a push's way; what fails is done after the next cycle.
type reporter struct {
	c     *client.Client
	key   memory.ProjectKey
	guard syncer.Guard

	at  memory.Revision // the revision at which the hub was last asked
	due time.Time       // when to ask again though nothing moves
}

// When the hub is asked which conflicts it still keeps. Who resolves one commits first
// and takes it off then, so a commit is followed by a second look; a resolution without
// one is found by the slow look alone.
const (
	conflictSoon = 2 * time.Second
	conflictLook = 15 * time.Second
)

// maxTrusted is how many conflicts a hub may list for a missing one to count as resolved.
// A hub keeps 200 of a project, and past that the oldest makes room for the newest.
const maxTrusted = 100

// round brings hub and machine into step with each other's open conflicts. It returns
// when the next round is due though nothing moves; 0 is not at all.
func (p *reporter) round(ctx context.Context, s *syncer.Syncer, now time.Time) (next time.Duration, err error) {
	var errs []error
	for _, c := range s.Status().Conflicts {
		if !c.Reported {
			errs = append(errs, p.report(ctx, s, c.ID))
		}
	}
	st := s.Status()
	kept := 0
	for _, c := range st.Conflicts {
		if c.Kept {
			kept++
		}
	}
	if len(st.Resolved) == 0 && kept == 0 {
		return 0, errors.Join(errs...)
	}
	if moved := st.Cursor.Revision != p.at; moved || len(st.Resolved) > 0 || !now.Before(p.due) {
		p.at, p.due = st.Cursor.Revision, now.Add(conflictLook)
		if moved {
			p.due = now.Add(conflictSoon)
		}
		errs = append(errs, p.compare(ctx, s, st))
	}
	return max(p.due.Sub(now), time.Millisecond), errors.Join(errs...)
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
	kept := len(verdict.Violations) == 0
	if kept {
		_, err := p.c.ReportConflict(ctx, p.key, client.Conflict{Path: t.Path, Text: t.Ours, HubETag: t.Hub, BaseETag: t.Conflict.Base})
		if err != nil {
			return err
		}
	}
	return s.MarkReported(ctx, id, kept)
}

// compare takes conflicts off the hub that are resolved here, and ends those here that
// the hub has no more.
func (p *reporter) compare(ctx context.Context, s *syncer.Syncer, st syncer.Status) error {
	list, err := p.c.Conflicts(ctx, p.key)
	if err != nil {
		return err
	}
	type text struct {
		path memory.Path
		etag memory.ETag
	}
	there := map[text]string{} // the hub's name of it
	for _, x := range list {
		there[text{x.Path, memory.ETagOf(x.Text)}] = x.Name
	}
	var done []string
	for _, r := range st.Resolved {
		if name, listed := there[text{r.Path, r.Local}]; listed {
			if err := p.c.ResolveConflict(ctx, name); err != nil && !errors.Is(err, memory.ErrNotFound) {
				return err
			}
			delete(there, text{r.Path, r.Local})
		}
		done = append(done, r.ID)
	}
	var gone []string
	for _, c := range st.Conflicts {
		if _, listed := there[text{c.Path, c.Local}]; c.Kept && !listed && len(list) < maxTrusted {
			gone = append(gone, c.ID)
		}
	}
	return s.EndConflicts(ctx, done, gone)
}
