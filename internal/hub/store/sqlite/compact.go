package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// compactSlice bounds the commits that one transaction compacts, so that writers of
// other projects wait for milliseconds, not for the whole history.
const compactSlice = 500

// Compact forgets what nothing within retention needs, slice by slice: a crash in
// between leaves a shorter history, whole in itself.
func (s *Store) Compact(ctx context.Context, key memory.ProjectKey, cut time.Time) (total store.CompactResult, err error) {
	err = s.within(ctx, key, func(p *project) error {
		for {
			c := compacting{p: p, cut: cut}
			r := &request{op: "compact " + key.String(), alone: true, apply: c.apply}
			if err := s.submit(ctx, r); err != nil {
				return err
			}
			total.Commits += c.res.Commits
			total.Versions += c.res.Versions
			total.Bytes += c.res.Bytes
			if c.res.Commits < compactSlice {
				return nil
			}
		}
	})
	return total, err
}

// compacting is one slice of a compaction.
type compacting struct {
	p   *project
	cut time.Time
	res store.CompactResult

	hidden []*record                      // commits that the slice hides
	drops  map[int64]map[memory.Path]bool // by row: versions that the slice drops
}

func (c *compacting) apply(t *transaction) error {
	c.res, c.hidden, c.drops = store.CompactResult{}, nil, make(map[int64]map[memory.Path]bool)
	if c.p.gone {
		return errGone(c.p)
	}
	oldest, err := c.plan(t)
	if err != nil || oldest == c.p.oldest {
		return err
	}
	t.wrote = true
	hidden := make(map[memory.Revision]*record, len(c.hidden))
	for _, r := range c.hidden {
		hidden[r.Revision] = r
	}
	o := t.on(c.p)
	if err := t.keepResults(o, hidden); err != nil {
		return err
	}
	// Heads are read from rows of commits, which are about to lose versions.
	if err := t.settle(o); err != nil {
		return err
	}
	// A row that goes must not be named by the table of revisions later.
	if err := t.settleRevs(); err != nil {
		return err
	}
	for seq, paths := range c.drops {
		if err := c.rewrite(t.c, seq, paths); err != nil {
			return err
		}
	}
	if err := t.c.exec(stSetOldest, int64(oldest), c.p.id); err != nil {
		return err
	}
	c.res.Commits = int64(oldest - c.p.oldest)
	// Readers learn of it before it is durable: a reader that misses a row must find
	// the reason in the state.
	was := c.p.oldest
	c.p.setOldest(oldest)
	t.revert = append(t.revert, func() { c.p.setOldest(was) })
	return nil
}

func (p *project) setOldest(rev memory.Revision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.oldest = rev
}

// plan finds the slice: commits from the oldest one on that were made before the
// cut, but for the head. A version goes when the commit that replaced it is hidden:
// the links say which one that is.
func (c *compacting) plan(t *transaction) (oldest memory.Revision, err error) {
	oldest = c.p.oldest
	places := t.s.trail.of(c.p.key)
	err = eachUp(t.c, c.p, places, span{c.p.oldest, c.p.rev - 1}, false, func(v []driver.Value) error {
		r, err := decodeMeta(blob(v[2]), nil, false)
		if err != nil {
			return err
		}
		if !r.Time.Before(c.cut) || len(c.hidden) == compactSlice {
			return errStop
		}
		r.Revision = memory.Revision(v[1].(int64))
		c.hidden = append(c.hidden, r)
		oldest = r.Revision + 1
		for i := range r.versions {
			v := &r.versions[i]
			if v.prevSeq == 0 {
				continue
			}
			if c.drops[v.prevSeq] == nil {
				c.drops[v.prevSeq] = make(map[memory.Path]bool)
			}
			c.drops[v.prevSeq][v.Path] = true
		}
		return nil
	})
	return oldest, err
}

// rewrite drops versions from a row, and the row with its last one.
func (c *compacting) rewrite(conn *conn, seq int64, paths map[memory.Path]bool) error {
	r, err := readRow(conn, c.p, seq, true)
	if err != nil || r == nil {
		return err
	}
	var rest []version
	for _, v := range r.versions {
		if !paths[v.Path] {
			rest = append(rest, v)
		} else if v.ETag != "" {
			c.res.Versions++
			c.res.Bytes += v.Size
		}
	}
	if len(rest) == 0 {
		if err := conn.exec(stDropRev, c.p.id, int64(r.Revision)); err != nil {
			return err
		}
		return conn.exec(stDropCommit, seq)
	}
	r.versions = rest
	return conn.exec(stUpdateCommit, appendMeta(nil, r), r.content(), seq)
}
