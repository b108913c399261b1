package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

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
