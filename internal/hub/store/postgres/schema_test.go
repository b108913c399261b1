package postgres_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/pgtest"
)

// TestParallelMigrations starts many migrations of one new database at the same time,
// as replicas of a first release do: one history begins, and nobody fails.
func TestParallelMigrations(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	const n = 8
	var wg sync.WaitGroup
	done := make([]postgres.Migration, n)
	epochs := make([]memory.Epoch, n)
	for i := range n {
		wg.Go(func() {
			if i%2 == 0 {
				var err error
				if done[i], err = postgres.Migrate(ctx, postgres.Options{URL: url}); err != nil {
					t.Error(err)
				}
				return
			}
			s, err := postgres.Open(ctx, postgres.Options{URL: url, Migrate: true})
			if err != nil {
				t.Error(err)
				return
			}
			if epochs[i], err = s.Epoch(ctx); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range n {
		if i%2 == 0 && done[i].To != 2 || i%2 == 1 && (epochs[i] == "" || epochs[i] != epochs[1]) {
			t.Errorf("migration %d: %+v, epoch %q, want schema 2 and one epoch", i, done[i], epochs[i])
		}
	}
}

// TestForeignDatabases refuses what cannot work, and says why.
func TestForeignDatabases(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Own: true}) // it makes roles
	refused := func(what, url, want string) {
		t.Helper()
		_, err := postgres.Open(ctx, postgres.Options{URL: url, Migrate: true})
		if !errors.Is(err, memory.ErrInvalidArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an INVALID_ARGUMENT that says %q", what, err, want)
		}
	}
	newer := server.Database()
	_, err := postgres.Migrate(ctx, postgres.Options{URL: newer})
	must(t, err)
	must(t, (&pgtest.Server{URL: newer}).Exec(ctx, "INSERT INTO memsvc.version VALUES (99)"))
	refused("a newer schema", newer, "run the newer memsvc")

	must(t, server.Exec(ctx, "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"))
	refused("another encoding", strings.Replace(server.URL, "/postgres?", "/latin?", 1), "UTF8")

	// Whoever may not make schemas can be given one.
	guest := server.Database()
	must(t, server.Exec(ctx, "CREATE ROLE guest LOGIN"))
	asGuest := strings.Replace(guest, "//memsvc@", "//guest@", 1)
	if _, err := postgres.Open(ctx, postgres.Options{URL: asGuest, Migrate: true}); err == nil {
		t.Error("a role without rights made a schema")
	}
	must(t, (&pgtest.Server{URL: guest}).Exec(ctx, "CREATE SCHEMA memsvc AUTHORIZATION guest"))
	s := open(t, postgres.Options{URL: asGuest})
	must(t, s.CreateProject(ctx, memory.ProjectKey{Team: "acme", Project: "p"}, time.Now()))
	must(t, s.Close())
}
