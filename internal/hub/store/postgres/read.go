package postgres

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

const sqlInfo = `SELECT p.created, p.created_ns, p.head, p.head_id, p.oldest, p.files, p.bytes, (` + sqlEpoch + `)
FROM memsvc.projects p WHERE p.team=$1 AND p.project=$2`

// queueInfo reads where a project stands. A project that does not exist ends the
// snapshot with its ErrNotFound.
func (s *Store) queueInfo(b *pgx.Batch, key memory.ProjectKey, info *store.ProjectInfo) {
	b.Queue(s.sql(sqlInfo), string(key.Team), string(key.Project)).Query(func(rows pgx.Rows) error {
		found := false
		for rows.Next() {
			found = true
			i := store.ProjectInfo{Key: key}
			var ns int16
			err := rows.Scan(&i.CreateTime, &ns, (*int64)(&i.Head.Revision), (*string)(&i.Head.CommitID), (*int64)(&i.Oldest), &i.Files, &i.Bytes, (*string)(&i.Head.Epoch))
			if err != nil {
				return err
			}
			i.CreateTime = unstamp(i.CreateTime, ns)
			*info = i
		}
		if err := rows.Err(); err != nil || found {
			return err
		}
		return store.NoProject(key)
	})
}

// Project returns where the project stands.
func (s *Store) Project(ctx context.Context, key memory.ProjectKey) (info store.ProjectInfo, err error) {
	err = s.call(ctx, "read "+key.String(), func(ctx context.Context, c *pgxpool.Conn) error {
		var b pgx.Batch
		s.ground.queueMark(&b)
		s.queueInfo(&b, key, &info)
		return c.SendBatch(ctx, &b).Close()
	})
	return info, err
}

// within queues reads of a project that exists, as one snapshot.
func (s *Store) within(ctx context.Context, op string, key memory.ProjectKey, queue func(b *pgx.Batch, info *store.ProjectInfo)) (info store.ProjectInfo, err error) {
	err = s.call(ctx, op+" "+key.String(), func(ctx context.Context, c *pgxpool.Conn) error {
		return s.snapshot(ctx, c, func(b *pgx.Batch) {
			s.queueInfo(b, key, &info)
			queue(b, &info)
		})
	})
	return info, err
}

const sqlList = `SELECT h.path, h.rev, h.deleted, h.etag, h.size, v.mod, v.mod_ns, c.time, c.time_ns, c.principal, c.machine, c.client, c.session,
	CASE WHEN $8 AND NOT h.deleted THEN v.content END
FROM (
	SELECT * FROM memsvc.heads
	WHERE project=(SELECT id FROM memsvc.projects WHERE team=$1 AND project=$2)
		AND path > $3 AND rev > $4 AND ($5 OR NOT deleted) AND ($6::text[] IS NULL OR path=ANY($6))
	ORDER BY path LIMIT $7
) h
JOIN memsvc.versions v ON v.project=h.project AND v.path=h.path AND v.rev=h.rev
JOIN memsvc.commits c ON c.project=h.project AND c.rev=h.rev
ORDER BY h.path`

func (s *Store) queueList(b *pgx.Batch, key memory.ProjectKey, opts store.ListOptions, out *[]memory.Memory) {
	limit := int64(opts.Limit)
	if limit <= 0 {
		limit = math.MaxInt64
	}
	var paths []string
	if opts.Paths != nil {
		paths = make([]string, len(opts.Paths))
		for i, p := range opts.Paths {
			paths[i] = string(p)
		}
	}
	b.Queue(s.sql(sqlList), string(key.Team), string(key.Project), string(opts.After), int64(opts.ChangedAfter), opts.Deleted, paths, limit, opts.Content).
		Query(func(rows pgx.Rows) error {
			*out = nil // an earlier try may have left something
			for rows.Next() {
				m, err := scanMemory(rows, opts.Content)
				if err != nil {
					return err
				}
				*out = append(*out, m)
			}
			return rows.Err()
		})
}

func scanMemory(rows pgx.CollectableRow, content bool) (m memory.Memory, err error) {
	var etag []byte
	var modNS, timeNS int16
	var mod, at time.Time
	err = rows.Scan((*string)(&m.Path), (*int64)(&m.Revision), &m.Deleted, &etag, &m.Size, &mod, &modNS, &at, &timeNS,
		&m.Author.Principal, &m.Author.Machine, &m.Author.Client, &m.Author.Session, &m.Content)
	if err != nil {
		return m, err
	}
	m.CommitTime = unstamp(at, timeNS)
	if m.Deleted {
		m.LastETag, m.Content = etagOf(etag), nil
		return m, nil
	}
	m.ETag, m.ModTime = etagOf(etag), unstamp(mod, modNS)
	if content && m.Content == nil {
		m.Content = []byte{}
	}
	return m, nil
}

