package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// compactSlice bounds the commits that one transaction compacts, so that writers of
// the project wait for milliseconds, not for the whole history.
const compactSlice = 500

// Compact forgets what nothing within retention needs, slice by slice: a crash in
// between leaves a shorter history, whole in itself.
func (s *Store) Compact(ctx context.Context, key memory.ProjectKey, cut time.Time) (total store.CompactResult, err error) {
	for {
		var res store.CompactResult
		err := s.alone(ctx, "compact", key, 0, func(ctx context.Context, t *txn) (err error) {
			res, err = t.compact(ctx, cut)
			return err
		})
		if err != nil {
			return total, err
		}
		total.Commits += res.Commits
		total.Versions += res.Versions
		total.Bytes += res.Bytes
		if res.Commits < compactSlice {
			return total, nil
		}
	}
}

const (
	// sqlOldest finds the first of the next commits that is not older than the cut.
	sqlOldest = `SELECT coalesce(min(rev), $2::bigint) FROM memsvc.commits
WHERE project=$1 AND rev >= $3 AND rev < $2::bigint AND (time, time_ns) >= ($4::timestamptz, $5::smallint)`

	// sqlForget drops what a commit of the slice replaced.
	sqlForget = `WITH gone AS (
	DELETE FROM memsvc.versions v USING memsvc.versions w
	WHERE w.project=$1 AND w.rev >= $2 AND w.rev < $3 AND v.project=w.project AND v.path=w.path AND v.rev < w.rev
	RETURNING v.rev, v.etag, v.size
), fewer AS (
	UPDATE memsvc.commits c SET bytes=c.bytes-g.size FROM (SELECT rev, sum(size) AS size FROM gone GROUP BY rev) g
	WHERE c.project=$1 AND c.rev=g.rev AND g.size > 0
)
SELECT count(*) FILTER (WHERE etag IS NOT NULL), coalesce(sum(size) FILTER (WHERE etag IS NOT NULL), 0)::bigint FROM gone`

	// sqlForgetCommits drops the commits of which nothing is left.
	sqlForgetCommits = `DELETE FROM memsvc.commits c WHERE c.project=$1 AND c.rev < $2
AND NOT EXISTS (SELECT FROM memsvc.versions v WHERE v.project=c.project AND v.rev=c.rev)`

	sqlResultsOf = `SELECT DISTINCT rev FROM memsvc.requests WHERE project=$1 AND rev >= $2 AND rev < $3 AND result IS NULL`
	sqlKeepFor   = `UPDATE memsvc.requests SET result=$3 WHERE project=$1 AND rev=$2`

	// sqlForgetRequests drops request ids that are over, by the time of the head.
	sqlForgetRequests = `DELETE FROM memsvc.requests r USING memsvc.commits c
WHERE r.project=$1 AND c.project=r.project AND c.rev=$2 AND r.at < c.time - make_interval(secs => $3)`
)

// compact does one slice: commits from the oldest one on that were made before the
// cut, but for the head.
func (t *txn) compact(ctx context.Context, cut time.Time) (res store.CompactResult, err error) {
	s, from := t.s, t.st.oldest
	until := min(from+compactSlice, t.st.rev)
	if until <= from {
		return res, nil
	}
	at, ns := stamp(cut)
	var oldest memory.Revision
	if err := t.c.QueryRow(ctx, s.sql(sqlOldest), t.st.id, int64(until), int64(from), at, ns).Scan((*int64)(&oldest)); err != nil {
		return res, err
	}
	// A day and a quarter: their lifetime, and some for clocks that differ.
	if _, err := t.c.Exec(ctx, s.sql(sqlForgetRequests), t.st.id, int64(t.st.rev), (memory.RequestIDLifetime * 5 / 4).Seconds()); err != nil {
		return res, err
	}
	if oldest == from {
		return res, nil
	}
	if err := t.keepResults(ctx, from, oldest); err != nil {
		return res, err
	}
	if err := t.c.QueryRow(ctx, s.sql(sqlForget), t.st.id, int64(from), int64(oldest)).Scan(&res.Versions, &res.Bytes); err != nil {
		return res, err
	}
	if _, err := t.c.Exec(ctx, s.sql(sqlForgetCommits), t.st.id, int64(oldest)); err != nil {
		return res, err
	}
	res.Commits = int64(oldest - from)
	t.st.oldest, t.writes.oldest = oldest, true
	return res, nil
}

// keepResults keeps, beside the request ids that are answered with a commit from from
// up to before, that commit, of which versions are about to go.
func (t *txn) keepResults(ctx context.Context, from, before memory.Revision) error {
	rows, err := t.c.Query(ctx, t.s.sql(sqlResultsOf), t.st.id, int64(from), int64(before))
	if err != nil {
		return err
	}
	revs, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	for _, rev := range revs {
		rows, err := t.c.Query(ctx, t.s.sql(sqlOneMeta), string(t.key.Team), string(t.key.Project), rev)
		if err != nil {
			return err
		}
		commits, err := scanCommits(rows, t.key, false)
		if err != nil || len(commits) != 1 {
			return err
		}
		doc, err := json.Marshal(commits[0])
		if err != nil {
			return err
		}
		if _, err := t.c.Exec(ctx, t.s.sql(sqlKeepFor), t.st.id, rev, string(doc)); err != nil {
			return err
		}
	}
	return nil
}
