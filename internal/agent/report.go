package agent

import (
	"context"
	"crypto/sha256"
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
	c      *client.Client
	key    memory.ProjectKey
	guard  syncer.Guard
	policy *policyHolder

	at  memory.Revision // the revision at which the hub was last asked
	due time.Time       // when to ask again though nothing moves
	// refused says that the hub does not let the credential write; nothing is sent with
	// the same one under the same policy again.
	refused bool
	with    stance
}

// stance is what a refusal depends on.
type stance struct {
	credential [sha256.Size]byte
	policy     int64
}

func (p *reporter) stance() stance {
	return stance{p.c.CredentialFingerprint(), p.policy.get().Version}
}

// barred reports whether the hub has refused all that could be sent now.
func (p *reporter) barred() bool { return p.refused && p.with == p.stance() }

// bar notes that the hub refused who calls.
func (p *reporter) bar(err error) {
	if errors.Is(err, memory.ErrPermissionDenied) {
		p.refused, p.with = true, p.stance()
	}
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
// when the next round is due though nothing moves; 0 is not at all. That the credential
// may not write is an ErrPermissionDenied once, and then nothing until it may.
func (p *reporter) round(ctx context.Context, s *syncer.Syncer, now time.Time) (next time.Duration, err error) {
	var errs []error
	version := p.policy.get().Version
	barred := p.barred()
	for _, c := range s.Status().Conflicts {
		if barred || c.Kept || c.Reported && c.PolicyVersion == version {
			continue
		}
		err := p.report(ctx, s, c.ID)
		errs = append(errs, err)
		barred = errors.Is(err, memory.ErrPermissionDenied)
	}
	if barred {
		errs = append(errs, p.leave(ctx, s))
	}
	st := s.Status()
	if barred {
		st.Resolved = nil // they wait as well
	}
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

// leave notes of the conflicts that are not sent why they are not.
func (p *reporter) leave(ctx context.Context, s *syncer.Syncer) error {
	var errs []error
	for _, c := range s.Status().Conflicts {
		if !c.Reported {
			errs = append(errs, s.MarkReported(ctx, c.ID, syncer.Report{Refusal: string(memory.ReasonPermissionDenied)}))
		}
	}
	return errors.Join(errs...)
}

// report sends one conflict. A text that the guard refuses, here or on the hub, stays here.
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
	r := syncer.Report{PolicyVersion: verdict.PolicyVersion}
	if len(verdict.Violations) > 0 {
		r.Refusal = verdict.Violations[0].Rule
		return s.MarkReported(ctx, id, r)
	}
	_, err = p.c.ReportConflict(ctx, p.key, client.Conflict{Path: t.Path, Text: t.Ours, HubETag: t.Hub, BaseETag: t.Conflict.Base})
	if err == nil {
		return s.MarkReported(ctx, id, syncer.Report{Kept: true})
	}
	if r.Refusal = refusalOfText(err); r.Refusal == "" {
		return err
	}
	p.bar(err)
	if merr := s.MarkReported(ctx, id, r); merr != nil || errors.Is(err, memory.ErrPermissionDenied) {
		return errors.Join(err, merr)
	}
	return nil
}

// refusalOfText says why the hub does not keep a text, and will not however often it is
// asked: the first rule that it breaks, else the error's reason; "" where that may pass.
func refusalOfText(err error) string {
	var e *memory.Error
	if !errors.As(err, &e) || client.IsPassing(err) || e.Reason == memory.ReasonUnauthenticated || e.Reason == memory.ReasonNotFound {
		return ""
	}
	if len(e.Violations) > 0 {
		return e.Violations[0].Rule
	}
	return string(e.Reason)
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
				p.bar(err)
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
