package postgres

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// query runs a query as a whole call and collects its rows.
func query[T any](ctx context.Context, s *Store, op, sql string, scan func(pgx.CollectableRow) (T, error), args ...any) (out []T, err error) {
	err = s.call(ctx, op, func(ctx context.Context, c *pgxpool.Conn) (err error) {
		out, err = rows1(ctx, s, c, scan, sql, args...)
		return err
	})
	return out, err
}

// exec runs one statement as a whole call and returns how many rows it touched.
func (s *Store) exec(ctx context.Context, op, sql string, args ...any) (n int64, err error) {
	err = s.call(ctx, op, func(ctx context.Context, c *pgxpool.Conn) (err error) {
		n, err = s.exec1(ctx, c, sql, args...)
		return err
	})
	return n, err
}

// Teams returns the teams in order.
func (s *Store) Teams(ctx context.Context) ([]memory.Team, error) {
	return query(ctx, s, "list teams", "SELECT team FROM memsvc.teams ORDER BY team", pgx.RowTo[memory.Team])
}

// Projects returns the projects of a team, or all, in order.
func (s *Store) Projects(ctx context.Context, team memory.Team) ([]memory.ProjectKey, error) {
	return query(ctx, s, "list projects", "SELECT team, project FROM memsvc.projects WHERE $1='' OR team=$1 ORDER BY team, project",
		func(row pgx.CollectableRow) (k memory.ProjectKey, err error) {
			err = row.Scan((*string)(&k.Team), (*string)(&k.Project))
			return k, err
		}, string(team))
}

// Totals counts over all projects.
func (s *Store) Totals(ctx context.Context) (out store.Totals, err error) {
	err = s.call(ctx, "count projects", func(ctx context.Context, c *pgxpool.Conn) error {
		return s.row1(ctx, c, []any{&out.Projects, &out.Revisions}, "SELECT count(*), coalesce(sum(head), 0)::bigint FROM memsvc.projects")
	})
	return out, err
}

// Orphans counts projects that have commits and no row of their own: a purge takes both,
// so that somebody removed the row by hand.
func (s *Store) Orphans(ctx context.Context) (n int64, err error) {
	err = s.call(ctx, "look for orphans", func(ctx context.Context, c *pgxpool.Conn) error {
		return s.row1(ctx, c, []any{&n}, "SELECT count(DISTINCT project) FROM memsvc.commits c WHERE NOT EXISTS (SELECT FROM memsvc.projects p WHERE p.id=c.project)")
	})
	return n, err
}

const sqlSetting = `SELECT doc, version FROM memsvc.settings WHERE scope=$1 AND name=$2`

// Setting returns a document and its version.
func (s *Store) Setting(ctx context.Context, scope, name string) (doc []byte, version int64, err error) {
	err = s.call(ctx, "read setting "+name, func(ctx context.Context, c *pgxpool.Conn) error {
		err := s.row1(ctx, c, []any{&doc, &version}, sqlSetting, scope, name)
		if errors.Is(err, pgx.ErrNoRows) {
			doc, version, err = nil, 0, nil
		}
		return err
	})
	return doc, version, err
}

const (
	sqlFirstSetting = `INSERT INTO memsvc.settings(scope, name, version, doc) VALUES ($1, $2, 1, $3) ON CONFLICT DO NOTHING`
	sqlNextSetting  = `UPDATE memsvc.settings SET version=version+1, doc=$3 WHERE scope=$1 AND name=$2 AND version=$4`
)

// PutSetting replaces a document if it is still at version. When the answer of the
// database is lost, what is there tells whether it was written.
func (s *Store) PutSetting(ctx context.Context, scope, name string, doc []byte, version int64, on ...store.AuditEvent) error {
	doc = store.CloneContent(doc)
	tries := 0
	return s.call(ctx, "write setting "+name, func(ctx context.Context, c *pgxpool.Conn) error {
		tries++
		sql, args := sqlFirstSetting, []any{scope, name, doc}
		if version > 0 {
			sql, args = sqlNextSetting, append(args, version)
		}
		done, err := s.act1(ctx, c, on, sql, args...)
		if err != nil || done > 0 {
			return err
		}
		var now []byte
		var have int64
		err = s.row1(ctx, c, []any{&now, &have}, sqlSetting, scope, name)
		if errors.Is(err, pgx.ErrNoRows) {
			return store.StaleSetting(scope, name, 0)
		}
		if err == nil && tries > 1 && have == version+1 && string(now) == string(doc) {
			return nil
		}
		if err != nil {
			return err
		}
		return store.StaleSetting(scope, name, have)
	})
}

