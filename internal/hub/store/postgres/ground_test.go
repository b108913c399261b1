package postgres_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/pgtest"
)

// strings1 returns the texts that a query of one column gives.
func strings1(t *testing.T, url, sql string, args ...any) []string {
	t.Helper()
	c, err := pgx.Connect(ctx, url)
	must(t, err)
	defer func() { _ = c.Close(ctx) }()
	rows, err := c.Query(ctx, sql, args...)
	must(t, err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	return out
}

const (
	sqlConstraints = `SELECT 'ALTER TABLE memsvc.' || c.relname || ' ADD CONSTRAINT ' || conname || ' ' || pg_get_constraintdef(k.oid)
		FROM pg_constraint k JOIN pg_class c ON c.oid=k.conrelid WHERE connamespace='kept'::regnamespace AND contype IN ('p','u') ORDER BY 1`
	sqlIndexes = `SELECT replace(indexdef, 'kept.', 'memsvc.') FROM pg_indexes WHERE schemaname='kept'
		AND indexname NOT IN (SELECT conname FROM pg_constraint) ORDER BY 1`
)

// TestInventoryIsTheSchema holds the list of what a whole schema has against a new one.
func TestInventoryIsTheSchema(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	_, err := postgres.Migrate(ctx, postgres.Options{URL: url})
	must(t, err)
	have := strings1(t, url, `SELECT 'table ' || tablename FROM pg_tables WHERE schemaname='memsvc'
		UNION ALL SELECT 'constraint ' || conname FROM pg_constraint WHERE connamespace='memsvc'::regnamespace AND contype IN ('p','u')
		UNION ALL SELECT 'index ' || indexname FROM pg_indexes WHERE schemaname='memsvc' AND indexname NOT IN (SELECT conname FROM pg_constraint)`)
	want := slices.Clone(postgres.Inventory)
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("a new schema has\n%s\nthe inventory\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

// TestHalfLoadedDatabaseAnswersNothing puts a dump back below a running store, step by
// step as pg_restore does, on the connections that are there: no step is an answer out of
// what is not whole, or a place to write to.
func TestHalfLoadedDatabaseAnswersNothing(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	var log hubtest.Buffer
	s := open(t, postgres.Options{URL: url, NoHints: true, PollEvery: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer func() { _ = s.Close() }()
	key := memory.ProjectKey{Team: "acme", Project: "p"}
	must(t, s.CreateProject(ctx, key, time.Now()))
	must(t, commitTo(s, key, "a.md", "one"))
	must(t, s.PutToken(ctx, store.Token{ID: "t", Hash: "h", Name: "n", Role: "writer"}))
	wake, stop := s.Notify([]memory.ProjectKey{key})
	defer stop()
	calls := map[string]func() error{
		"Epoch":        func() error { _, err := s.Epoch(ctx); return err },
		"Project":      func() error { _, err := s.Project(ctx, key); return err },
		"List":         func() error { _, err := s.List(ctx, key, store.ListOptions{}); return err },
		"Get":          func() error { _, err := s.Get(ctx, key, "a.md", 0); return err },
		"Changes":      func() error { _, err := s.Changes(ctx, key, 0, 0, 0); return err },
		"Projects":     func() error { _, err := s.Projects(ctx, ""); return err },
		"Teams":        func() error { _, err := s.Teams(ctx); return err },
		"Totals":       func() error { _, err := s.Totals(ctx); return err },
		"Setting":      func() error { _, _, err := s.Setting(ctx, "", "none"); return err },
		"PutSetting":   func() error { return s.PutSetting(ctx, "", "new", []byte("x"), 0) },
		"TokenByHash":  func() error { _, err := s.TokenByHash(ctx, "h"); return err },
		"Tokens":       func() error { _, err := s.Tokens(ctx, ""); return err },
		"PutToken":     func() error { return s.PutToken(ctx, store.Token{ID: "u", Hash: "u"}) },
		"Redacted":     func() error { _, err := s.Redacted(ctx, "acme", []string{"f"}); return err },
		"AppendAudit":  func() error { _, err := s.AppendAudit(ctx, store.AuditEvent{}); return err },
		"RepeatAudit":  func() error { return s.RepeatAudit(ctx, 1, 1, time.Now()) },
		"TrimAudit":    func() error { _, err := s.TrimAudit(ctx, time.Now()); return err },
		"Act":          func() error { return s.PutSetting(ctx, "", "on record", []byte("x"), 0, store.AuditEvent{}) },
		"AuditEvents":  func() error { _, err := s.AuditEvents(ctx, "", 0, 0); return err },
		"Rewind":       func() error { _, _, err := s.Rewind(ctx, key, "none"); return err },
		"NewEpoch":     func() error { return s.NewEpoch(ctx, "next", time.Now()) },
		"Publish":      func() error { return s.Publish(ctx, "me", []byte("x")) },
		"Lease":        func() error { _, err := s.Lease(ctx, "l", "me", time.Minute); return err },
		"CreateOther":  func() error { return s.CreateProject(ctx, memory.ProjectKey{Team: "acme", Project: "q"}, time.Now()) },
		"Commit":       func() error { return commitTo(s, key, "b.md", "two") },
		"PurgeProject": func() error { return s.PurgeProject(ctx, key) },
		"Probe":        func() error { return s.Probe(ctx) },
	}
	database := &pgtest.Server{URL: url}
	silent := func(stage string) {
		t.Helper()
		for name, call := range calls {
			if err := call(); !errors.Is(err, memory.ErrUnavailable) || !strings.Contains(err.Error(), "schema is incomplete: it lacks") {
				t.Errorf("%s: %s: %v, want UNAVAILABLE and what is incomplete", stage, name, err)
			}
		}
		for _, open := range []bool{true, false} {
			var err error
			if open {
				_, err = postgres.Open(ctx, postgres.Options{URL: url})
			} else {
				_, err = postgres.Migrate(ctx, postgres.Options{URL: url})
			}
			if err == nil || !strings.Contains(err.Error(), "schema is incomplete: it lacks") {
				t.Errorf("%s: open %v: %v", stage, open, err)
			}
		}
	}
	must(t, database.Exec(ctx, "ALTER SCHEMA memsvc RENAME TO kept"))
	tables := strings1(t, url, "SELECT tablename FROM pg_tables WHERE schemaname='kept' ORDER BY 1")
	constraints, indexes := strings1(t, url, sqlConstraints), strings1(t, url, sqlIndexes)

	must(t, database.Exec(ctx, "CREATE SCHEMA memsvc"))
	for _, table := range tables {
		must(t, database.Exec(ctx, fmt.Sprintf("CREATE TABLE memsvc.%s(LIKE kept.%s INCLUDING DEFAULTS INCLUDING IDENTITY)", table, table)))
	}
	silent("tables")
	for n, table := range tables {
		must(t, database.Exec(ctx, fmt.Sprintf("INSERT INTO memsvc.%s OVERRIDING SYSTEM VALUE SELECT * FROM kept.%s", table, table)))
		if n == len(tables)/2 {
			silent("half of the rows")
		}
	}
	silent("rows")
	for n, sql := range constraints {
		must(t, database.Exec(ctx, sql))
		if n == len(constraints)-2 {
			silent("but one constraint")
		}
	}
	silent("constraints")
	for n, sql := range indexes {
		if n == len(indexes)-1 {
			silent("but one index")
		}
		must(t, database.Exec(ctx, sql))
	}
	select {
	case <-wake:
	default:
	}
	must(t, s.Probe(ctx)) // the first to see that it is whole
	select {
	case <-wake:
	case <-time.After(time.Minute):
		t.Error("no notice for the watchers of the database that was put back")
	}
	if !strings.Contains(log.String(), "memsvc migrate --restored") {
		t.Errorf("the log does not say that the database was put back: %s", log.String())
	}
	for _, name := range []string{"Project", "TokenByHash", "List", "Setting", "Publish", "Commit"} {
		if err := calls[name](); err != nil {
			t.Errorf("whole again: %s: %v", name, err)
		}
	}
	if written := strings1(t, url, "SELECT name FROM memsvc.settings UNION ALL SELECT epoch FROM memsvc.epochs WHERE epoch='next' UNION ALL SELECT id FROM memsvc.tokens WHERE id='u'"); len(written) > 0 {
		t.Errorf("written into what was not whole: %v", written)
	}
}

// TestIncompleteSchemas names what is missing, and neither serves nor migrates.
func TestIncompleteSchemas(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	for _, c := range []struct{ what, sql, lacks string }{
		{"a constraint", "ALTER TABLE memsvc.settings DROP CONSTRAINT settings_pkey", "lacks constraint settings_pkey;"},
		{"an index", "DROP INDEX memsvc.commits_xid", "lacks index commits_xid;"},
		{"a table", "DROP TABLE memsvc.tokens", "lacks table tokens, "},
		{"the version", "DELETE FROM memsvc.version", "lacks the row of table version;"},
		{"the epochs", "DELETE FROM memsvc.epochs", "lacks the rows of table epochs;"},
		{"the table of it", "DROP TABLE memsvc.version", "lacks table version;"},
	} {
		url := server.Database()
		_, err := postgres.Migrate(ctx, postgres.Options{URL: url})
		must(t, err)
		must(t, (&pgtest.Server{URL: url}).Exec(ctx, c.sql))
		_, err = postgres.Open(ctx, postgres.Options{URL: url})
		_, merr := postgres.Migrate(ctx, postgres.Options{URL: url})
		for _, err := range []error{err, merr} {
			if !errors.Is(err, memory.ErrUnavailable) || !strings.Contains(err.Error(), c.lacks) || !strings.Contains(err.Error(), "memsvc migrate --restored") {
				t.Errorf("without %s: %v, want it to say %q", c.what, err, c.lacks)
			}
		}
	}
}

// TestReindexedTablesAreTheSame builds indexes anew under a running store.
func TestReindexedTablesAreTheSame(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	s := open(t, postgres.Options{URL: url})
	defer func() { _ = s.Close() }()
	key := memory.ProjectKey{Team: "acme", Project: "p"}
	must(t, s.CreateProject(ctx, key, time.Now()))
	must(t, (&pgtest.Server{URL: url}).Exec(ctx, "REINDEX SCHEMA CONCURRENTLY memsvc"))
	must(t, commitTo(s, key, "a.md", "one"))
	if _, err := s.Project(ctx, memory.ProjectKey{Team: "acme", Project: "none"}); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("a project that is not there: %v", err)
	}
}

// TestReadOnlyDatabases are refused with the way out, and left by themselves.
func TestReadOnlyDatabases(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Own: true})
	url := server.Database()
	s := open(t, postgres.Options{URL: url})
	defer func() { _ = s.Close() }()
	key := memory.ProjectKey{Team: "acme", Project: "p"}
	must(t, s.CreateProject(ctx, key, time.Now()))
	name := strings1(t, url, "SELECT current_database()::text")[0]
	must(t, server.Exec(ctx, "ALTER DATABASE "+name+" SET default_transaction_read_only=on"))
	must(t, server.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname=$1", name))
	_, openErr := postgres.Open(ctx, postgres.Options{URL: url})
	_, migrateErr := postgres.Migrate(ctx, postgres.Options{URL: url})
	_, versionErr := postgres.SchemaVersion(ctx, postgres.Options{URL: url})
	for what, err := range map[string]error{
		"open": openErr, "migrate": migrateErr, "version": versionErr, "commit": commitTo(s, key, "a.md", "one"), "probe": s.Probe(ctx),
	} {
		if !errors.Is(err, memory.ErrUnavailable) || !strings.Contains(err.Error(), "target_session_attrs=read-write") {
			t.Errorf("%s: %v, want UNAVAILABLE and the way out", what, err)
		}
		if what != "commit" && err != nil && strings.Contains(err.Error(), "try again") {
			t.Errorf("%s: trying again cannot help: %v", what, err)
		}
	}
	// The connections that are there stay read-only; others are not.
	must(t, server.Exec(ctx, "ALTER DATABASE "+name+" RESET default_transaction_read_only"))
	must(t, commitTo(s, key, "a.md", "one"))
	must(t, s.Probe(ctx))
}

// TestProbeSeesHeldLocks notices that commits hang, and that they do no more.
func TestProbeSeesHeldLocks(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	s := open(t, postgres.Options{URL: url})
	defer func() { _ = s.Close() }()
	must(t, s.Probe(ctx))
	holder, err := pgx.Connect(ctx, url)
	must(t, err)
	defer func() { _ = holder.Close(ctx) }()
	tx, err := holder.Begin(ctx)
	must(t, err)
	_, err = tx.Exec(ctx, "LOCK TABLE memsvc.heads IN SHARE MODE") // readers go on
	must(t, err)
	began := time.Now()
	if err := s.Probe(ctx); !errors.Is(err, memory.ErrUnavailable) || !strings.Contains(err.Error(), "holds a lock on the hub's tables") {
		t.Errorf("while a table is locked: %v", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the probe took %v", took)
	}
	must(t, tx.Rollback(ctx))
	must(t, s.Probe(ctx))
}
