package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// maxAttempts bounds how often a read begins anew because compaction took a row
// away between looking at the state and reading the row.
const maxAttempts = 10

// within runs f with the project's state held, inside a call.
func (s *Store) within(ctx context.Context, key memory.ProjectKey, f func(p *project) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	p, err := s.acquire(ctx, key)
	if err != nil {
		return err
	}
	defer s.release(p)
	return f(p)
}

// Project returns where the project stands.
func (s *Store) Project(ctx context.Context, key memory.ProjectKey) (info store.ProjectInfo, err error) {
	err = s.within(ctx, key, func(p *project) error {
		epoch := s.epoch()
		p.mu.RLock()
		defer p.mu.RUnlock()
		if p.gone {
			return errGone(p)
		}
		info = store.ProjectInfo{Key: key, Head: p.cursor(epoch), Oldest: p.oldest, Files: p.files, Bytes: p.bytes, CreateTime: p.created}
		return nil
	})
	return info, err
}

// listed is one memory that List is to return.
type listed struct {
	path memory.Path
	head head
}

// List returns memories in path order.
func (s *Store) List(ctx context.Context, key memory.ProjectKey, opts store.ListOptions) (out []memory.Memory, err error) {
	err = s.within(ctx, key, func(p *project) error {
		for range maxAttempts {
			picked, err := pick(p, opts)
			if err != nil || len(picked) == 0 {
				return err
			}
			whole := false
			places := s.trail.of(key) // before the database is looked into
			err = s.read(ctx, "list "+key.String(), func(c *conn) (err error) {
				out, whole, err = listRows(c, p, places, picked, opts)
				return err
			})
			if err != nil || whole {
				return err
			}
		}
		return store.Unavailable("list "+key.String(), errMoved)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// pick chooses, from the state, what List returns.
func pick(p *project, opts store.ListOptions) ([]listed, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.gone {
		return nil, errGone(p)
	}
	var out []listed
	consider := func(path memory.Path, h head) {
		if path > opts.After && h.rev > opts.ChangedAfter && (opts.Deleted || !h.deleted) {
			out = append(out, listed{path, h})
		}
	}
	if opts.Paths == nil {
		for path, h := range p.entries {
			consider(path, h)
		}
	} else {
		for _, path := range slices.Compact(slices.Sorted(slices.Values(opts.Paths))) {
			if h, known := p.entries[path]; known {
				consider(path, h)
			}
		}
	}
	slices.SortFunc(out, func(a, b listed) int {
		switch {
		case a.path < b.path:
			return -1
		case a.path > b.path:
			return 1
		}
		return 0
	})
	if opts.Limit > 0 && len(out) > opts.Limit {
		out = out[:opts.Limit]
	}
	return out, nil
}

// listRows reads the rows of picked; whole is false if one is no longer there. A
// row is read once for neighbours that it holds, as after a first upload.
func listRows(c *conn, p *project, places []place, picked []listed, opts store.ListOptions) (out []memory.Memory, whole bool, err error) {
	var earlier store.EarlierETags
	if opts.EarlierETags {
		if earlier, err = readEarlier(c, p, places); err != nil {
			return nil, false, err
		}
	}
	type row struct {
		rec   *record
		paths map[memory.Path]*version
	}
	// Commits of many files are read once; bounded, since contents can be large.
	const maxRows = 8
	rows := make(map[int64]*row, maxRows)
	out = make([]memory.Memory, 0, len(picked))
	for _, l := range picked {
		r := rows[l.head.seq]
		if r == nil {
			rec, err := readRow(c, p, l.head.seq, opts.Content)
			if err != nil {
				return nil, false, err
			}
			if rec == nil {
				return nil, false, nil
			}
			r = &row{rec: rec, paths: make(map[memory.Path]*version, len(rec.versions))}
			for i := range rec.versions {
				r.paths[rec.versions[i].Path] = &rec.versions[i]
			}
			if len(rec.versions) > 1 {
				if len(rows) >= maxRows {
					clear(rows)
				}
				rows[l.head.seq] = r
			}
		}
		v := r.paths[l.path]
		if v == nil {
			return nil, false, nil
		}
		m := store.MemoryAt(&r.rec.Commit, &v.AppliedChange, opts.Content)
		m.EarlierETags = slices.Clone(earlier[l.path])
		out = append(out, m)
	}
	return out, true, nil
}

func readEarlier(c *conn, p *project, places []place) (store.EarlierETags, error) {
	p.mu.RLock()
	oldest, rev := p.oldest, p.rev
	p.mu.RUnlock()
	x := make(store.EarlierETags)
	err := c.snapshot(func() error {
		return eachDown(c, p, places, span{oldest, rev}, func(v []driver.Value) error {
			r, err := decodeMeta(blob(v[2]), nil, false)
			if err != nil {
				return err
			}
			for i := range r.versions {
				x.Add(&r.versions[i].AppliedChange)
			}
			return nil
		})
	})
	return x, err
}

// readRow returns the row at seq, or nil if it is not there (any more).
func readRow(c *conn, p *project, seq int64, content bool) (r *record, err error) {
	st := stMetaBySeq
	if content {
		st = stCommitBySeq
	}
	err = c.query(st, func(v []driver.Value) (err error) {
		var texts []byte
		if content {
			texts = blob(v[3])
		}
		if r, err = decodeMeta(blob(v[2]), texts, content); err != nil {
			return corrupt(p, seq)
		}
		r.Project, r.Revision = p.key, memory.Revision(v[1].(int64))
		return nil
	}, seq, p.id)
	return r, err
}

// present returns what is at path now, tombstones included; ok is false if nothing
// ever was.
func (s *Store) present(ctx context.Context, p *project, path memory.Path, content bool) (m memory.Memory, ok bool, err error) {
	for range maxAttempts {
		p.mu.RLock()
		h, known := p.entries[path]
		gone := p.gone
		p.mu.RUnlock()
		if gone {
			return m, false, errGone(p)
		}
		if !known {
			return m, false, nil
		}
		err = s.read(ctx, "read "+p.key.MemoryName(path), func(c *conn) error {
			r, err := readRow(c, p, h.seq, content)
			if r != nil {
				if v := r.at(path); v != nil {
					m, ok = store.MemoryAt(&r.Commit, &v.AppliedChange, content), true
				}
			}
			return err
		})
		if err != nil || ok {
			return m, ok, err
		}
	}
	return m, false, store.Unavailable("read "+p.key.MemoryName(path), errMoved)
}

// Get returns the memory at path as of revision at.
func (s *Store) Get(ctx context.Context, key memory.ProjectKey, path memory.Path, at memory.Revision) (m memory.Memory, err error) {
	err = s.within(ctx, key, func(p *project) error {
		p.mu.RLock()
		rev, oldest, cursor := p.rev, p.oldest, p.cursor(s.epoch())
		p.mu.RUnlock()
		switch {
		case at < 0 || at > rev:
			return store.BeyondHead(key, at, rev)
		case at != 0 && at < oldest-1:
			return store.Compacted(key, at, oldest, cursor)
		}
		var ok bool
		if at == 0 || at == rev {
			m, ok, err = s.present(ctx, p, path, true)
		} else {
			m, ok, err = s.past(ctx, p, path, at)
		}
		if err != nil {
			return err
		}
		if !ok || m.Deleted {
			return store.NoMemory(key, path, at)
		}
		return nil
	})
	if err != nil {
		return memory.Memory{}, err
	}
	return m, nil
}

// past follows the links of a path's versions back to the one as of at.
func (s *Store) past(ctx context.Context, p *project, path memory.Path, at memory.Revision) (m memory.Memory, ok bool, err error) {
	p.mu.RLock()
	h, known := p.entries[path]
	p.mu.RUnlock()
	if !known {
		return m, false, nil
	}
	err = s.read(ctx, "read "+p.key.MemoryName(path), func(c *conn) error {
		seq, rev := h.seq, h.rev
		for rev > at && seq != 0 {
			r, err := readRow(c, p, seq, false)
			if err != nil {
				return err
			}
			if r == nil || r.at(path) == nil {
				return nil
			}
			v := r.at(path)
			seq, rev = v.prevSeq, v.prevRev
		}
		if seq == 0 {
			return nil
		}
		r, err := readRow(c, p, seq, true)
		if err != nil || r == nil || r.at(path) == nil {
			return err
		}
		m, ok = store.MemoryAt(&r.Commit, &r.at(path).AppliedChange, true), true
		return nil
	})
	if err == nil && !ok {
		// The row may have been compacted while we looked for it.
		p.mu.RLock()
		defer p.mu.RUnlock()
		if at < p.oldest-1 {
			return m, false, store.Compacted(p.key, at, p.oldest, p.cursor(s.epoch()))
		}
	}
	return m, ok, err
}

// Changes returns whole commits after revision after.
func (s *Store) Changes(ctx context.Context, key memory.ProjectKey, after memory.Revision, limit int, maxBytes int64) (out []memory.Commit, err error) {
	err = s.within(ctx, key, func(p *project) error {
		epoch := s.epoch()
		p.mu.RLock()
		rev, oldest, cursor, gone, recent := p.rev, p.oldest, p.cursor(epoch), p.gone, p.tail.commits
		p.mu.RUnlock()
		switch {
		case gone:
			return errGone(p)
		case after < 0 || after > rev:
			return store.BeyondHead(key, after, rev)
		case after < oldest-1:
			return store.Compacted(key, after, oldest, cursor)
		case after == rev:
			return nil
		}
		bound := bound{limit: limit, bytes: maxBytes}
		if len(recent) > 0 && recent[0].Revision <= after+1 {
			for i := after + 1 - recent[0].Revision; i < memory.Revision(len(recent)) && bound.admits(&recent[i]); i++ {
				out = append(out, store.WithContents(&recent[i]))
			}
			return nil
		}
		if out, err = s.collect(ctx, p, after, rev, bound); err != nil {
			return err
		}
		if len(out) == 0 || out[0].Revision != after+1 { // compacted meanwhile
			p.mu.RLock()
			defer p.mu.RUnlock()
			return store.Compacted(key, after, p.oldest, p.cursor(epoch))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// collect reads commits after a revision, up to rev and within the bound.
func (s *Store) collect(ctx context.Context, p *project, after, rev memory.Revision, b bound) (out []memory.Commit, err error) {
	places := s.trail.of(p.key) // before the database is looked into
	row := func(v []driver.Value) error {
		r, err := decodeMeta(blob(v[2]), blob(v[3]), true)
		if err != nil {
			return err
		}
		r.Project, r.Revision = p.key, memory.Revision(v[1].(int64))
		commit := r.commit()
		if !b.admits(&commit) {
			return errStop
		}
		out = append(out, commit)
		return nil
	}
	err = s.read(ctx, "read changes of "+p.key.String(), func(c *conn) error {
		return c.snapshot(func() error { return eachUp(c, p, places, span{after + 1, rev}, true, row) })
	})
	return out, err
}

// bound says when enough commits were collected.
type bound struct {
	limit int
	bytes int64
	n     int
	total int64
}

// admits counts c in, unless there is no room for it; the first one always is.
func (b *bound) admits(c *memory.Commit) bool {
	for i := range c.Changes {
		b.total += c.Changes[i].Size
	}
	b.n++
	return b.n == 1 || (b.limit <= 0 || b.n <= b.limit) && (b.bytes <= 0 || b.total <= b.bytes)
}
