package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// CreateProject makes an empty project.
func (s *Store) CreateProject(ctx context.Context, key memory.ProjectKey, now time.Time, on ...store.AuditEvent) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.submit(ctx, &request{op: "create " + key.String(), apply: func(t *transaction) error {
		exists := false
		err := t.c.query(stProject, func([]driver.Value) error { exists = true; return nil }, string(key.Team), string(key.Project))
		if err != nil {
			return err
		}
		if exists {
			return store.Exists(key.String())
		}
		t.wrote = true
		if err := t.c.exec(stPutTeam, string(key.Team)); err != nil {
			return err
		}
		t.after = append(t.after, func() { s.notices.Wake(key) })
		if err := t.c.exec(stPutProject, string(key.Team), string(key.Project), appendTime(nil, now)); err != nil {
			return err
		}
		return t.record(on...)
	}})
}

// Commit applies req as store.Store promises.
func (s *Store) Commit(ctx context.Context, req store.CommitRequest) (store.CommitResult, error) {
	if err := s.enter(ctx); err != nil {
		return store.CommitResult{}, err
	}
	defer s.leave()
	c, err := s.prepare(ctx, req)
	if err != nil {
		return store.CommitResult{}, err
	}
	p := c.p
	defer s.release(p)
	if err := s.submit(ctx, &request{op: "commit to " + req.Project.String(), size: c.size, apply: c.apply}); err != nil {
		return store.CommitResult{}, err
	}
	if len(c.stale) > 0 {
		return store.CommitResult{}, s.stale(ctx, p, c.stale)
	}
	return s.answer(ctx, c)
}

// prepare does what can be done before the writer's turn, and acquires the project.
func (s *Store) prepare(ctx context.Context, req store.CommitRequest) (*committing, error) {
	prepared, err := store.Prepare(req)
	if err != nil {
		return nil, err
	}
	p, err := s.acquire(ctx, req.Project)
	if err != nil {
		return nil, err
	}
	c := &committing{p: p, req: prepared, key: requestKey(prepared)}
	c.own()
	return c, nil
}

// committing is one commit on its way through the writer.
type committing struct {
	p    *project
	req  *store.Prepared
	key  [16]byte // of the request id
	size int64

	// What apply found, for the caller to answer with.
	stale   []memory.Path
	result  store.CommitResult
	headSeq int64 // of the commit to answer with, when result lacks it; 0 = none
}

// own makes the request's contents the store's, by copying them if need be; history
// then shares them.
func (c *committing) own() {
	changes := make([]memory.Change, len(c.req.Changes))
	copy(changes, c.req.Changes)
	for i := range changes {
		if changes[i].Kind == memory.Put {
			if !c.req.HandedOver {
				changes[i].Content = store.CloneContent(changes[i].Content)
			}
			c.size += int64(len(changes[i].Content))
		}
	}
	c.req.Changes = changes
}

// apply judges the commit and appends it, in the writer.
func (c *committing) apply(t *transaction) error {
	c.stale, c.result, c.headSeq = nil, store.CommitResult{}, 0
	if c.p.gone {
		return errGone(c.p)
	}
	o := t.on(c.p)
	if c.req.RequestID != "" {
		first, err := t.firstRequest(o, c.req, c.key)
		if err != nil {
			return err
		}
		if first != nil {
			if first.digest != c.req.Digest {
				return store.RequestReused(c.p.key)
			}
			c.repeat(t, first)
			return nil
		}
	}
	head := o.cursor(t.epoch)
	verdict, err := store.Judge(o.view(t.epoch), c.req)
	switch {
	case err != nil:
		return err
	case len(verdict.Stale) > 0:
		c.stale = verdict.Stale
		return nil
	case verdict.Unchanged:
		c.result.Head = head
		c.result.Commit = memory.Commit{Project: c.p.key, Revision: head.Revision, ID: head.CommitID}
		c.headSeq = o.seq
	default:
		c.result = store.CommitResult{Commit: verdict.Commit, Created: true, Head: verdict.Head(t.epoch)}
		if c.req.ValidateOnly {
			return nil
		}
		var tag *requestTag
		if c.req.RequestID != "" {
			tag = &requestTag{key: c.key, digest: c.req.Digest}
		}
		return t.append(o, &verdict.Commit, tag)
	}
	if c.req.RequestID == "" || c.req.ValidateOnly {
		return nil
	}
	return t.rememberUnchanged(o, c.req, c.key)
}

// repeat answers with what the request id's first use was answered with.
func (c *committing) repeat(t *transaction, first *remembered) {
	c.result.Created = first.created
	c.result.Head = memory.Cursor{Epoch: t.epoch, Revision: first.rev, CommitID: first.id}
	c.result.Commit = memory.Commit{Project: c.p.key, Revision: first.rev, ID: first.id}
	if first.commit != nil {
		c.result.Commit = first.commit.commit()
		c.result.Commit.Project, c.result.Commit.Revision = c.p.key, first.rev
		return
	}
	c.headSeq = first.seq
}

// answer completes the result with the commit that it names, without contents.
func (s *Store) answer(ctx context.Context, c *committing) (store.CommitResult, error) {
	if c.headSeq == 0 {
		c.result.Commit = store.WithoutContents(&c.result.Commit)
		return c.result, nil
	}
	err := s.read(context.WithoutCancel(ctx), "read the head of "+c.p.key.String(), func(rc *conn) error {
		r, err := readRow(rc, c.p, c.headSeq, false)
		if r != nil {
			c.result.Commit = r.commit()
		}
		return err
	})
	return c.result, err
}

// stale returns the ErrETagMismatch with the present memories at paths.
func (s *Store) stale(ctx context.Context, p *project, paths []memory.Path) error {
	p.mu.RLock()
	head := p.cursor(s.epoch())
	p.mu.RUnlock()
	current := make([]memory.Memory, 0, len(paths))
	for _, path := range paths {
		m, ok, err := s.present(ctx, p, path, true)
		if err != nil {
			return err
		}
		if !ok {
			m = memory.Memory{Path: path, Deleted: true}
		}
		current = append(current, m)
	}
	return store.Stale(p.key, head, current)
}
