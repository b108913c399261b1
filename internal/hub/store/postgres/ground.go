package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// inventory is what the schema of this program consists of. A dump is restored in the order
// tables, rows, constraints and indexes, and taken away in the opposite one, so that a
// schema which has all of them has all rows. A step adds to it what it makes; what a step
// takes away leaves the list a release earlier, since replicas of that one still run then.
var inventory = []string{
	"table audit", "table commits", "table epochs", "table events", "table heads", "table leases", "table projects",
	"table redactions", "table replicas", "table requests", "table settings", "table spans", "table teams",
	"table tokens", "table version", "table versions",
	"constraint audit_pkey", "constraint commits_pkey", "constraint epochs_epoch_key", "constraint epochs_pkey",
	"constraint heads_pkey", "constraint leases_pkey", "constraint projects_pkey", "constraint projects_team_project_key",
	"constraint redactions_pkey", "constraint replicas_pkey", "constraint requests_pkey", "constraint settings_pkey",
	"constraint spans_pkey", "constraint teams_pkey", "constraint tokens_hash_key", "constraint tokens_pkey",
	"constraint version_pkey", "constraint versions_pkey",
	"index audit_team", "index commits_xid", "index events_xid", "index versions_path",
}

// ground is what the store stands on: a schema that was seen whole. Every transaction
// asks in its own pipeline whether it still stands there (queueMark), since a restore can
// take tables away and put half-loaded ones in their place while connections stay: a head
// without its log, or an empty table of tokens, must not become an answer.
type ground struct {
	s *Store
	// ids is the expression that names every constraint and index by its id. Those that
	// are not there are NULL. Names are looked up in the server's own cache, so that it
	// costs microseconds.
	ids  string
	mark atomic.Pointer[string] // the objects' ids as the expression gives them; nil: not looked yet

	mu     sync.Mutex // one look at a time; guards tables
	tables string     // the tables' ids
}

func newGround(s *Store) *ground {
	var names []string
	for _, o := range inventory {
		if kind, name, _ := strings.Cut(o, " "); kind != "table" {
			names = append(names, "to_regclass('memsvc."+name+"')")
		}
	}
	return &ground{s: s, ids: s.sql("(ARRAY[" + strings.Join(names, ",") + "]::oid[])::text")}
}

// queueMark ends the transaction, with codeMoved, if the schema is not the one that was
// seen whole. It has to come before what writes, and within one snapshot with what reads.
func (g *ground) queueMark(b *pgx.Batch) {
	if mark := g.mark.Load(); mark != nil {
		b.Queue("SELECT 1/("+g.ids+" = $1::text)::int", *mark)
	}
}

// errMoved is a transaction that met other tables than those before, whole ones: what it
// is for can be tried again.
var errMoved = errors.New("the database's tables were replaced")

// telling reports whether err may come from a schema that is not the one that was.
func telling(err error) bool {
	switch sqlState(err) {
	case codeMoved, codeUndefinedTable, codeUndefinedSchema, codeUndefinedColumn:
		return true
	}
	return false
}

// again looks anew after a telling failure.
func (g *ground) again(ctx context.Context, why error) error {
	if g.mark.Load() == nil {
		return why // Open and Migrate look themselves
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	before := *g.mark.Load()
	if err := g.s.borrow(ctx, g.lookLocked); err != nil {
		return err
	}
	if sqlState(why) != codeMoved && before == *g.mark.Load() {
		return why
	}
	return errMoved
}

// sqlGround asks for all in one go. In a standby nothing can be written for good; a
// database, a role or the server may be set to read-only too.
const sqlGround = `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')='on',
	ARRAY(
		SELECT 'table ' || relname FROM pg_class WHERE relnamespace=n.oid AND relkind='r'
		UNION ALL SELECT 'constraint ' || conname FROM pg_constraint WHERE connamespace=n.oid AND contype IN ('p','u')
		UNION ALL SELECT 'index ' || c.relname FROM pg_index i JOIN pg_class c ON c.oid=i.indexrelid WHERE c.relnamespace=n.oid AND i.indisvalid),
	coalesce((SELECT string_agg(oid::text, ',' ORDER BY relname) FROM pg_class WHERE relnamespace=n.oid AND relkind='r'), '')
FROM (SELECT (SELECT oid FROM pg_namespace WHERE nspname=$1) AS oid) n`

// lookLocked looks whether the database can be written and the schema is whole, and
// remembers it as the one to stand on.
func (g *ground) lookLocked(ctx context.Context, c *pgxpool.Conn) error {
	var readOnly bool
	var have []string
	var tables, mark string
	if err := c.QueryRow(ctx, "SELECT *, "+g.ids+" FROM ("+sqlGround+") g", g.s.opts.Schema).Scan(&readOnly, &have, &tables, &mark); err != nil {
		return err
	}
	if readOnly {
		return errReadOnly
	}
	if missing := lacking(have); len(missing) > 0 {
		return incomplete(missing)
	}
	if version, err := g.s.version(ctx, c); err != nil {
		return err
	} else if version == 0 {
		return incomplete([]string{"the row of table version"})
	}
	var begun bool
	if err := c.QueryRow(ctx, g.s.sql("SELECT EXISTS (SELECT FROM memsvc.epochs)")).Scan(&begun); err != nil {
		return err
	} else if !begun {
		return incomplete([]string{noEpochs})
	}
	if before := g.mark.Load(); before != nil && *before != mark {
		if tables != g.tables {
			g.s.log.Warn("the database was put back under the running hub; if it was a backup, and not yet done: memsvc migrate --restored")
		}
		g.s.notices.WakeAll() // what there was to notice is not known
	}
	g.tables = tables
	g.mark.Store(&mark)
	return nil
}

func (g *ground) look(ctx context.Context, c *pgxpool.Conn) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lookLocked(ctx, c)
}

