package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// txn is one transaction on one project. It holds the lock of the project's head from
// its first statement on, so that what it judges on cannot change, and revisions are
// in commit order. Two round trips: lock and look, write and commit.
type txn struct {
	s     *Store
	c     *pgxpool.Conn
	key   memory.ProjectKey
	st    *state
	epoch memory.Epoch
	// target is the revision of the locked head.
	target memory.Revision

	requests map[string]*remembered // found, and made by this transaction
	writes   writes
	after    []func() // once it is durable
}

// writes are what a transaction is to write at its end.
type writes struct {
	commits  []memory.Commit
	paths    map[memory.Path]struct{} // whose heads changed
	requests []*remembered
	oldest   bool // the oldest revision changed
}

func (w *writes) any() bool { return len(w.commits) > 0 || len(w.requests) > 0 || w.oldest }

// transact does jobs in one transaction. Its error is the database's; what the jobs
// themselves end with is in them.
func (s *Store) transact(ctx context.Context, l *lane, batch []*job) error {
	return s.once(ctx, func(ctx context.Context, c *pgxpool.Conn) (err error) {
		t := &txn{s: s, c: c, key: l.key, st: l.st, requests: make(map[string]*remembered), writes: writes{paths: make(map[memory.Path]struct{})}}
		defer func() { rollback(ctx, c) }()
		found, err := t.begin(ctx, batch)
		if err != nil {
			return err
		}
		if !found {
			l.st = nil
			for _, j := range batch {
				j.err = store.NoProject(l.key)
			}
			return nil
		}
		if err := t.catchUp(ctx); err != nil {
			return err
		}
		l.st = t.st
		for _, j := range batch {
			if j.err = j.apply(ctx, t); j.err == nil {
				continue
			}
			var known *memory.Error
			if !errors.As(j.err, &known) {
				return j.err
			}
			if j.alone {
				l.st = nil // how far it came is not known
				return nil
			}
		}
		if err := t.commit(ctx); err != nil {
			return err
		}
		if t.st == nil {
			l.st = nil
		}
		for _, f := range t.after {
			f()
		}
		return nil
	})
}

const (
	// sqlLimits hold for the transaction only. The database gives up waiting for a lock
	// before the caller does; and it ends a transaction whose client has vanished, or was
	// stopped, and would hold up everybody else.
	sqlLimits = `SELECT set_config('lock_timeout', '10s', true), set_config('idle_in_transaction_session_timeout', '5s', true)`

	sqlLock = `SELECT id, head, head_id, oldest, files, bytes FROM memsvc.projects WHERE team=$1 AND project=$2 FOR NO KEY UPDATE`

	// sqlLook runs after the lock is held, and sees what was committed before.
	sqlLook = `SELECT e.epoch, r.key, r.digest, r.at, r.at_ns, r.created, r.rev, r.id
FROM (SELECT epoch FROM memsvc.epochs ORDER BY n DESC LIMIT 1) e
LEFT JOIN memsvc.requests r ON r.project=(SELECT id FROM memsvc.projects WHERE team=$1 AND project=$2) AND r.key=ANY($3)`
)

// begin locks the project and looks at what every job needs. found is false if there
// is no such project.
func (t *txn) begin(ctx context.Context, batch []*job) (found bool, err error) {
	keys := make([][]byte, 0, len(batch))
	for _, j := range batch {
		if j.request != nil {
			keys = append(keys, j.request)
		}
	}
	var now state
	var b pgx.Batch
	b.Queue("BEGIN")
	b.Queue(sqlLimits)
	t.s.ground.queueMark(&b)
	b.Queue(t.s.sql(sqlLock), string(t.key.Team), string(t.key.Project)).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			found = true
			if err := rows.Scan(&now.id, (*int64)(&now.rev), (*string)(&now.commit), (*int64)(&now.oldest), &now.files, &now.bytes); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	b.Queue(t.s.sql(sqlLook), string(t.key.Team), string(t.key.Project), keys).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var r remembered
			var at *time.Time
			var ns *int16
			var created *bool
			var rev *int64
			var id *string
			if err := rows.Scan((*string)(&t.epoch), &r.key, &r.digest, &at, &ns, &created, &rev, &id); err != nil {
				return err
			}
			if at == nil {
				continue // no request
			}
			r.at, r.created, r.rev, r.id = unstamp(*at, *ns), *created, memory.Revision(*rev), memory.CommitID(*id)
			t.requests[string(r.key)] = &r
		}
		return rows.Err()
	})
	if err := t.c.SendBatch(ctx, &b).Close(); err != nil || !found {
		return false, err
	}
	if t.st == nil || t.st.id != now.id || t.st.rev > now.rev || t.st.rev == now.rev && t.st.commit != now.commit {
		// Nothing known, or of another history: made anew, or put back by a restore.
		t.st = newState(now.id)
	}
	t.st.oldest = now.oldest
	if t.st.rev == now.rev && (t.st.files != now.files || t.st.bytes != now.bytes) {
		return false, fmt.Errorf("the head of %s counts %d memories, its history %d", t.key, now.files, t.st.files)
	}
	t.target = now.rev
	return true, nil
}

