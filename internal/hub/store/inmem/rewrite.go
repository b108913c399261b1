package inmem

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Redact replaces texts by a marker, wherever they are kept.
func (s *Store) Redact(ctx context.Context, req store.RedactRequest) (store.CommitResult, error) {
	red, err := store.NewRedaction(req)
	if err != nil {
		return store.CommitResult{}, err
	}
	defer s.mu.Unlock()
	p, err := s.writeProject(ctx, req.Project)
	if err != nil {
		return store.CommitResult{}, err
	}
	hit := false
	for rev, c := range p.commits {
		n := *c
		n.Changes = slices.Clone(c.Changes)
		changed := false
		for i := range n.Changes {
			changed = red.Rewrite(&n.Changes[i]) || changed
		}
		if changed {
			p.commits[rev], hit = &n, true
		}
	}
	if _, known := p.entries[req.Path]; !hit && !(known && req.Elsewhere) {
		return store.CommitResult{}, store.NoMemory(req.Project, req.Path, 0)
	}
	for k, r := range p.requests {
		r.result = copyResult(r.result)
		for i := range r.result.Commit.Changes {
			red.Rewrite(&r.result.Commit.Changes[i])
		}
		p.requests[k] = r
	}
	now, _ := p.version(req.Path, p.entries[req.Path].Revision, true)
	c := red.Commit(s.cursor(p), now)
	p.append(&c)
	s.addRedactions(req.Project.Team, req.Fingerprints)
	s.notices.Wake(req.Project)
	return store.CommitResult{Commit: store.WithoutContents(&c), Created: true, Head: s.cursor(p)}, nil
}

// Redacted returns those of the fingerprints that were redacted in the team.
func (s *Store) Redacted(ctx context.Context, team memory.Team, fingerprints []string) (found []string, err error) {
	defer s.mu.RUnlock()
	if err := s.rlock(ctx); err != nil {
		return nil, err
	}
	for _, f := range fingerprints {
		if s.redacted[team][f] {
			found = append(found, f)
		}
	}
	return found, nil
}

func (s *Store) addRedactions(team memory.Team, fingerprints []string) {
	if s.redacted[team] == nil {
		s.redacted[team] = make(map[string]bool)
	}
	for _, f := range fingerprints {
		s.redacted[team][f] = true
	}
}

// Redactions lists the fingerprints redacted in team.
func (s *Store) Redactions(ctx context.Context, team memory.Team) ([]string, error) {
	defer s.mu.RUnlock()
	if err := s.rlock(ctx); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(s.redacted[team])), nil
}

// ImportRedactions adds fingerprints redacted in team.
func (s *Store) ImportRedactions(ctx context.Context, team memory.Team, fingerprints []string) error {
	defer s.mu.Unlock()
	if err := s.lock(ctx); err != nil {
		return err
	}
	s.addRedactions(team, fingerprints)
	return nil
}

// NewEpoch makes next the present epoch.
func (s *Store) NewEpoch(ctx context.Context, next memory.Epoch, _ time.Time, on ...store.AuditEvent) error {
	defer s.mu.Unlock()
	if err := s.lock(ctx); err != nil {
		return err
	}
	if next == "" {
		return store.Invalid("new epoch: it has no id")
	}
	if slices.Contains(s.epochs, next) {
		return store.Exists("epoch " + string(next))
	}
	for _, p := range s.projects {
		p.spans = store.AddSpans(p.spans, store.Span{Epoch: s.epoch(), Through: p.head.Revision})
	}
	s.epochs = append(s.epochs, next)
	s.record(on...)
	return nil
}

// Rewind returns the last revision that the present history shares with seen.
func (s *Store) Rewind(ctx context.Context, key memory.ProjectKey, seen memory.Epoch) (at memory.Revision, ok bool, err error) {
	defer s.mu.RUnlock()
	p, err := s.readProject(ctx, key)
	if err != nil {
		return 0, false, err
	}
	if seen == s.epoch() {
		return p.head.Revision, true, nil
	}
	for _, sp := range p.spans {
		if sp.Epoch == seen {
			return sp.Through, true, nil
		}
	}
	// The project is younger than an epoch that this history had.
	return 0, slices.Contains(s.epochs, seen), nil
}

// Spans returns the epochs of the project's history.
func (s *Store) Spans(ctx context.Context, key memory.ProjectKey) ([]store.Span, error) {
	defer s.mu.RUnlock()
	p, err := s.readProject(ctx, key)
	if err != nil {
		return nil, err
	}
	return append(slices.Clone(p.spans), store.Span{Epoch: s.epoch(), Through: p.head.Revision}), nil
}

// ImportSpans adds epochs of another hub.
func (s *Store) ImportSpans(ctx context.Context, key memory.ProjectKey, spans []store.Span) error {
	defer s.mu.Unlock()
	p, err := s.writeProject(ctx, key)
	if err != nil {
		return err
	}
	p.spans = store.AddSpans(p.spans, spans...)
	return nil
}

// ImportCommits appends commits as they are.
func (s *Store) ImportCommits(ctx context.Context, key memory.ProjectKey, oldest memory.Revision, commits []memory.Commit) error {
	defer s.mu.Unlock()
	p, err := s.writeProject(ctx, key)
	if err != nil {
		return err
	}
	if err := store.CheckImport(key, p.head.Revision, p.oldest, oldest, commits); err != nil {
		return err
	}
	for i := range commits {
		c := store.WithContents(&commits[i])
		c.Project = key
		p.append(&c)
	}
	p.oldest = oldest
	s.notices.Wake(key)
	return nil
}
