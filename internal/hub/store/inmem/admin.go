package inmem

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

type settingKey struct{ scope, name string }

type setting struct {
	doc     []byte
	version int64
}

// Teams returns the teams in order.
func (s *Store) Teams(ctx context.Context) ([]memory.Team, error) {
	defer s.mu.RUnlock()
	if err := s.rlock(ctx); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(s.teams)), nil
}

// Projects returns the projects of a team, or all, in order.
func (s *Store) Projects(ctx context.Context, team memory.Team) ([]memory.ProjectKey, error) {
	defer s.mu.RUnlock()
	if err := s.rlock(ctx); err != nil {
		return nil, err
	}
	var out []memory.ProjectKey
	for k := range s.projects {
		if team == "" || k.Team == team {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, store.CompareProjects)
	return out, nil
}

// Totals counts over all projects.
func (s *Store) Totals(ctx context.Context) (store.Totals, error) {
	defer s.mu.RUnlock()
	if err := s.rlock(ctx); err != nil {
		return store.Totals{}, err
	}
	out := store.Totals{Projects: int64(len(s.projects))}
	for _, p := range s.projects {
		out.Revisions += int64(s.cursor(p).Revision)
	}
	return out, nil
}

// PurgeProject removes a project with its history and settings.
func (s *Store) PurgeProject(ctx context.Context, key memory.ProjectKey, on ...store.AuditEvent) error {
	defer s.mu.Unlock()
	if _, err := s.writeProject(ctx, key); err != nil {
		return err
	}
	delete(s.projects, key)
	for k := range s.settings {
		if k.scope == key.String() {
			delete(s.settings, k)
		}
	}
	s.record(on...)
	s.notices.Wake(key)
	return nil
}

// Setting returns a document and its version.
func (s *Store) Setting(ctx context.Context, scope, name string) (doc []byte, version int64, err error) {
	defer s.mu.RUnlock()
	if err := s.rlock(ctx); err != nil {
		return nil, 0, err
	}
	have := s.settings[settingKey{scope, name}]
	return slices.Clone(have.doc), have.version, nil
}

// PutSetting replaces a document if it is still at version.
func (s *Store) PutSetting(ctx context.Context, scope, name string, doc []byte, version int64, on ...store.AuditEvent) error {
	defer s.mu.Unlock()
	if err := s.lock(ctx); err != nil {
		return err
	}
	k := settingKey{scope, name}
	if have := s.settings[k].version; have != version {
		return store.StaleSetting(scope, name, have)
	}
	s.settings[k] = setting{doc: store.CloneContent(doc), version: version + 1}
	s.record(on...)
	return nil
}

// SettingNames lists the settings under scope.
func (s *Store) SettingNames(ctx context.Context, scope string) ([]string, error) {
	defer s.mu.RUnlock()
	if err := s.rlock(ctx); err != nil {
		return nil, err
	}
	var out []string
	for k := range s.settings {
		if k.scope == scope {
			out = append(out, k.name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// PutToken keeps a new token.
func (s *Store) PutToken(ctx context.Context, t store.Token, on ...store.AuditEvent) error {
	defer s.mu.Unlock()
	if err := s.lock(ctx); err != nil {
		return err
	}
	for id, have := range s.tokens {
		if id == t.ID || have.Hash == t.Hash {
			return store.Exists("token " + t.ID)
		}
	}
	s.tokens[t.ID] = t.UTC()
	s.record(on...)
	return nil
}

// TokenByHash returns the token with this hash.
func (s *Store) TokenByHash(ctx context.Context, hash string) (store.Token, error) {
	defer s.mu.RUnlock()
	if err := s.rlock(ctx); err != nil {
		return store.Token{}, err
	}
	for _, t := range s.tokens {
		if t.Hash == hash {
			return t, nil
		}
	}
	return store.Token{}, store.NoToken("")
}

// Tokens returns a team's tokens, or all, oldest first.
func (s *Store) Tokens(ctx context.Context, team memory.Team) ([]store.Token, error) {
	defer s.mu.RUnlock()
	if err := s.rlock(ctx); err != nil {
		return nil, err
	}
	var out []store.Token
	for _, t := range s.tokens {
		if team == "" || t.Team == team {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b store.Token) int {
		if c := a.CreateTime.Compare(b.CreateTime); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, nil
}

// RevokeToken marks a token as revoked.
func (s *Store) RevokeToken(ctx context.Context, id string, at time.Time, on ...store.AuditEvent) error {
	defer s.mu.Unlock()
	if err := s.lock(ctx); err != nil {
		return err
	}
	t, ok := s.tokens[id]
	if !ok {
		return store.NoToken(id)
	}
	if t.RevokeTime.IsZero() {
		t.RevokeTime = at.UTC()
		s.tokens[id] = t
	}
	s.record(on...)
	return nil
}

// AppendAudit adds an event to the audit log.
func (s *Store) AppendAudit(ctx context.Context, e store.AuditEvent) (int64, error) {
	defer s.mu.Unlock()
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	s.record(e)
	return s.auditID, nil
}

// RepeatAudit counts an event that happened again.
func (s *Store) RepeatAudit(ctx context.Context, id, n int64, last time.Time) error {
	defer s.mu.Unlock()
	if err := s.lock(ctx); err != nil {
		return err
	}
	for i := range s.audit {
		if e := &s.audit[i]; e.ID == id {
			e.Count, e.LastTime = e.Count+n, last.UTC()
		}
	}
	return nil
}

// TrimAudit forgets old events.
func (s *Store) TrimAudit(ctx context.Context, cut time.Time) (int64, error) {
	defer s.mu.Unlock()
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	before := len(s.audit)
	s.audit = slices.DeleteFunc(s.audit, func(e store.AuditEvent) bool { return e.Time.Before(cut) })
	return int64(before - len(s.audit)), nil
}

// record adds events to the audit log; s.mu is held.
func (s *Store) record(events ...store.AuditEvent) {
	for _, e := range events {
		s.auditID++
		e.ID, e.Time, e.Count, e.LastTime = s.auditID, e.Time.UTC(), max(e.Count, 1), e.LastTime.UTC()
		s.audit = append(s.audit, e)
	}
}

// AuditEvents returns events, the newest first.
func (s *Store) AuditEvents(ctx context.Context, team memory.Team, before int64, limit int) ([]store.AuditEvent, error) {
	defer s.mu.RUnlock()
	if err := s.rlock(ctx); err != nil {
		return nil, err
	}
	var out []store.AuditEvent
	for _, e := range slices.Backward(s.audit) {
		if before > 0 && e.ID >= before || team != "" && e.Team != team {
			continue
		}
		out = append(out, e)
		if len(out) == limit {
			break
		}
	}
	return out, nil
}
