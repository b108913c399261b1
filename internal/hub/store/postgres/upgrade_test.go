package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/pgtest"
)

// TestReplicaUnderANewerSchema lets a later step add a column, a table and an index under a
// running replica, as migrate does before the replicas are replaced: it serves on. One
// that is started now, of the older version, refuses.
func TestReplicaUnderANewerSchema(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	s := open(t, postgres.Options{URL: url})
	defer func() { _ = s.Close() }()
	key := memory.ProjectKey{Team: "acme", Project: "p"}
	must(t, s.CreateProject(ctx, key, time.Now()))
	must(t, commitTo(s, key, "a.md", "before"))
	database := &pgtest.Server{URL: url}
	for _, step := range []string{
		"ALTER TABLE memsvc.commits ADD COLUMN later text",
		"CREATE TABLE memsvc.later (id bigint PRIMARY KEY)",
		"CREATE INDEX later_time ON memsvc.commits (time)",
		"INSERT INTO memsvc.version VALUES (99)",
	} {
		must(t, database.Exec(ctx, step))
	}
	must(t, commitTo(s, key, "a.md", "after"))
	commits, err := s.History(ctx, key, 0, 10, 1<<20)
	must(t, err)
	if len(commits) != 2 || string(commits[1].Changes[0].Content) != "after" {
		t.Errorf("history %+v", commits)
	}
	must(t, s.Probe(ctx))
	_, err = postgres.Open(ctx, postgres.Options{URL: url})
	if !errors.Is(err, memory.ErrInvalidArgument) || !strings.Contains(err.Error(), "the database has schema 99, this program knows up to 2; run the newer memsvc that wrote it") {
		t.Errorf("an older program on a newer schema: %v", err)
	}
}

// TestFirstSchemaGoesOn migrates a database of the first schema: its audit log stays, and
// each event in it happened once.
func TestFirstSchemaGoesOn(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	s := open(t, postgres.Options{URL: url})
	at := time.Date(2026, 3, 5, 12, 0, 0, 7, time.UTC)
	_, err := s.AppendAudit(ctx, store.AuditEvent{Time: at, Team: "acme", Principal: "token:ann", Action: "token.create", Subject: "tokens/x"})
	must(t, err)
	must(t, s.Close())
	database := &pgtest.Server{URL: url}
	for _, step := range []string{
		"ALTER TABLE memsvc.audit DROP COLUMN count, DROP COLUMN last_time, DROP COLUMN last_ns",
		"DELETE FROM memsvc.version WHERE version > 1",
	} {
		must(t, database.Exec(ctx, step))
	}
	m, err := postgres.Migrate(ctx, postgres.Options{URL: url})
	must(t, err)
	if m.From != 1 || m.To != 2 {
		t.Errorf("migrated %+v, want 1 to 2", m)
	}
	s = open(t, postgres.Options{URL: url})
	defer func() { _ = s.Close() }()
	events, err := s.AuditEvents(ctx, "", 0, 0)
	must(t, err)
	want := []store.AuditEvent{{ID: 1, Time: at, Team: "acme", Principal: "token:ann", Action: "token.create", Subject: "tokens/x", Count: 1}}
	if d := cmp.Diff(want, events); d != "" {
		t.Errorf("audit log (-want +got):\n%s", d)
	}
}
