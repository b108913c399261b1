package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

const sqlCreate = `WITH made AS (
	INSERT INTO memsvc.projects(team, project, created, created_ns) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING team, project
), teams AS (
	INSERT INTO memsvc.teams SELECT team FROM made ON CONFLICT DO NOTHING
)
INSERT INTO memsvc.events(team, project) SELECT team, project FROM made`

const sqlIsOurs = `SELECT EXISTS (SELECT FROM memsvc.projects WHERE team=$1 AND project=$2 AND created=$3 AND created_ns=$4)`

// CreateProject makes an empty project.
func (s *Store) CreateProject(ctx context.Context, key memory.ProjectKey, now time.Time, on ...store.AuditEvent) error {
	at, ns := stamp(now)
	tries := 0
	return s.call(ctx, "create "+key.String(), func(ctx context.Context, c *pgxpool.Conn) error {
		tries++
		done, err := s.act1(ctx, c, on, sqlCreate, string(key.Team), string(key.Project), at, ns)
		if err != nil {
			return err
		}
		if done == 0 {
			if tries == 1 {
				return store.Exists(key.String())
			}
			var ours bool // the try before may have made it, and its answer was lost
			if err := s.row1(ctx, c, []any{&ours}, sqlIsOurs, string(key.Team), string(key.Project), at, ns); err != nil {
				return err
			}
			if !ours {
				return store.Exists(key.String())
			}
		}
		s.changed(key)
		return nil
	})
}

// Commit applies req as store.Store promises.
func (s *Store) Commit(ctx context.Context, req store.CommitRequest) (store.CommitResult, error) {
	if err := s.enter(ctx); err != nil {
		return store.CommitResult{}, err
	}
	defer s.leave()
	prepared, err := store.Prepare(req)
	if err != nil {
		return store.CommitResult{}, err
	}
	c := &committing{key: req.Project, req: prepared, request: requestKey(prepared)}
	c.own()
	j := &job{op: "commit to " + req.Project.String(), size: c.size, request: c.request, apply: c.apply}
	if err := s.submit(ctx, req.Project, j); err != nil {
		return store.CommitResult{}, err
	}
	switch {
	case len(c.stale) > 0:
		return store.CommitResult{}, s.stale(ctx, c.key, c.stale)
	case c.read:
		return s.answer(ctx, c)
	}
	c.result.Commit = store.WithoutContents(&c.result.Commit)
	return c.result, nil
}

// committing is one commit on its way through its project's lane.
type committing struct {
	key     memory.ProjectKey
	req     *store.Prepared
	request []byte // key of the request id; nil = none
	size    int64

	// What apply found, for the caller to answer with.
	stale  []memory.Path
	result store.CommitResult
	read   bool // the commit of result is to be read
}

// own replaces the request's contents by copies: the caller may change its own as
// soon as its context ends.
func (c *committing) own() {
	changes := make([]memory.Change, len(c.req.Changes))
	copy(changes, c.req.Changes)
	for i := range changes {
		if changes[i].Kind == memory.Put {
			changes[i].Content = store.CloneContent(changes[i].Content)
			c.size += int64(len(changes[i].Content))
		}
	}
	c.req.Changes = changes
}