const (
	sqlSince = `SELECT c.rev, c.id, v.path, v.etag, v.prev_etag, v.size
FROM memsvc.commits c JOIN memsvc.versions v ON v.project=c.project AND v.rev=c.rev
WHERE c.project=$1 AND c.rev>=$2 ORDER BY c.rev, v.n`

	sqlHeads = `SELECT path, rev, etag, size, deleted FROM memsvc.heads WHERE project=$1`

	sqlHead = `SELECT head, head_id FROM memsvc.projects WHERE id=$1`
)

// maxBehind is how many revisions are read one by one; beyond it, or at the start,
// reading the heads costs less.
const maxBehind = 2000

// catchUp brings the state to the locked head.
func (t *txn) catchUp(ctx context.Context) error {
	if t.st.rev == t.target {
		return nil
	}
	if t.st.rev > 0 && t.target-t.st.rev <= maxBehind {
		ok, err := t.followLog(ctx)
		if ok || err != nil {
			return err
		}
	}
	return t.load(ctx)
}

// followLog reads the commits since the state's revision; ok is false if the log does
// not go on from there.
func (t *txn) followLog(ctx context.Context) (ok bool, err error) {
	rows, err := t.c.Query(ctx, t.s.sql(sqlSince), t.st.id, int64(t.st.rev))
	if err != nil {
		return false, err
	}
	defer rows.Close()
	type step struct {
		rev     memory.Revision
		id      memory.CommitID
		changes []memory.AppliedChange
	}
	var log []step
	for rows.Next() {
		var rev memory.Revision
		var id memory.CommitID
		var ch memory.AppliedChange
		var etag, prev []byte
		if err := rows.Scan((*int64)(&rev), (*string)(&id), (*string)(&ch.Path), &etag, &prev, &ch.Size); err != nil {
			return false, err
		}
		ch.ETag, ch.PreviousETag = etagOf(etag), etagOf(prev)
		if len(log) == 0 || log[len(log)-1].rev != rev {
			log = append(log, step{rev: rev, id: id})
		}
		last := &log[len(log)-1]
		last.changes = append(last.changes, ch)
	}
	if err := rows.Err(); err != nil {
		return false, err
	}
	for i, c := range log {
		if i == 0 && (c.rev != t.st.rev || c.id != t.st.commit) || c.rev != t.st.rev+memory.Revision(min(i, 1)) {
			return false, nil
		}
		if i > 0 {
			t.st.follow(c.rev, c.id, c.changes)
		}
	}
	return t.st.rev == t.target, nil
}

// load reads the whole state.
func (t *txn) load(ctx context.Context) error {
	st := newState(t.st.id)
	st.oldest = t.st.oldest
	rows, err := t.c.Query(ctx, t.s.sql(sqlHeads), st.id)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var path memory.Path
		var h head
		var sum []byte
		if err := rows.Scan((*string)(&path), (*int64)(&h.rev), &sum, &h.size, &h.deleted); err != nil {
			return err
		}
		copy(h.sum[:], sum)
		st.set(path, h)
		if !h.deleted {
			st.paths.Add(path)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	err = t.c.QueryRow(ctx, t.s.sql(sqlHead), st.id).Scan((*int64)(&st.rev), (*string)(&st.commit))
	t.st = st
	return err
}

// append makes c the project's next commit.
func (t *txn) append(c memory.Commit) {
	t.st.follow(c.Revision, c.ID, c.Changes)
	t.writes.commits = append(t.writes.commits, c)
	for i := range c.Changes {
		t.writes.paths[c.Changes[i].Path] = struct{}{}
	}
}

// remember keeps what a request id is answered with.
func (t *txn) remember(r *remembered) {
	t.requests[string(r.key)] = r
	t.writes.requests = append(t.writes.requests, r)
}

// commit writes and commits. Watchers are told once it is durable.
func (t *txn) commit(ctx context.Context) error {
	var b pgx.Batch
	if t.writes.any() {
		t.write(&b)
	}
	b.Queue("COMMIT")
	err := t.c.SendBatch(ctx, &b).Close()
	if err != nil && t.writes.any() && (sqlState(err) == "" || fatal(err)) {
		// The database may have done it, or may be doing it. A server that ends the
		// connection can do so after it has committed.
		_ = t.c.Conn().Close(context.WithoutCancel(ctx))
		return fmt.Errorf("%w: %w", errLost, cause(err))
	}
	if err == nil && len(t.writes.commits) > 0 {
		t.s.changed(t.key)
	}
	return err
}
