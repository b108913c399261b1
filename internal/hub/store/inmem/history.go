package inmem

import (
	"context"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Project returns where the project stands.
func (s *Store) Project(ctx context.Context, key memory.ProjectKey) (store.ProjectInfo, error) {
	defer s.mu.RUnlock()
	p, err := s.readProject(ctx, key)
	if err != nil {
		return store.ProjectInfo{}, err
	}
	return store.ProjectInfo{
		Key: key, Head: s.cursor(p), Oldest: p.oldest,
		Files: p.files, Bytes: p.bytes, CreateTime: p.created,
	}, nil
}

// List returns memories in path order.
func (s *Store) List(ctx context.Context, key memory.ProjectKey, opts store.ListOptions) ([]memory.Memory, error) {
	defer s.mu.RUnlock()
	p, err := s.readProject(ctx, key)
	if err != nil {
		return nil, err
	}
	var earlier store.EarlierETags
	if opts.EarlierETags {
		earlier = p.earlier()
	}
	var out []memory.Memory
	sorted := slices.Sorted(maps.Keys(p.entries))
	if opts.Paths != nil {
		sorted = slices.Compact(slices.Sorted(slices.Values(opts.Paths)))
	}
	for _, path := range sorted {
		e, known := p.entries[path]
		if !known || path <= opts.After || e.Revision <= opts.ChangedAfter || !e.Living() && !opts.Deleted {
			continue
		}
		m, _ := p.version(path, e.Revision, opts.Content)
		m.EarlierETags = slices.Clone(earlier[path])
		out = append(out, m)
		if len(out) == opts.Limit {
			break
		}
	}
	return out, nil
}

func (p *project) earlier() store.EarlierETags {
	x := make(store.EarlierETags)
	for rev := p.head.Revision; rev >= p.oldest; rev-- {
		for i := range p.commits[rev].Changes {
			x.Add(&p.commits[rev].Changes[i])
		}
	}
	return x
}

// Get returns the memory at path as of revision at.
func (s *Store) Get(ctx context.Context, key memory.ProjectKey, path memory.Path, at memory.Revision) (memory.Memory, error) {
	defer s.mu.RUnlock()
	p, err := s.readProject(ctx, key)
	if err != nil {
		return memory.Memory{}, err
	}
	asked := at
	switch {
	case at == 0:
		at = p.head.Revision
	case at < 0 || at > p.head.Revision:
		return memory.Memory{}, store.BeyondHead(key, at, p.head.Revision)
	case at < p.oldest-1:
		return memory.Memory{}, store.Compacted(key, at, p.oldest, s.cursor(p))
	}
	revs := p.versions[path]
	if i := sort.Search(len(revs), func(i int) bool { return revs[i] > at }); i > 0 {
		if m, ok := p.version(path, revs[i-1], true); ok && !m.Deleted {
			return m, nil
		}
	}
	return memory.Memory{}, store.NoMemory(key, path, asked)
}

// Changes returns whole commits after revision after.
func (s *Store) Changes(ctx context.Context, key memory.ProjectKey, after memory.Revision, limit int, maxBytes int64) ([]memory.Commit, error) {
	defer s.mu.RUnlock()
	p, err := s.readProject(ctx, key)
	if err != nil {
		return nil, err
	}
	if after < 0 || after > p.head.Revision {
		return nil, store.BeyondHead(key, after, p.head.Revision)
	}
	if after < p.oldest-1 {
		return nil, store.Compacted(key, after, p.oldest, s.cursor(p))
	}
	return p.collect(after, limit, maxBytes), nil
}

// History returns commits and what is left of compacted ones.
func (s *Store) History(ctx context.Context, key memory.ProjectKey, after memory.Revision, limit int, maxBytes int64) ([]memory.Commit, error) {
	defer s.mu.RUnlock()
	p, err := s.readProject(ctx, key)
	if err != nil {
		return nil, err
	}
	return p.collect(after, limit, maxBytes), nil
}

func (p *project) collect(after memory.Revision, limit int, maxBytes int64) []memory.Commit {
	var out []memory.Commit
	var total int64
	for rev := after + 1; rev <= p.head.Revision; rev++ {
		c := p.commits[rev]
		if c == nil {
			continue
		}
		for i := range c.Changes {
			total += c.Changes[i].Size
		}
		if len(out) > 0 && (limit > 0 && len(out) >= limit || maxBytes > 0 && total > maxBytes) {
			break
		}
		out = append(out, store.WithContents(c))
	}
	return out
}

// Compact forgets what nothing within retention needs.
func (s *Store) Compact(ctx context.Context, key memory.ProjectKey, cut time.Time) (store.CompactResult, error) {
	defer s.mu.Unlock()
	p, err := s.writeProject(ctx, key)
	if err != nil {
		return store.CompactResult{}, err
	}
	var res store.CompactResult
	oldest := p.oldest
	for oldest < p.head.Revision && p.commits[oldest].Time.Before(cut) {
		oldest++
		res.Commits++
	}
	p.oldest = oldest
	for path, revs := range p.versions {
		// The last version before oldest is what the state at oldest-1 shows.
		first := sort.Search(len(revs), func(i int) bool { return revs[i] >= oldest }) - 1
		if first <= 0 {
			continue
		}
		for _, rev := range revs[:first] {
			if size, had := p.forget(rev, path); had {
				res.Versions++
				res.Bytes += size
			}
		}
		p.versions[path] = slices.Clone(revs[first:])
	}
	return res, nil
}

// forget drops one change of a compacted commit, and the commit with its last one;
// it returns the size of the text that went, if there was one.
func (p *project) forget(rev memory.Revision, path memory.Path) (size int64, had bool) {
	c := *p.commits[rev]
	var rest []memory.AppliedChange
	for _, ch := range c.Changes {
		if ch.Path != path {
			rest = append(rest, ch)
		} else if ch.ETag != "" {
			size, had = ch.Size, true
		}
	}
	c.Changes = rest
	if len(rest) == 0 {
		delete(p.commits, rev)
	} else {
		p.commits[rev] = &c
	}
	return size, had
}