const sqlEarlier = `SELECT v.path, v.kind, v.prev_etag FROM memsvc.versions v JOIN memsvc.projects p ON p.id=v.project
WHERE p.team=$1 AND p.project=$2 AND v.rev >= p.oldest AND ($3::text[] IS NULL OR v.path=ANY($3)) ORDER BY v.rev DESC`

// List returns memories in path order.
func (s *Store) List(ctx context.Context, key memory.ProjectKey, opts store.ListOptions) (out []memory.Memory, err error) {
	var earlier store.EarlierETags
	_, err = s.within(ctx, "list", key, func(b *pgx.Batch, _ *store.ProjectInfo) {
		s.queueList(b, key, opts, &out)
		if !opts.EarlierETags {
			return
		}
		var paths []string
		for _, p := range opts.Paths {
			paths = append(paths, string(p))
		}
		b.Queue(s.sql(sqlEarlier), string(key.Team), string(key.Project), paths).Query(func(rows pgx.Rows) error {
			earlier = make(store.EarlierETags)
			for rows.Next() {
				var ch memory.AppliedChange
				var prev []byte
				var kind int16
				if err := rows.Scan((*string)(&ch.Path), &kind, &prev); err != nil {
					return err
				}
				ch.Kind, ch.PreviousETag = memory.ChangeKind(kind), etagOf(prev)
				earlier.Add(&ch)
			}
			return rows.Err()
		})
	})
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].EarlierETags = slices.Clone(earlier[out[i].Path])
	}
	return out, nil
}

const sqlGet = `SELECT v.path, v.rev, v.etag IS NULL, coalesce(v.etag, v.prev_etag), v.size, v.mod, v.mod_ns, c.time, c.time_ns, c.principal, c.machine, c.client, c.session, v.content
FROM (
	SELECT v.* FROM memsvc.versions v
	WHERE v.project=(SELECT id FROM memsvc.projects WHERE team=$1 AND project=$2) AND v.path=$3 AND v.rev <= $4
	ORDER BY v.rev DESC LIMIT 1
) v
JOIN memsvc.commits c ON c.project=v.project AND c.rev=v.rev`

// Get returns the memory at path as of revision at.
func (s *Store) Get(ctx context.Context, key memory.ProjectKey, path memory.Path, at memory.Revision) (m memory.Memory, err error) {
	until := int64(at)
	if at == 0 {
		until = math.MaxInt64
	}
	found := false
	info, err := s.within(ctx, "read a memory of", key, func(b *pgx.Batch, _ *store.ProjectInfo) {
		b.Queue(s.sql(sqlGet), string(key.Team), string(key.Project), string(path), until).Query(func(rows pgx.Rows) (err error) {
			found = false
			for rows.Next() {
				if m, err = scanMemory(rows, true); err != nil {
					return err
				}
				found = true
			}
			return rows.Err()
		})
	})
	switch head := info.Head.Revision; {
	case err != nil:
		return memory.Memory{}, err
	case at < 0 || at > head:
		return memory.Memory{}, store.BeyondHead(key, at, head)
	case at != 0 && at < info.Oldest-1:
		return memory.Memory{}, store.Compacted(key, at, info.Oldest, info.Head)
	case !found || m.Deleted:
		return memory.Memory{}, store.NoMemory(key, path, at)
	}
	return m, nil
}

const (
	commitColumns = `c.rev, c.id, c.time, c.time_ns, c.principal, c.machine, c.client, c.session, c.message,
	v.path, v.kind, v.etag, v.prev_etag, v.size, v.mod, v.mod_ns, v.renamed_from`

	// The first commit comes whatever its size; see store.Store.
	sqlLog = `SELECT ` + commitColumns + `, v.content
FROM (
	SELECT *, row_number() OVER w AS i, sum(bytes) OVER w AS total
	FROM (
		SELECT * FROM memsvc.commits
		WHERE project=(SELECT id FROM memsvc.projects WHERE team=$1 AND project=$2) AND rev > $3
		ORDER BY rev LIMIT $4
	) c WINDOW w AS (ORDER BY rev)
) c
JOIN memsvc.versions v ON v.project=c.project AND v.rev=c.rev
WHERE c.i=1 OR $5 <= 0 OR c.total <= $5
ORDER BY c.rev, v.n`

	sqlOneMeta = `SELECT ` + commitColumns + `
FROM memsvc.projects p JOIN memsvc.commits c ON c.project=p.id JOIN memsvc.versions v ON v.project=c.project AND v.rev=c.rev
WHERE p.team=$1 AND p.project=$2 AND c.rev=$3 ORDER BY v.n`
)

