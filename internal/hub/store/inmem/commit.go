package inmem

import (
	"context"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// CreateProject makes an empty project.
func (s *Store) CreateProject(ctx context.Context, key memory.ProjectKey, now time.Time, on ...store.AuditEvent) error {
	defer s.mu.Unlock()
	if err := s.lock(ctx); err != nil {
		return err
	}
	if s.projects[key] != nil {
		return store.Exists(key.String())
	}
	s.teams[key.Team] = true
	s.projects[key] = &project{
		created:  now.UTC(),
		oldest:   1,
		commits:  make(map[memory.Revision]*memory.Commit),
		versions: make(map[memory.Path][]memory.Revision),
		entries:  make(map[memory.Path]store.Entry),
		requests: make(map[requestKey]request),
	}
	s.record(on...)
	s.notices.Wake(key)
	return nil
}

// Commit applies req as store.Store promises.
func (s *Store) Commit(ctx context.Context, req store.CommitRequest) (store.CommitResult, error) {
	prepared, err := store.Prepare(req)
	if err != nil {
		return store.CommitResult{}, err
	}
	defer s.mu.Unlock()
	p, err := s.writeProject(ctx, req.Project)
	if err != nil {
		return store.CommitResult{}, err
	}
	key := requestKey{req.Author.Principal, req.RequestID}
	if req.RequestID != "" {
		if first, ok := p.requests[key]; ok && req.Now.Sub(first.at) < memory.RequestIDLifetime {
			if first.digest != prepared.Digest {
				return store.CommitResult{}, store.RequestReused(req.Project)
			}
			return copyResult(first.result), nil
		}
	}
	result, err := s.judge(p, prepared)
	if err != nil || req.ValidateOnly {
		return result, err
	}
	if req.RequestID != "" {
		for k, r := range p.requests {
			if req.Now.Sub(r.at) >= memory.RequestIDLifetime {
				delete(p.requests, k)
			}
		}
		p.requests[key] = request{digest: prepared.Digest, at: req.Now, result: copyResult(result)}
	}
	return result, nil
}

// judge decides on the commit and, unless it is to be validated only, appends it.
func (s *Store) judge(p *project, req *store.Prepared) (store.CommitResult, error) {
	head := s.cursor(p)
	verdict, err := store.Judge(store.View{
		Head:     head,
		Files:    p.files,
		Bytes:    p.bytes,
		Entry:    func(path memory.Path) (store.Entry, bool) { e, ok := p.entries[path]; return e, ok },
		Collides: p.paths.CheckAfter,
	}, req)
	switch {
	case err != nil:
		return store.CommitResult{}, err
	case len(verdict.Stale) > 0:
		return store.CommitResult{}, store.Stale(req.Project, head, p.present(verdict.Stale))
	case verdict.Unchanged:
		return store.CommitResult{Commit: p.headCommit(req.Project), Head: head}, nil
	}
	result := store.CommitResult{
		Commit:  store.WithoutContents(&verdict.Commit),
		Created: true,
		Head:    verdict.Head(head.Epoch),
	}
	if !req.ValidateOnly {
		commit := store.WithContents(&verdict.Commit)
		p.append(&commit)
		s.notices.Wake(req.Project)
	}
	return result, nil
}

// append takes in a commit that nothing else refers to.
func (p *project) append(c *memory.Commit) {
	p.commits[c.Revision] = c
	p.head.Revision, p.head.CommitID = c.Revision, c.ID
	for i := range c.Changes {
		ch := &c.Changes[i]
		was := p.entries[ch.Path]
		now := store.Entry{ETag: ch.ETag, Size: ch.Size, Revision: c.Revision}
		if !now.Living() {
			now.LastETag, now.Size = ch.PreviousETag, 0
		}
		p.bytes += now.Size - was.Size
		if was.Living() {
			p.files--
		}
		if now.Living() {
			p.files++
		}
		p.entries[ch.Path] = now
		p.versions[ch.Path] = append(p.versions[ch.Path], c.Revision)
	}
	// Paths leave before others come, so that a rename by case finds its place free.
	for i := range c.Changes {
		if c.Changes[i].ETag == "" {
			p.paths.Remove(c.Changes[i].Path)
		}
	}
	for i := range c.Changes {
		if c.Changes[i].ETag != "" {
			p.paths.Add(c.Changes[i].Path)
		}
	}
}

// headCommit returns the head's commit without contents; before the first one, an
// empty commit of the project.
func (p *project) headCommit(key memory.ProjectKey) memory.Commit {
	if c := p.commits[p.head.Revision]; c != nil {
		return store.WithoutContents(c)
	}
	return memory.Commit{Project: key}
}

// present returns what is at the paths now, contents included; where nothing ever
// was, a tombstone of revision 0.
func (p *project) present(paths []memory.Path) []memory.Memory {
	out := make([]memory.Memory, 0, len(paths))
	for _, path := range paths {
		m, ok := p.version(path, p.entries[path].Revision, true)
		if !ok {
			m = memory.Memory{Path: path, Deleted: true}
		}
		out = append(out, m)
	}
	return out
}

// version returns the memory that the commit at rev left at path.
func (p *project) version(path memory.Path, rev memory.Revision, content bool) (memory.Memory, bool) {
	c := p.commits[rev]
	if c == nil {
		return memory.Memory{}, false
	}
	for i := range c.Changes {
		if c.Changes[i].Path == path {
			return store.MemoryAt(c, &c.Changes[i], content), true
		}
	}
	return memory.Memory{}, false
}

func copyResult(r store.CommitResult) store.CommitResult {
	r.Commit = store.WithoutContents(&r.Commit)
	return r
}
