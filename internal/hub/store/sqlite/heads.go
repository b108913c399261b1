package sqlite

import (
	"database/sql/driver"
	"maps"
	"slices"

	"github.com/memsvc/memsvc/internal/memory"
)

// The table of heads says what is at each path, so that loading a project need not
// read its history. A commit does not write there: the table falls behind, and what
// changed since is read from the rows of the commits after it. Now and then it catches
// up, in one go: paths that changed often are written once, and neighbours together.

const (
	// maxLooseCommits bounds the rows that loading a project reads beside its heads.
	maxLooseCommits = 256
	// maxLoosePaths bounds the paths in them, about.
	maxLoosePaths = 1024
)

// loose reports whether the table of heads is too far behind.
func (p *project) loose() bool {
	return p.rev-p.headed >= maxLooseCommits || len(p.unheaded) >= maxLoosePaths
}

// settle brings the heads of o's project up to what is durable now. Commits of this
// transaction stay behind.
func (t *transaction) settle(o *pending) error {
	p := o.p
	if o.settled || p.headed == p.rev {
		return nil
	}
	t.wrote = true
	for _, path := range slices.Sorted(maps.Keys(p.unheaded)) {
		t.w.buf = appendHead(t.w.buf[:0], p.entries[path])
		if err := t.c.exec(stPutHead, p.id, string(path), t.w.buf); err != nil {
			return err
		}
	}
	o.settled = true
	return t.c.exec(stSetHeaded, int64(p.rev), p.id)
}

// loadHeads reads what is at each path: the table, then the commits after it.
func loadHeads(c *conn, p *project, places []place) error {
	err := c.query(stHeads, func(v []driver.Value) error {
		h, err := decodeHead(blob(v[1]))
		if err != nil {
			return err
		}
		p.entries[memory.Path(text(v[0]))] = h
		return nil
	}, p.id)
	if err != nil {
		return err
	}
	err = eachUp(c, p, places, span{p.headed + 1, p.rev}, false, func(v []driver.Value) error {
		r, err := decodeMeta(blob(v[2]), nil, false)
		if err != nil {
			return err
		}
		for i := range r.versions {
			ch := &r.versions[i].AppliedChange
			p.entries[ch.Path] = newHead(ch, memory.Revision(v[1].(int64)), v[0].(int64))
			p.unheaded[ch.Path] = struct{}{}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for path, h := range p.entries {
		if !h.deleted {
			p.files++
			p.bytes += h.size
			p.paths.Add(path)
		}
	}
	return nil
}
