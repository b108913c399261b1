package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

const (
	sqlVersionsOf = `SELECT rev, n, kind, etag, prev_etag, size FROM memsvc.versions WHERE project=$1 AND path=$2 ORDER BY rev`
	sqlRewrite    = `UPDATE memsvc.versions SET etag=$4, prev_etag=$5, size=$6, content=CASE WHEN $7 THEN $8 ELSE content END WHERE project=$1 AND rev=$2 AND n=$3`
	sqlRewriteSum = `UPDATE memsvc.commits SET bytes=bytes+$3 WHERE project=$1 AND rev=$2`
	sqlKept       = `SELECT key, result FROM memsvc.requests WHERE project=$1 AND result IS NOT NULL`
	sqlKeep       = `UPDATE memsvc.requests SET result=$3 WHERE project=$1 AND key=$2`
	sqlPutRedact  = `INSERT INTO memsvc.redactions(team, fingerprint) SELECT $1, unnest($2::text[]) ON CONFLICT DO NOTHING`
)

// Redact replaces texts by a marker, in every row. What the database keeps of old rows
// goes with its next VACUUM; its write-ahead log and backups are not covered.
func (s *Store) Redact(ctx context.Context, req store.RedactRequest) (res store.CommitResult, err error) {
	red, err := store.NewRedaction(req)
	if err != nil {
		return store.CommitResult{}, err
	}
	red.Marker = store.CloneContent(red.Marker)
	err = s.alone(ctx, "redact in", req.Project, 0, func(ctx context.Context, t *txn) (err error) {
		res, err = t.redact(ctx, red)
		return err
	})
	if err != nil {
		return store.CommitResult{}, err
	}
	return res, nil
}

type place struct {
	rev memory.Revision
	n   int32
}

func (t *txn) redact(ctx context.Context, red *store.Redaction) (res store.CommitResult, err error) {
	hits, err := t.redactVersions(ctx, red)
	if err != nil {
		return res, err
	}
	if hits == 0 && !red.Elsewhere {
		return res, store.NoMemory(t.key, red.Path, 0)
	}
	if err := t.redactResults(ctx, red); err != nil {
		return res, err
	}
	if _, err := t.c.Exec(ctx, t.s.sql(sqlPutRedact), string(t.key.Team), red.Fingerprints); err != nil {
		return res, err
	}
	rows, err := t.c.Query(ctx, t.s.sql(sqlGet), string(t.key.Team), string(t.key.Project), string(red.Path), int64(t.st.rev))
	if err != nil {
		return res, err
	}
	now, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (memory.Memory, error) { return scanMemory(row, true) })
	if errors.Is(err, pgx.ErrNoRows) {
		return res, store.NoMemory(t.key, red.Path, 0)
	}
	if err != nil {
		return res, err
	}
	c := red.Commit(t.st.cursor(t.epoch), now)
	t.append(c)
	return store.CommitResult{Commit: store.WithoutContents(&c), Created: true, Head: t.st.cursor(t.epoch)}, nil
}

// redactVersions rewrites the rows of the path and returns how many it hit.
func (t *txn) redactVersions(ctx context.Context, red *store.Redaction) (hits int, err error) {
	rows, err := t.c.Query(ctx, t.s.sql(sqlVersionsOf), t.st.id, string(red.Path))
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var b pgx.Batch
	for rows.Next() {
		var at place
		var kind int16
		var etag, prev []byte
		ch := memory.AppliedChange{Path: red.Path}
		if err := rows.Scan((*int64)(&at.rev), &at.n, &kind, &etag, &prev, &ch.Size); err != nil {
			return 0, err
		}
		ch.Kind, ch.ETag, ch.PreviousETag = memory.ChangeKind(kind), etagOf(etag), etagOf(prev)
		was := ch
		if !red.Rewrite(&ch) {
			continue
		}
		hits++
		b.Queue(t.s.sql(sqlRewrite), t.st.id, int64(at.rev), at.n, sum(ch.ETag), sum(ch.PreviousETag), ch.Size, red.Covers(was.ETag), red.Marker)
		if ch.Size != was.Size {
			b.Queue(t.s.sql(sqlRewriteSum), t.st.id, int64(at.rev), ch.Size-was.Size)
		}
	}
	if err := rows.Err(); err != nil || hits == 0 {
		return 0, err
	}
	return hits, t.c.SendBatch(ctx, &b).Close()
}

// redactResults rewrites the remembered results of compacted commits; the others are
// read from the rows that are rewritten already.
func (t *txn) redactResults(ctx context.Context, red *store.Redaction) error {
	rows, err := t.c.Query(ctx, t.s.sql(sqlKept), t.st.id)
	if err != nil {
		return err
	}
	defer rows.Close()
	var b pgx.Batch
	for rows.Next() {
		var key, doc []byte
		if err := rows.Scan(&key, &doc); err != nil {
			return err
		}
		var c memory.Commit
		if err := json.Unmarshal(doc, &c); err != nil {
			return err
		}
		hit := false
		for i := range c.Changes {
			hit = red.Rewrite(&c.Changes[i]) || hit
		}
		if !hit {
			continue
		}
		if doc, err = json.Marshal(c); err != nil {
			return err
		}
		b.Queue(t.s.sql(sqlKeep), t.st.id, key, string(doc))
	}
	if err := rows.Err(); err != nil || b.Len() == 0 {
		return err
	}
	return t.c.SendBatch(ctx, &b).Close()
}

// Redacted returns those of the fingerprints that were redacted in the team.
func (s *Store) Redacted(ctx context.Context, team memory.Team, fingerprints []string) ([]string, error) {
	known, err := query(ctx, s, "look up redactions", "SELECT fingerprint FROM memsvc.redactions WHERE team=$1 AND fingerprint=ANY($2)", pgx.RowTo[string], string(team), fingerprints)
	if err != nil || len(known) == 0 {
		return nil, err
	}
	var found []string
	for _, f := range fingerprints {
		if slices.Contains(known, f) {
			found = append(found, f)
		}
	}
	return found, nil
}

// Redactions lists the fingerprints redacted in team.
func (s *Store) Redactions(ctx context.Context, team memory.Team) ([]string, error) {
	return query(ctx, s, "list redactions", "SELECT fingerprint FROM memsvc.redactions WHERE team=$1 ORDER BY fingerprint", pgx.RowTo[string], string(team))
}

// ImportRedactions adds fingerprints redacted in team.
func (s *Store) ImportRedactions(ctx context.Context, team memory.Team, fingerprints []string) error {
	_, err := s.exec(ctx, "import redactions", sqlPutRedact, string(team), fingerprints)
	return err
}