// SettingNames lists the settings under scope.
func (s *Store) SettingNames(ctx context.Context, scope string) ([]string, error) {
	return query(ctx, s, "list settings", "SELECT name FROM memsvc.settings WHERE scope=$1 ORDER BY name", pgx.RowTo[string], scope)
}

const (
	tokenColumns = `id, hash, team, project, name, role, created, created_ns, expires, expires_ns, revoked, revoked_ns`
	sqlPutToken  = `INSERT INTO memsvc.tokens(` + tokenColumns + `) VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12)`
)

func scanToken(row pgx.CollectableRow) (t store.Token, err error) {
	var created, expires, revoked int16
	err = row.Scan(&t.ID, &t.Hash, (*string)(&t.Team), (*string)(&t.Project), &t.Name, &t.Role, &t.CreateTime, &created, &t.ExpireTime, &expires, &t.RevokeTime, &revoked)
	t.CreateTime, t.ExpireTime, t.RevokeTime = unstamp(t.CreateTime, created), unstamp(t.ExpireTime, expires), unstamp(t.RevokeTime, revoked)
	return t, err
}

// PutToken keeps a new token.
func (s *Store) PutToken(ctx context.Context, t store.Token, on ...store.AuditEvent) error {
	created, createdNS := stamp(t.CreateTime)
	expires, expiresNS := stamp(t.ExpireTime)
	revoked, revokedNS := stamp(t.RevokeTime)
	tries := 0
	return s.call(ctx, "keep token "+t.ID, func(ctx context.Context, c *pgxpool.Conn) error {
		tries++
		_, err := s.act1(ctx, c, on, sqlPutToken, t.ID, t.Hash, string(t.Team), string(t.Project), t.Name, t.Role,
			created, createdNS, expires, expiresNS, revoked, revokedNS)
		if sqlState(err) != codeUniqueViolation {
			return err
		}
		if tries > 1 { // the try before may have kept it
			rows, err := c.Query(ctx, s.sql("SELECT "+tokenColumns+" FROM memsvc.tokens WHERE id=$1"), t.ID)
			if err != nil {
				return err
			}
			if have, err := pgx.CollectExactlyOneRow(rows, scanToken); err == nil && have == t.UTC() {
				return nil
			}
		}
		return store.Exists("token " + t.ID)
	})
}

// TokenByHash returns the token with this hash.
func (s *Store) TokenByHash(ctx context.Context, hash string) (store.Token, error) {
	found, err := query(ctx, s, "find token", "SELECT "+tokenColumns+" FROM memsvc.tokens WHERE hash=$1", scanToken, hash)
	if err == nil && len(found) == 0 {
		err = store.NoToken("")
	}
	if err != nil {
		return store.Token{}, err
	}
	return found[0], nil
}

// Tokens returns a team's tokens, or all, oldest first.
func (s *Store) Tokens(ctx context.Context, team memory.Team) ([]store.Token, error) {
	return query(ctx, s, "list tokens", "SELECT "+tokenColumns+" FROM memsvc.tokens WHERE $1='' OR team=$1 ORDER BY created, created_ns, id", scanToken, string(team))
}

const sqlRevoke = `UPDATE memsvc.tokens SET revoked=CASE WHEN revoked=$4 THEN $2 ELSE revoked END, revoked_ns=CASE WHEN revoked=$4 THEN $3 ELSE revoked_ns END WHERE id=$1`

// RevokeToken marks a token as revoked.
func (s *Store) RevokeToken(ctx context.Context, id string, at time.Time, on ...store.AuditEvent) error {
	t, ns := stamp(at)
	never, _ := stamp(time.Time{})
	var n int64
	err := s.call(ctx, "revoke token "+id, func(ctx context.Context, c *pgxpool.Conn) (err error) {
		n, err = s.act1(ctx, c, on, sqlRevoke, id, t, ns, never)
		return err
	})
	if err == nil && n == 0 {
		return store.NoToken(id)
	}
	return err
}

const (
	sqlPutAudit = `INSERT INTO memsvc.audit(time, time_ns, team, principal, action, subject, detail, request, count, last_time, last_ns)
VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11) RETURNING id`

	sqlRepeatAudit = `UPDATE memsvc.audit SET count=count+$2, last_time=$3, last_ns=$4 WHERE id=$1`

	// sqlTrimAudit looks at the next events and drops those that are old. It says how far
	// it has looked, and how many went.
	sqlTrimAudit = `WITH page AS (SELECT id, (time, time_ns) < ($2::timestamptz, $3::smallint) AS old FROM memsvc.audit WHERE id > $1 ORDER BY id LIMIT 1000),
gone AS (DELETE FROM memsvc.audit a USING page p WHERE a.id=p.id AND p.old RETURNING 1)
SELECT coalesce((SELECT max(id) FROM page), 0), (SELECT count(*) FROM gone)`
)