// lacking returns what of the inventory is not there.
func lacking(have []string) (missing []string) {
	for _, o := range inventory {
		if !slices.Contains(have, o) {
			missing = append(missing, o)
		}
	}
	return missing
}

const noEpochs = "the rows of table epochs"

// incomplete says what the schema lacks and what to do.
func incomplete(missing []string) error {
	what := strings.Join(missing[:min(3, len(missing))], ", ")
	if more := len(missing) - 3; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	return &memory.Error{Reason: memory.ReasonUnavailable, Message: "the database's schema is incomplete: it lacks " + what +
		"; while a backup is put back, wait for its end; else stop the hubs, put the backup back into an empty database, call memsvc migrate --restored and start them"}
}

// errReadOnly is a database in which nothing can be written.
var errReadOnly error = &memory.Error{Reason: memory.ReasonUnavailable,
	Message: "the database " + readOnlyText}

const readOnlyText = "is a standby or read-only; point --database-url to the primary, or name all: postgres://USER@HOST1,HOST2/DATABASE?target_session_attrs=read-write"

// probeWait is how long a probe waits for locks.
const probeWait = "1s"

// Probe reports whether the store can be read and written now: the schema is whole, and a
// commit would get the locks of its tables. It writes nothing.
func (s *Store) Probe(ctx context.Context) error {
	return s.call(ctx, "look at the database", func(ctx context.Context, c *pgxpool.Conn) error {
		if err := s.ground.look(ctx, c); err != nil {
			if errors.Is(err, errReadOnly) {
				s.pool.Reset() // after a promotion the connections lead to another server
			}
			return err
		}
		var b pgx.Batch
		b.Queue("SELECT set_config('lock_timeout', '" + probeWait + "', true)")
		b.Queue(s.sql("LOCK TABLE memsvc.projects, memsvc.commits, memsvc.versions, memsvc.heads, memsvc.requests IN ROW EXCLUSIVE MODE"))
		err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return tx.SendBatch(ctx, &b).Close() })
		if sqlState(err) == codeLockTimeout {
			return &memory.Error{Reason: memory.ReasonUnavailable,
				Message: "somebody holds a lock on the hub's tables, so that commits wait; look into pg_locks and pg_stat_activity for who"}
		}
		return err
	})
}

var _ store.Prober = (*Store)(nil)

// The following run one statement together with the mark, in one transaction and one round
// trip.

// exec1 returns how many rows the statement touched.
func (s *Store) exec1(ctx context.Context, c *pgxpool.Conn, sql string, args ...any) (n int64, err error) {
	var b pgx.Batch
	s.ground.queueMark(&b)
	b.Queue(s.sql(sql), args...).Exec(func(tag pgconn.CommandTag) error {
		n = tag.RowsAffected()
		return nil
	})
	return n, c.SendBatch(ctx, &b).Close()
}

// row1 scans the one row; none is a pgx.ErrNoRows.
func (s *Store) row1(ctx context.Context, c *pgxpool.Conn, into []any, sql string, args ...any) error {
	var b pgx.Batch
	s.ground.queueMark(&b)
	b.Queue(s.sql(sql), args...).QueryRow(func(row pgx.Row) error { return row.Scan(into...) })
	return c.SendBatch(ctx, &b).Close()
}

// rows1 collects the rows.
func rows1[T any](ctx context.Context, s *Store, c *pgxpool.Conn, scan pgx.RowToFunc[T], sql string, args ...any) (out []T, err error) {
	var b pgx.Batch
	s.ground.queueMark(&b)
	b.Queue(s.sql(sql), args...).Query(func(rows pgx.Rows) (err error) {
		out, err = pgx.CollectRows(rows, scan)
		return err
	})
	return out, c.SendBatch(ctx, &b).Close()
}
