package sqlite

import (
	"container/list"
	"context"
	"database/sql/driver"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// project is the state of one project, as of its last durable commit. Whoever
// holds it got it from cache.acquire and gives it back with release.
type project struct {
	id      int64
	key     memory.ProjectKey
	created time.Time

	mu      sync.RWMutex // guards the state; only the writer changes it
	gone    bool         // purged
	rev     memory.Revision
	commit  memory.CommitID
	seq     int64 // of the head's row; 0 before the first commit
	oldest  memory.Revision
	files   int64
	bytes   int64
	entries map[memory.Path]head
	tail    tail

	// The writer's alone:
	paths   memory.CollisionIndex // of the living entries
	recent  map[[16]byte]recent   // request ids that are in rows of commits only
	spilled bool                  // the table of requests holds some of this project
	headed  memory.Revision       // the table of heads is as of this revision
	// unheaded are the paths that changed since.
	unheaded map[memory.Path]struct{}
}

// cursor returns the project's head under the epoch. Hold mu.
func (p *project) cursor(epoch memory.Epoch) memory.Cursor {
	return memory.Cursor{Epoch: epoch, Revision: p.rev, CommitID: p.commit}
}

// tailBytes bounds the recent commits that a project keeps at hand for Changes; for a
// while it may hold as much again of older ones.
const tailBytes = 64 << 10

// tail holds the newest commits of a project, ascending without gap, up to its head.
type tail struct {
	commits []memory.Commit
	bytes   int64
	dropped int64 // bytes that the array of commits may still hold beside them
}

// push takes in the next commit. It shares the contents, which nobody changes.
// Readers may hold the array, so what is dropped stays in it until a new one is made;
// made for every commit it would be most of a commit's memory.
func (t *tail) push(c memory.Commit) {
	t.commits = append(t.commits, c)
	t.bytes += commitSize(&c)
	drop := 0
	for t.bytes > tailBytes && drop < len(t.commits) {
		size := commitSize(&t.commits[drop])
		t.bytes -= size
		t.dropped += size
		drop++
	}
	t.commits = t.commits[drop:]
	if t.dropped > tailBytes {
		t.dropped = 0
		t.commits = append(make([]memory.Commit, 0, 2*len(t.commits)), t.commits...)
	}
}

func commitSize(c *memory.Commit) int64 {
	n := int64(256)
	for i := range c.Changes {
		n += 256 + c.Changes[i].Size
	}
	return n
}

// cache holds the states of projects in use and of those used last, up to a bound.
type cache struct {
	limit int

	mu     sync.Mutex // guards what follows
	slots  map[memory.ProjectKey]*slot
	idle   *list.List // of *slot without references, the last used in front
	weight int        // entries of all loaded slots
}

type slot struct {
	key    memory.ProjectKey
	ready  chan struct{} // closed when p or err is set
	p      *project
	err    error
	refs   int
	place  *list.Element // in idle
	weight int
}

// slotWeight is what a project counts beside its entries.
const slotWeight = 64

func newCache(limit int) *cache {
	return &cache{limit: limit, slots: make(map[memory.ProjectKey]*slot), idle: list.New()}
}

// acquire returns the state of key, loading it if it is not at hand. A project
// that was not created is an ErrNotFound.
func (s *Store) acquire(ctx context.Context, key memory.ProjectKey) (*project, error) {
	c := s.cache
	c.mu.Lock()
	sl := c.slots[key]
	if sl != nil {
		sl.refs++
		if sl.place != nil {
			c.idle.Remove(sl.place)
			sl.place = nil
		}
		c.mu.Unlock()
		<-sl.ready
	} else {
		sl = &slot{key: key, ready: make(chan struct{}), refs: 1}
		c.slots[key] = sl
		c.mu.Unlock()
		// Others may wait for this load, so it does not end with this caller's ctx.
		sl.err = s.read(context.WithoutCancel(ctx), "load "+key.String(), func(rc *conn) error {
			places := s.trail.of(key) // before the database is looked into
			return rc.snapshot(func() (err error) {
				sl.p, err = loadProject(rc, key, places)
				return err
			})
		})
		close(sl.ready)
	}
	if sl.err != nil {
		err := sl.err
		c.release(sl)
		return nil, err
	}
	return sl.p, nil
}

// release gives back a project that acquire returned.
func (s *Store) release(p *project) {
	s.cache.mu.Lock()
	sl := s.cache.slots[p.key]
	s.cache.mu.Unlock()
	if sl != nil && sl.p == p {
		s.cache.release(sl)
	}
}

func (c *cache) release(sl *slot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sl.refs--
	if sl.refs > 0 || c.slots[sl.key] != sl {
		return
	}
	if sl.err != nil {
		delete(c.slots, sl.key)
		return
	}
	sl.p.mu.RLock()
	weight := slotWeight + len(sl.p.entries)
	sl.p.mu.RUnlock()
	c.weight += weight - sl.weight
	sl.weight = weight
	sl.place = c.idle.PushFront(sl)
	for c.weight > c.limit && c.idle.Len() > 0 {
		old := c.idle.Remove(c.idle.Back()).(*slot)
		c.weight -= old.weight
		delete(c.slots, old.key)
	}
}

// forget drops a purged project, whoever still holds it.
func (c *cache) forget(p *project) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sl := c.slots[p.key]; sl != nil && sl.p == p {
		c.weight -= sl.weight
		delete(c.slots, p.key)
	}
}

// loadProject reads a project's state; places is what the table of revisions lacks.
func loadProject(c *conn, key memory.ProjectKey, places []place) (*project, error) {
	p := &project{key: key, oldest: 1, entries: make(map[memory.Path]head), recent: make(map[[16]byte]recent),
		unheaded: make(map[memory.Path]struct{})}
	var spilled memory.Revision
	err := c.query(stProject, func(v []driver.Value) error {
		p.id, p.created = v[0].(int64), decodeTime(blob(v[1]))
		p.oldest, spilled = memory.Revision(v[2].(int64)), memory.Revision(v[3].(int64))
		p.spilled = v[4].(int64) != 0
		p.headed = memory.Revision(v[5].(int64))
		return nil
	}, string(key.Team), string(key.Project))
	if err != nil {
		return nil, err
	}
	if p.id == 0 {
		return nil, store.NoProject(key)
	}
	if err := loadHead(c, p, places); err != nil {
		return nil, err
	}
	if err := loadHeads(c, p, places); err != nil {
		return nil, err
	}
	if err := loadRecent(c, p, places, spilled); err != nil {
		return nil, err
	}
	return p, nil
}

// loadHead reads which commit is the newest.
func loadHead(c *conn, p *project, places []place) error {
	if len(places) > 0 {
		last := places[len(places)-1]
		p.seq, p.rev = last.seq, last.rev
	} else {
		err := c.query(stHead, func(v []driver.Value) error {
			p.seq, p.rev = v[0].(int64), memory.Revision(v[1].(int64))
			return nil
		}, p.id)
		if err != nil {
			return err
		}
	}
	if p.seq == 0 {
		return nil
	}
	r, err := readRow(c, p, p.seq, false)
	if err != nil {
		return err
	}
	if r == nil {
		return corrupt(p, p.seq)
	}
	p.commit = r.ID
	return nil
}
