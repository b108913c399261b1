package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// requestRescan asks for the team's stored texts to be judged again. When so many
// teams wait that there is no room, the hub's next start does it: the rules' version
// on record tells.
func (s *Service) requestRescan(team memory.Team) {
	select {
	case s.rescans <- team:
	default:
	}
}

// Names of work that one replica does at a time.
const (
	leaseRescan    = "rescan"
	leaseRetention = "retention"
)

// rescanLoop judges the teams whose rules changed while the hub was away, then
// those it is asked for.
func (s *Service) rescanLoop(ctx context.Context) {
	var overdue <-chan time.Time
	if s.Shared != nil { // a replica that was at it may be no more
		ticker := time.NewTicker(overdueEvery)
		defer ticker.Stop()
		overdue = ticker.C
	}
	outdated := func() {
		err := s.exclusive(ctx, leaseRescan, 0, func(keep func() error) error { return s.rescanOutdated(ctx, keep) })
		if err != nil && ctx.Err() == nil {
			s.Logger.Error("guard: stored texts not judged again", "error", err.Error())
		}
	}
	outdated()
	for {
		select {
		case <-ctx.Done():
			return
		case <-overdue:
			outdated()
		case team := <-s.rescans:
			err := s.exclusive(ctx, leaseRescan, 0, func(keep func() error) error { return s.rescan(ctx, team, keep) })
			if err != nil && ctx.Err() == nil {
				s.Logger.Error("guard: stored texts not judged again", "team", string(team), "error", err.Error())
			}
		}
	}
}

// ruleRecord is what the texts of a team were last judged by.
type ruleRecord struct {
	Version string `json:"version"`
	Policy  int64  `json:"policy"`
}

func (s *Service) rescanOutdated(ctx context.Context, keep func() error) error {
	teams, err := s.teams(ctx)
	if err != nil {
		return err
	}
	for _, team := range teams {
		p, err := s.policy(ctx, team)
		if err != nil {
			return err
		}
		have, version, err := load(ctx, s.settings, string(team), settingRules, ruleRecord{})
		if err != nil {
			return err
		}
		if version == 0 && len(p.RulesTOML) == 0 {
			// Nothing was ever judged by other rules. Compiling the guard only to
			// learn its version can wait for the first commit.
			if keys, err := s.Backend.Projects(ctx, team); err != nil || len(keys) == 0 {
				continue
			}
		}
		now, err := s.Guard.RulesVersion(p)
		if err != nil {
			return err
		}
		if have.Version == now && have.Policy == p.Version {
			continue
		}
		if err := s.rescan(ctx, team, keep); err != nil {
			return err
		}
	}
	return nil
}

// rescan judges every stored version of the team's memories, and the texts of open
// conflicts, each at every path where it stands. What it finds is on
// the audit log and counted, and still served until someone redacts it (ruling 13.15).
func (s *Service) rescan(ctx context.Context, team memory.Team, keep func() error) error {
	p, err := s.policy(ctx, team)
	if err != nil {
		return err
	}
	rules, err := s.Guard.RulesVersion(p)
	if err != nil {
		return err
	}
	keys, err := s.Backend.Projects(ctx, team)
	if err != nil {
		return err
	}
	hits := 0
	for _, key := range keys {
		if err := keep(); err != nil {
			return err
		}
		n, err := s.rescanProject(ctx, p, key)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		hits += n
	}
	s.Observer.RescanHits(team, hits)
	_, _, err = update(ctx, s.settings, string(team), settingRules, ruleRecord{}, func(r *ruleRecord) error {
		*r = ruleRecord{rules, p.Version}
		return nil
	})
	return err
}

func (s *Service) rescanProject(ctx context.Context, p Policy, key memory.ProjectKey) (hits int, err error) {
	info, err := s.Backend.Project(ctx, key)
	if err != nil {
		return 0, err
	}
	judged := map[textAt]bool{}
	look := func(at textAt, content []byte, where string) error {
		if at.etag == "" || content == nil || judged[at] {
			return nil
		}
		judged[at] = true
		found, err := s.Guard.Scan(p, string(at.path), content)
		if err != nil {
			return err
		}
		for _, f := range found {
			hits++
			detail := fmt.Sprintf("%s line %d %s %s; served until redacted", where, f.Line, f.Rule, f.Fingerprint)
			system := Call{Principal: Principal{Name: "hub", Role: Admin}}
			if err := s.audit(ctx, system, key.Team, "guard.rescan.hit", key.MemoryName(memory.Path(f.Path)), detail); err != nil {
				return err
			}
		}
		return nil
	}
	for after := info.Oldest - 1; after < info.Head.Revision; {
		commits, err := s.Backend.Changes(ctx, key, after, 100, maxAnswerBytes)
		if err != nil {
			return hits, err
		}
		if len(commits) == 0 {
			break
		}
		for i := range commits {
			for _, ch := range commits[i].Changes {
				if err := look(textAt{path: ch.Path, etag: ch.ETag}, ch.Content, revisionText(commits[i].Revision)); err != nil {
					return hits, err
				}
			}
		}
		after = commits[len(commits)-1].Revision
	}
	// Living memories older than what history keeps.
	for at := memory.Path(""); ; {
		page, err := s.Backend.List(ctx, key, store.ListOptions{After: at, Limit: 30, Content: true})
		if err != nil {
			return hits, err
		}
		if len(page) == 0 {
			break
		}
		for _, m := range page {
			if err := look(textAt{path: m.Path, etag: m.ETag}, m.Content, revisionText(m.Revision)); err != nil {
				return hits, err
			}
		}
		at = page[len(page)-1].Path
	}
	err = s.eachConflict(ctx, key, func(x listedConflict, text []byte) error {
		return look(textAt{x.Path, x.ETag, true}, text, "conflict "+x.ID)
	})
	return hits, err
}

func revisionText(r memory.Revision) string { return fmt.Sprintf("revision %d", r) }

// retainEvery is how often retention is enforced.
const retainEvery = time.Hour

// retain forgets old events of the audit log and old versions, project by project, until
// ctx ends.
func (s *Service) retain(ctx context.Context) {
	ticker := time.NewTicker(retainEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			err := s.exclusive(ctx, leaseRetention, retainEvery/2, func(keep func() error) error { return s.compact(ctx, keep) })
			if err != nil && ctx.Err() == nil {
				s.Logger.Error("retention: not enforced", "error", err.Error())
			}
		}
	}
}

// Compact enforces retention once, on the audit log and on every project.
func (s *Service) Compact(ctx context.Context) error {
	return s.compact(ctx, func() error { return nil })
}

func (s *Service) compact(ctx context.Context, keep func() error) error {
	return errors.Join(s.trimAudit(ctx), s.compactProjects(ctx, keep))
}

func (s *Service) compactProjects(ctx context.Context, keep func() error) error {
	keys, err := s.Backend.Projects(ctx, "")
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := keep(); err != nil {
			return err
		}
		t, err := s.teamSettings(ctx, key.Team)
		if err != nil {
			return err
		}
		retention := s.Limits.Retention
		if t.Retention > 0 {
			retention = t.Retention
		}
		res, err := s.Backend.Compact(ctx, key, s.Now().Add(-retention))
		if errors.Is(err, memory.ErrNotFound) {
			continue // purged meanwhile
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		s.Observer.Compacted(res.Versions, res.Commits, res.Bytes)
	}
	return nil
}