// logPage bounds the commits that one statement returns.
const logPage = 500

// scanCommits puts rows of changes together to commits.
func scanCommits(rows pgx.Rows, key memory.ProjectKey, content bool) (out []memory.Commit, err error) {
	for rows.Next() {
		var c memory.Commit
		var ch memory.AppliedChange
		var etag, prev []byte
		var kind, timeNS, modNS int16
		into := []any{(*int64)(&c.Revision), (*string)(&c.ID), &c.Time, &timeNS, &c.Author.Principal, &c.Author.Machine, &c.Author.Client, &c.Author.Session, &c.Message,
			(*string)(&ch.Path), &kind, &etag, &prev, &ch.Size, &ch.ModTime, &modNS, (*string)(&ch.RenamedFrom)}
		if content {
			into = append(into, &ch.Content)
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		ch.Kind, ch.ETag, ch.PreviousETag = memory.ChangeKind(kind), etagOf(etag), etagOf(prev)
		ch.ModTime = unstamp(ch.ModTime, modNS)
		if content && ch.ETag != "" && ch.Content == nil {
			ch.Content = []byte{}
		}
		if n := len(out); n == 0 || out[n-1].Revision != c.Revision {
			c.Project, c.Time = key, unstamp(c.Time, timeNS)
			out = append(out, c)
		}
		last := &out[len(out)-1]
		last.Changes = append(last.Changes, ch)
	}
	return out, rows.Err()
}

// page reads commits after a revision and where the project stands, as one snapshot.
func (s *Store) page(ctx context.Context, op string, key memory.ProjectKey, after memory.Revision, limit int, maxBytes int64) (out []memory.Commit, info store.ProjectInfo, err error) {
	info, err = s.within(ctx, op, key, func(b *pgx.Batch, _ *store.ProjectInfo) {
		b.Queue(s.sql(sqlLog), string(key.Team), string(key.Project), int64(after), limit, maxBytes).Query(func(rows pgx.Rows) (err error) {
			out, err = scanCommits(rows, key, true)
			return err
		})
	})
	return out, info, err
}

// Changes returns whole commits after revision after.
func (s *Store) Changes(ctx context.Context, key memory.ProjectKey, after memory.Revision, limit int, maxBytes int64) ([]memory.Commit, error) {
	return s.collect(ctx, "read changes of", key, after, limit, maxBytes, func(after memory.Revision, info *store.ProjectInfo) error {
		switch head := info.Head.Revision; {
		case after < 0 || after > head:
			return store.BeyondHead(key, after, head)
		case after < info.Oldest-1:
			return store.Compacted(key, after, info.Oldest, info.Head)
		}
		return nil
	})
}

// History returns commits and what is left of compacted ones.
func (s *Store) History(ctx context.Context, key memory.ProjectKey, after memory.Revision, limit int, maxBytes int64) ([]memory.Commit, error) {
	return s.collect(ctx, "read the history of", key, after, limit, maxBytes, func(memory.Revision, *store.ProjectInfo) error { return nil })
}

// collect reads pages until the bounds or the head are reached. check judges each
// page's start: compaction may have come between two pages.
func (s *Store) collect(ctx context.Context, op string, key memory.ProjectKey, after memory.Revision, limit int, maxBytes int64,
	check func(memory.Revision, *store.ProjectInfo) error) (out []memory.Commit, err error) {
	var total int64
	for {
		n := logPage
		if limit > 0 {
			n = min(n, limit-len(out))
		}
		left := maxBytes
		if maxBytes > 0 {
			left = max(1, maxBytes-total)
		}
		page, info, err := s.page(ctx, op, key, after, n, left)
		if err == nil {
			err = check(after, &info)
		}
		if err != nil {
			return nil, err
		}
		if len(out) > 0 && len(page) > 0 && maxBytes > 0 && total+sizeOf(&page[0]) > maxBytes {
			return out, nil
		}
		for i := range page {
			total += sizeOf(&page[i])
		}
		out = append(out, page...)
		if len(page) < n || limit > 0 && len(out) >= limit {
			return out, nil
		}
		after = page[len(page)-1].Revision
	}
}

func sizeOf(c *memory.Commit) (n int64) {
	for i := range c.Changes {
		n += c.Changes[i].Size
	}
	return n
}