// AppendAudit adds an event to the audit log. When the database fails while it does
// so, the event may be there twice: better than not at all.
func (s *Store) AppendAudit(ctx context.Context, e store.AuditEvent) (id int64, err error) {
	err = s.call(ctx, "append to the audit log", func(ctx context.Context, c *pgxpool.Conn) error {
		return s.row1(ctx, c, []any{&id}, sqlPutAudit, auditArgs(e)...)
	})
	return id, err
}

// RepeatAudit counts an event that happened again. When the database fails while it does
// so, they may be counted twice.
func (s *Store) RepeatAudit(ctx context.Context, id, n int64, last time.Time) error {
	at, ns := stamp(last)
	_, err := s.exec(ctx, "count in the audit log", sqlRepeatAudit, id, n, at, ns)
	return err
}

// TrimAudit forgets old events, a thousand in one transaction, the oldest first.
func (s *Store) TrimAudit(ctx context.Context, cut time.Time) (total int64, err error) {
	at, ns := stamp(cut)
	for after := int64(0); ; {
		var n int64
		err := s.call(ctx, "trim the audit log", func(ctx context.Context, c *pgxpool.Conn) error {
			return s.row1(ctx, c, []any{&after, &n}, sqlTrimAudit, after, at, ns)
		})
		if total += n; err != nil || n == 0 {
			return total, err
		}
	}
}

// auditArgs are the columns of an event as sqlPutAudit takes them.
func auditArgs(e store.AuditEvent) []any {
	at, ns := stamp(e.Time)
	var last *time.Time
	var lastNS int16
	if !e.LastTime.IsZero() {
		t, n := stamp(e.LastTime)
		last, lastNS = &t, n
	}
	return []any{at, ns, string(e.Team), plain(e.Principal), plain(e.Action), plain(e.Subject), plain(e.Detail), plain(e.RequestID), max(e.Count, 1), last, lastNS}
}

// queueRecord adds events to the audit log.
func (s *Store) queueRecord(b *pgx.Batch, events []store.AuditEvent) {
	for _, e := range events {
		b.Queue(s.sql(sqlPutAudit), auditArgs(e)...)
	}
}

func (s *Store) record(ctx context.Context, tx pgx.Tx, events []store.AuditEvent) error {
	if len(events) == 0 {
		return nil
	}
	var b pgx.Batch
	s.queueRecord(&b, events)
	return tx.SendBatch(ctx, &b).Close()
}

// act1 is exec1 of a statement that is put on record with what it does, if it does
// anything.
func (s *Store) act1(ctx context.Context, c *pgxpool.Conn, on []store.AuditEvent, sql string, args ...any) (n int64, err error) {
	if len(on) == 0 {
		return s.exec1(ctx, c, sql, args...)
	}
	err = pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(sqlLimits)
		s.ground.queueMark(&b)
		b.Queue(s.sql(sql), args...).Exec(func(tag pgconn.CommandTag) error {
			n = tag.RowsAffected()
			return nil
		})
		if err := tx.SendBatch(ctx, &b).Close(); err != nil || n == 0 {
			return err
		}
		return s.record(ctx, tx, on)
	})
	return n, err
}

// plain makes any text one that the database takes: an event has to be on record
// whatever a stranger has put into it.
func plain(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

const (
	auditColumns = `SELECT id, time, time_ns, team, principal, action, subject, detail, request, count, last_time, last_ns FROM memsvc.audit WHERE id < $1`
	auditEnd     = ` ORDER BY id DESC LIMIT $2`
)

// AuditEvents returns events, the newest first.
func (s *Store) AuditEvents(ctx context.Context, team memory.Team, before int64, limit int) ([]store.AuditEvent, error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	most := int64(limit)
	if limit <= 0 {
		most = math.MaxInt64
	}
	sql, args := auditColumns+auditEnd, []any{before, most}
	if team != "" {
		sql, args = auditColumns+" AND team=$3"+auditEnd, append(args, string(team))
	}
	return query(ctx, s, "read the audit log", sql, func(row pgx.CollectableRow) (e store.AuditEvent, err error) {
		var ns, lastNS int16
		var last *time.Time
		err = row.Scan(&e.ID, &e.Time, &ns, (*string)(&e.Team), &e.Principal, &e.Action, &e.Subject, &e.Detail, &e.RequestID, &e.Count, &last, &lastNS)
		e.Time = unstamp(e.Time, ns)
		if last != nil {
			e.LastTime = unstamp(*last, lastNS)
		}
		return e, err
	}, args...)
}
