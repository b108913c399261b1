package sqlite

import (
	"cmp"
	"database/sql/driver"
	"slices"
	"sync"

	"github.com/memsvc/memsvc/internal/memory"
)

// The table of revisions says in which row a project's commit is. Projects take
// turns, so that nearly every commit would touch a page of its own there; the table
// falls behind instead, by rows that are known in memory and found again by their
// number, and catches up in one go, neighbours together.

// maxLate bounds the commits that the table of revisions lacks, and so the rows that
// opening the store reads.
const maxLate = 2048

// place is where a revision is kept.
type place struct {
	rev memory.Revision
	seq int64
}

// late is what the table of revisions lacks of one project, ascending. Readers share
// places: they are appended to and replaced, never changed.
type late struct {
	id     int64
	places []place
}

// trail is what the table of revisions lacks. Only the writer changes it: a durable
// commit is in it before its project's state tells of it, and leaves it after the
// table has it. Whoever looks here first and into the database then misses nothing.
type trail struct {
	limit int // how many the table may lack before it catches up

	mu       sync.RWMutex // guards what follows
	projects map[memory.ProjectKey]late
	n        int
}

// of returns the places of one project that the table may lack.
func (t *trail) of(key memory.ProjectKey) []place {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.projects[key].places
}

func (t *trail) add(key memory.ProjectKey, id int64, places ...place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.projects == nil {
		t.projects = make(map[memory.ProjectKey]late)
	}
	t.projects[key] = late{id, append(t.projects[key].places, places...)}
	t.n += len(places)
}

func (t *trail) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.projects, t.n = nil, 0
}

// loadTrail reads what the table of revisions lacks, and the number of the last row
// that it knows, which may be gone.
func loadTrail(c *conn, t *trail) (settled int64, err error) {
	err = c.query(stSettled, func(v []driver.Value) error {
		settled = v[0].(int64)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return settled, c.query(stLate, func(v []driver.Value) error {
		key := memory.ProjectKey{Team: memory.Team(text(v[3])), Project: memory.Project(text(v[4]))}
		t.add(key, v[2].(int64), place{rev: memory.Revision(v[1].(int64)), seq: v[0].(int64)})
		return nil
	}, settled)
}

// settleRevs brings the table of revisions up to what is durable now. Commits of this
// transaction stay behind.
func (t *transaction) settleRevs() error {
	tr := &t.s.trail // the writer alone changes it, so reading needs no lock here
	if t.revsSettled || tr.n == 0 {
		return nil
	}
	t.wrote = true
	all := make([]late, 0, len(tr.projects))
	for _, l := range tr.projects {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b late) int { return cmp.Compare(a.id, b.id) })
	for _, l := range all {
		for _, at := range l.places {
			if err := t.c.exec(stPutRev, l.id, int64(at.rev), at.seq); err != nil {
				return err
			}
		}
	}
	t.revsSettled = true
	return t.c.exec(stSetSettled, t.w.nextSeq-1)
}

// span is a range of revisions, both ends included.
type span struct{ from, to memory.Revision }

// eachUp calls row with seq, revision, metadata and, if wanted, contents of p's commits
// within the span, ascending, until it returns errStop. places is what trail.of said
// before; c is in a transaction that began after that.
func eachUp(c *conn, p *project, places []place, in span, content bool, row func(v []driver.Value) error) error {
	many, one := stMetasUp, stMetaBySeq
	if content {
		many, one = stCommitsUp, stCommitBySeq
	}
	stopped := false
	row = noteStop(row, &stopped)
	table := in
	if len(places) > 0 {
		table.to = min(table.to, places[0].rev-1)
	}
	if table.from <= table.to {
		if err := c.query(many, row, p.id, int64(table.from), int64(table.to)); err != nil {
			return err
		}
	}
	for _, at := range places {
		if stopped || at.rev > in.to {
			return nil
		}
		if at.rev >= in.from {
			if err := c.query(one, row, at.seq, p.id); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachDown is eachUp without contents, descending.
func eachDown(c *conn, p *project, places []place, in span, row func(v []driver.Value) error) error {
	stopped := false
	row = noteStop(row, &stopped)
	for i := len(places) - 1; i >= 0 && !stopped && places[i].rev >= in.from; i-- {
		if places[i].rev <= in.to {
			if err := c.query(stMetaBySeq, row, places[i].seq, p.id); err != nil {
				return err
			}
		}
	}
	if len(places) > 0 {
		in.to = min(in.to, places[0].rev-1)
	}
	if stopped || in.from > in.to {
		return nil
	}
	return c.query(stMetasDown, row, p.id, int64(in.from), int64(in.to))
}

// noteStop returns row, and sets stopped once row wants no more.
func noteStop(row func(v []driver.Value) error, stopped *bool) func(v []driver.Value) error {
	return func(v []driver.Value) error {
		err := row(v)
		*stopped = err == errStop //nolint:errorlint // row functions return it as it is
		return err
	}
}

// snapshot runs f in a transaction that only reads: all of f sees one state.
func (c *conn) snapshot(f func() error) error {
	if err := c.exec(stBeginRead); err != nil {
		return err
	}
	defer func() { _ = c.exec(stRollback) }() // it read only
	return f()
}
