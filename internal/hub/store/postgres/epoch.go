package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

const sqlSpanAll = `INSERT INTO memsvc.spans(project, n, epoch, through)
SELECT p.id, coalesce((SELECT max(n)+1 FROM memsvc.spans s WHERE s.project=p.id), 0), $1, p.head FROM memsvc.projects p
WHERE NOT EXISTS (SELECT FROM memsvc.spans s WHERE s.project=p.id AND s.epoch=$1)`

// NewEpoch makes next the present epoch. No commit of any replica is under way
// meanwhile: each is of the old epoch and counted, or of the new one.
func (s *Store) NewEpoch(ctx context.Context, next memory.Epoch, now time.Time, on ...store.AuditEvent) error {
	tries := 0
	return s.call(ctx, "mint an epoch", func(ctx context.Context, c *pgxpool.Conn) error {
		if next == "" {
			return store.Invalid("new epoch: it has no id")
		}
		tries++
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			var b pgx.Batch
			b.Queue(sqlLimits)
			s.ground.queueMark(&b)
			if err := tx.SendBatch(ctx, &b).Close(); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, s.sql("LOCK TABLE memsvc.projects IN EXCLUSIVE MODE")); err != nil {
				return err
			}
			epochs, err := readEpochs(ctx, s, tx)
			if err != nil {
				return err
			}
			if len(epochs) == 0 {
				return incomplete([]string{noEpochs})
			}
			if slices.Contains(epochs, next) {
				if tries > 1 && epochs[len(epochs)-1] == next {
					return nil // the try before did it
				}
				return store.Exists("epoch " + string(next))
			}
			if _, err := tx.Exec(ctx, s.sql(sqlSpanAll), string(epochs[len(epochs)-1])); err != nil {
				return err
			}
			if _, err = tx.Exec(ctx, s.sql("INSERT INTO memsvc.epochs(epoch, time) VALUES ($1, $2)"), string(next), now.UTC()); err != nil {
				return err
			}
			return s.record(ctx, tx, on)
		})
	})
}

func readEpochs(ctx context.Context, s *Store, tx pgx.Tx) ([]memory.Epoch, error) {
	rows, err := tx.Query(ctx, s.sql("SELECT epoch FROM memsvc.epochs ORDER BY n"))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[memory.Epoch])
}

const sqlSpans = `SELECT s.epoch, s.through FROM memsvc.spans s JOIN memsvc.projects p ON p.id=s.project WHERE p.team=$1 AND p.project=$2 ORDER BY s.n`

func scanSpan(row pgx.CollectableRow) (sp store.Span, err error) {
	err = row.Scan((*string)(&sp.Epoch), (*int64)(&sp.Through))
	return sp, err
}

// Spans returns the epochs of the project's history.
func (s *Store) Spans(ctx context.Context, key memory.ProjectKey) (out []store.Span, err error) {
	info, err := s.within(ctx, "read the epochs of", key, func(b *pgx.Batch, _ *store.ProjectInfo) {
		b.Queue(s.sql(sqlSpans), string(key.Team), string(key.Project)).Query(func(rows pgx.Rows) (err error) {
			out, err = pgx.CollectRows(rows, scanSpan)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return append(out, store.Span{Epoch: info.Head.Epoch, Through: info.Head.Revision}), nil
}

// Rewind returns the last revision that the present history shares with seen.
func (s *Store) Rewind(ctx context.Context, key memory.ProjectKey, seen memory.Epoch) (at memory.Revision, ok bool, err error) {
	spans, err := s.Spans(ctx, key)
	if err != nil {
		return 0, false, err
	}
	if now := spans[len(spans)-1]; now.Epoch == seen {
		return now.Through, true, nil
	}
	for _, sp := range spans {
		if sp.Epoch == seen {
			return sp.Through, true, nil
		}
	}
	err = s.call(ctx, "look up an epoch", func(ctx context.Context, c *pgxpool.Conn) error {
		// True here: the project is younger than an epoch that this history had.
		return s.row1(ctx, c, []any{&ok}, "SELECT EXISTS (SELECT FROM memsvc.epochs WHERE epoch=$1)", string(seen))
	})
	return 0, ok, err
}

// alone runs apply in a transaction of its own that holds the project's lock.
func (s *Store) alone(ctx context.Context, op string, key memory.ProjectKey, size int64, apply func(ctx context.Context, t *txn) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.submit(ctx, key, &job{op: op + " " + key.String(), size: size, alone: true, apply: apply})
}

// ImportSpans adds epochs of another hub.
func (s *Store) ImportSpans(ctx context.Context, key memory.ProjectKey, spans []store.Span) error {
	return s.alone(ctx, "import epochs of", key, 0, func(ctx context.Context, t *txn) error {
		rows, err := t.c.Query(ctx, s.sql(sqlSpans), string(key.Team), string(key.Project))
		if err != nil {
			return err
		}
		have, err := pgx.CollectRows(rows, scanSpan)
		if err != nil {
			return err
		}
		var b pgx.Batch
		b.Queue(s.sql("DELETE FROM memsvc.spans WHERE project=$1"), t.st.id)
		for i, sp := range store.AddSpans(have, spans...) {
			b.Queue(s.sql("INSERT INTO memsvc.spans(project, n, epoch, through) VALUES ($1, $2, $3, $4)"), t.st.id, i, string(sp.Epoch), int64(sp.Through))
		}
		return t.c.SendBatch(ctx, &b).Close()
	})
}

// ImportCommits appends commits as they are. When the answer of the database is lost
// and the commits are asked for again, they are a gap no more, and refused: the import
// that sent them compares what is there when it is begun anew.
func (s *Store) ImportCommits(ctx context.Context, key memory.ProjectKey, oldest memory.Revision, commits []memory.Commit) error {
	own := make([]memory.Commit, len(commits))
	var size int64
	for i := range commits {
		own[i] = store.WithContents(&commits[i])
		own[i].Project = key
		size += sizeOf(&own[i])
	}
	return s.alone(ctx, "import commits of", key, size, func(_ context.Context, t *txn) error {
		if err := store.CheckImport(key, t.st.rev, t.st.oldest, oldest, own); err != nil {
			return err
		}
		for i := range own {
			t.append(own[i])
		}
		t.st.oldest, t.writes.oldest = oldest, true
		return nil
	})
}

// PurgeProject removes a project with its history and settings.
func (s *Store) PurgeProject(ctx context.Context, key memory.ProjectKey, on ...store.AuditEvent) error {
	return s.alone(ctx, "purge", key, 0, func(ctx context.Context, t *txn) error {
		var b pgx.Batch
		for _, table := range []string{"versions", "commits", "heads", "spans", "requests"} {
			b.Queue(s.sql("DELETE FROM memsvc."+table+" WHERE project=$1"), t.st.id)
		}
		b.Queue(s.sql("DELETE FROM memsvc.projects WHERE id=$1"), t.st.id)
		b.Queue(s.sql("DELETE FROM memsvc.settings WHERE scope=$1"), key.String())
		b.Queue(s.sql("INSERT INTO memsvc.events(team, project) VALUES ($1, $2)"), string(key.Team), string(key.Project))
		s.queueRecord(&b, on)
		if err := t.c.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		t.st = nil
		t.after = append(t.after, func() { s.changed(key) })
		return nil
	})
}