// apply judges the commit and appends it. It may run again, when the database failed.
func (c *committing) apply(_ context.Context, t *txn) error {
	c.stale, c.result, c.read = nil, store.CommitResult{}, false
	if c.request != nil {
		if first := t.requests[string(c.request)]; first != nil && c.req.Now.Sub(first.at) < memory.RequestIDLifetime {
			if !bytes.Equal(first.digest, c.req.Digest[:]) {
				return store.RequestReused(c.key)
			}
			c.result.Created, c.read = first.created, true
			c.result.Head = memory.Cursor{Epoch: t.epoch, Revision: first.rev, CommitID: first.id}
			return nil
		}
	}
	head := t.st.cursor(t.epoch)
	verdict, err := store.Judge(t.st.view(t.epoch), c.req)
	switch {
	case err != nil:
		return err
	case len(verdict.Stale) > 0:
		c.stale = verdict.Stale
		return nil
	case verdict.Unchanged:
		c.result.Head, c.read = head, true
	default:
		c.result = store.CommitResult{Commit: verdict.Commit, Created: true, Head: verdict.Head(t.epoch)}
		if !c.req.ValidateOnly {
			t.append(verdict.Commit)
		}
	}
	if c.request != nil && !c.req.ValidateOnly {
		t.remember(&remembered{
			key: c.request, digest: c.req.Digest[:], at: c.req.Now, created: c.result.Created,
			rev: c.result.Head.Revision, id: c.result.Head.CommitID,
		})
	}
	return nil
}

// requestKey is where a request id is kept; principals do not share ids.
func requestKey(req *store.Prepared) []byte {
	if req.RequestID == "" {
		return nil
	}
	h := sha256.New()
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(req.Author.Principal)))
	h.Write(n[:])
	h.Write([]byte(req.Author.Principal))
	h.Write([]byte(req.RequestID))
	return h.Sum(nil)[:16]
}

const sqlResult = `SELECT r.result FROM memsvc.requests r JOIN memsvc.projects p ON p.id=r.project
WHERE p.team=$1 AND p.project=$2 AND r.key=$3 AND r.result IS NOT NULL`

// answer completes the result with the commit that it names, without contents. A
// commit that was compacted is kept beside the request id that made it.
func (s *Store) answer(ctx context.Context, c *committing) (store.CommitResult, error) {
	c.result.Commit = memory.Commit{Project: c.key, Revision: c.result.Head.Revision, ID: c.result.Head.CommitID}
	if c.result.Head.Revision == 0 {
		c.result.Commit = memory.Commit{Project: c.key}
		return c.result, nil
	}
	err := s.read(context.WithoutCancel(ctx), "read a commit of "+c.key.String(), func(ctx context.Context, conn *pgxpool.Conn) error {
		return s.snapshot(ctx, conn, func(b *pgx.Batch) {
			b.Queue(s.sql(sqlOneMeta), string(c.key.Team), string(c.key.Project), int64(c.result.Head.Revision)).Query(func(rows pgx.Rows) error {
				commits, err := scanCommits(rows, c.key, false)
				if len(commits) > 0 {
					c.result.Commit = commits[0]
				}
				return err
			})
			b.Queue(s.sql(sqlResult), string(c.key.Team), string(c.key.Project), c.request).Query(func(rows pgx.Rows) error {
				for rows.Next() {
					var doc []byte
					if err := rows.Scan(&doc); err != nil {
						return err
					}
					if err := json.Unmarshal(doc, &c.result.Commit); err != nil {
						return err
					}
				}
				return rows.Err()
			})
		})
	})
	return c.result, err
}

// stale returns the ErrETagMismatch with the present memories at paths.
func (s *Store) stale(ctx context.Context, key memory.ProjectKey, paths []memory.Path) error {
	var info store.ProjectInfo
	var found []memory.Memory
	err := s.read(ctx, "read "+key.String(), func(ctx context.Context, c *pgxpool.Conn) error {
		return s.snapshot(ctx, c, func(b *pgx.Batch) {
			s.queueInfo(b, key, &info)
			s.queueList(b, key, store.ListOptions{Paths: paths, Deleted: true, Content: true}, &found)
		})
	})
	if err != nil {
		return err
	}
	at := make(map[memory.Path]memory.Memory, len(found))
	for _, m := range found {
		at[m.Path] = m
	}
	current := make([]memory.Memory, 0, len(paths))
	for _, path := range paths {
		m, ok := at[path]
		if !ok {
			m = memory.Memory{Path: path, Deleted: true}
		}
		current = append(current, m)
	}
	return store.Stale(key, info.Head, current)
}
