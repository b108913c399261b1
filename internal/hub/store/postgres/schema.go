package postgres

import (
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

//go:embed schema/*.sql
var steps embed.FS

// minServer is the oldest PostgreSQL that is tested for: 14.
const minServer = 140000

// Migration says what Migrate did.
type Migration struct{ From, To int }

// Migrate brings the schema in the database up to date, one transaction for all steps.
// Several may run at a time: one does the work and the others find it done.
func Migrate(ctx context.Context, opts Options) (m Migration, err error) {
	opts.Migrate = true
	pool, err := connect(ctx, &opts)
	if err != nil {
		return m, err
	}
	defer pool.Close()
	s := &Store{opts: opts, pool: pool, log: opts.Logger}
	s.ground = newGround(s)
	err = s.begin(ctx)
	return s.migration, err
}

// SchemaVersion returns the version of the schema in the database; 0 if it has none. It
// changes nothing.
func SchemaVersion(ctx context.Context, opts Options) (have int, err error) {
	pool, err := connect(ctx, &opts)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	s := &Store{opts: opts, pool: pool, log: opts.Logger}
	s.ground = newGround(s)
	err = s.waiting(ctx, func(ctx context.Context) error {
		return s.once(ctx, func(ctx context.Context, c *pgxpool.Conn) (err error) {
			if err := s.checkServer(ctx, c); err != nil {
				return err
			}
			have, err = s.schemaVersion(ctx, c)
			return err
		})
	})
	return have, err
}

// newest returns the version of the schema that this program works with.
func newest() (int, error) {
	files, err := steps.ReadDir("schema")
	return len(files), err
}

// prepareSchema makes sure that the schema is this program's, and the history begun.
func (s *Store) prepareSchema(ctx context.Context) error {
	want, err := newest()
	if err != nil {
		return err
	}
	return s.once(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		if err := s.checkServer(ctx, c); err != nil {
			return err
		}
		have, err := s.schemaVersion(ctx, c)
		if err != nil {
			return err
		}
		s.migration = Migration{From: have, To: have}
		switch {
		case have > want:
			return store.Invalid("the database has schema %d, this program knows up to %d; run the newer memsvc that wrote it", have, want)
		case have < want && !s.opts.Migrate && have == 0:
			return store.Invalid("the database has no schema %q yet; run memsvc migrate, or serve with --migrate", s.opts.Schema)
		case have < want && !s.opts.Migrate:
			return store.Invalid("the database has schema %d, this program needs %d; run memsvc migrate, or serve with --migrate", have, want)
		case have < want:
			if err := s.migrate(ctx, c, want); err != nil {
				return err
			}
		}
		return s.ground.look(ctx, c)
	})
}

// checkServer refuses what cannot work.
func (s *Store) checkServer(ctx context.Context, c *pgxpool.Conn) error {
	var number, encoding string
	var readOnly bool
	err := c.QueryRow(ctx, "SELECT current_setting('server_version_num'), current_setting('server_encoding'), pg_is_in_recovery() OR current_setting('transaction_read_only')='on'").
		Scan(&number, &encoding, &readOnly)
	if err != nil {
		return err
	}
	if n, err := strconv.Atoi(number); err != nil || n < minServer {
		return store.Invalid("the database server is version %s; PostgreSQL 14 or newer is needed", number)
	}
	if encoding != "UTF8" {
		return store.Invalid("the database's encoding is %s; make one with ENCODING 'UTF8'", encoding)
	}
	if readOnly {
		return errReadOnly
	}
	return nil
}

// version returns the schema's version; 0 if there is none.
func (s *Store) version(ctx context.Context, c interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (have int, err error) {
	var there bool
	// The catalogue itself is asked: to_regclass may answer from a cache of before the
	// migration's lock was waited for.
	err = c.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname=$1 AND tablename='version')", s.opts.Schema).Scan(&there)
	if err != nil || !there {
		return 0, err
	}
	err = c.QueryRow(ctx, s.sql("SELECT coalesce(max(version), 0) FROM memsvc.version")).Scan(&have)
	return have, err
}

// schemaVersion is version of a schema that may be half there: one with our tables and
// without a version is no new one.
func (s *Store) schemaVersion(ctx context.Context, c *pgxpool.Conn) (have int, err error) {
	if have, err = s.version(ctx, c); err != nil || have > 0 {
		return have, err
	}
	var ours []string
	err = c.QueryRow(ctx, "SELECT coalesce(array_agg('table ' || tablename::text), '{}') FROM pg_tables WHERE schemaname=$1", s.opts.Schema).Scan(&ours)
	if err != nil {
		return 0, err
	}
	ours = slices.DeleteFunc(ours, func(o string) bool { return !slices.Contains(inventory, o) })
	if len(ours) == 0 {
		return 0, nil
	}
	// A migration, which is one transaction, may have ended since.
	if have, err = s.version(ctx, c); err != nil || have > 0 {
		return have, err
	}
	missing := []string{"the row of table version"}
	if !slices.Contains(ours, "table version") {
		missing = []string{"table version"}
	}
	return 0, incomplete(missing)
}

// migrate does the steps that are missing. The lock ends with the transaction.
func (s *Store) migrate(ctx context.Context, c *pgxpool.Conn, want int) error {
	tx, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // after a commit it says that there is none
	h := fnv.New64a()
	fmt.Fprint(h, "memsvc schema ", s.opts.Schema)
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(h.Sum64()>>1)); err != nil {
		return err
	}
	have, err := s.version(ctx, tx)
	if err != nil {
		return err
	}
	if have == 0 {
		// Whoever may not make schemas can be given this one.
		var there bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname=$1)", s.opts.Schema).Scan(&there); err != nil {
			return err
		}
		script := "CREATE TABLE memsvc.version(version int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());"
		if !there {
			script = "CREATE SCHEMA " + s.opts.Schema + ";" + script
		}
		if _, err := tx.Exec(ctx, s.sql(script), pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	for v := have + 1; v <= want; v++ {
		text, err := steps.ReadFile(fmt.Sprintf("schema/%04d.sql", v))
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, s.sql(string(text)), pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("migrate to schema %d: %w", v, err)
		}
		if _, err := tx.Exec(ctx, s.sql("INSERT INTO memsvc.version(version) VALUES ($1)"), v); err != nil {
			return err
		}
	}
	epoch := s.opts.Epoch
	if epoch == "" {
		epoch = newEpochID()
	}
	_, err = tx.Exec(ctx, s.sql("INSERT INTO memsvc.epochs(epoch, time) SELECT $1, now() WHERE NOT EXISTS (SELECT FROM memsvc.epochs)"), string(epoch))
	if err != nil {
		return err
	}
	s.migration = Migration{From: have, To: want}
	return tx.Commit(ctx)
}

// newEpochID mints a random epoch: a version 4 UUID.
func newEpochID() memory.Epoch {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return memory.Epoch(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}
