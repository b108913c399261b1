package postgres

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// Bounds of the jobs that one transaction does.
const (
	maxBatchJobs  = 64
	maxBatchBytes = 8 << 20
)

// job is one change of a project, which a lane brings into a transaction.
type job struct {
	op   string
	size int64
	// alone says that no other job may share the transaction.
	alone bool
	// request is the key of the request id that apply asks for; nil = none. A job with
	// one may be done again when the outcome of a transaction is not known.
	request []byte
	// apply judges the job on t's state and tells t what to write. What it answers
	// with, before it has changed anything of t, fails this job alone.
	apply func(ctx context.Context, t *txn) error

	err  error
	done chan struct{} // closed when err is set
}

// lane is where the changes of one project queue up in this process. While one
// transaction is on its way to the disk the next jobs gather here and then share one;
// and however many wait for a project, they hold one connection.
type lane struct {
	key memory.ProjectKey

	mu    sync.Mutex // guards what follows
	queue []*job
	busy  bool

	st     *state // what the last transaction knew; the busy one's alone
	weight int    // guarded by lanes.mu
	place  *list.Element
}

// lanes holds the lanes in use and those used last, up to a bound of their states.
type lanes struct {
	limit int

	mu     sync.Mutex // guards what follows
	byKey  map[memory.ProjectKey]*lane
	idle   *list.List // of *lane that are not busy, the last used in front
	weight int
}

// laneWeight is what a lane counts beside its entries.
const laneWeight = 64

func newLanes(limit int) *lanes {
	return &lanes{limit: limit, byKey: make(map[memory.ProjectKey]*lane), idle: list.New()}
}

// submit queues j and waits until it is done or ctx ends. In the latter case it is done
// nevertheless.
func (s *Store) submit(ctx context.Context, key memory.ProjectKey, j *job) error {
	j.done = make(chan struct{})
	l := s.lanes.enqueue(key, j)
	if l != nil {
		s.works.Go(func() { s.drive(l) })
	}
	select {
	case <-j.done:
		return s.public(ctx, j.op, j.err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enqueue puts j into its lane and returns the lane if nobody works on it yet.
func (x *lanes) enqueue(key memory.ProjectKey, j *job) *lane {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.byKey[key]
	if l == nil {
		l = &lane{key: key}
		x.byKey[key] = l
	}
	if l.place != nil {
		x.idle.Remove(l.place)
		l.place = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, j)
	if l.busy {
		return nil
	}
	l.busy = true
	return l
}

// next takes the jobs of the next transaction; none ends the work on the lane.
func (x *lanes) next(l *lane) []*job {
	x.mu.Lock()
	defer x.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.busy = false
		x.restLocked(l)
		return nil
	}
	n, size := 0, int64(0)
	for n < len(l.queue) && n < maxBatchJobs && (n == 0 || size+l.queue[n].size <= maxBatchBytes && !l.queue[n].alone) {
		size += l.queue[n].size
		n++
		if l.queue[n-1].alone {
			break
		}
	}
	batch := l.queue[:n:n]
	l.queue = l.queue[n:]
	return batch
}

// restLocked puts an idle lane in front and drops those used longest ago.
func (x *lanes) restLocked(l *lane) {
	weight := laneWeight
	if l.st != nil {
		weight += len(l.st.entries)
	}
	x.weight += weight - l.weight
	l.weight = weight
	l.place = x.idle.PushFront(l)
	for x.weight > x.limit && x.idle.Len() > 0 {
		old := x.idle.Remove(x.idle.Back()).(*lane)
		x.weight -= old.weight
		delete(x.byKey, old.key)
	}
}

// drive does the lane's jobs until none is left.
func (s *Store) drive(l *lane) {
	for {
		batch := s.lanes.next(l)
		if batch == nil {
			return
		}
		s.writers <- struct{}{}
		s.perform(l, batch)
		<-s.writers
		for _, j := range batch {
			close(j.done)
		}
	}
}

// perform does the jobs of a batch, in one transaction if it can be. A transaction
// that surely did nothing is tried again while the database restarts or is busy; one
// whose outcome is not known only if its jobs have request ids, which tell.
func (s *Store) perform(l *lane, batch []*job) {
	timeout := callTimeout
	if batch[0].alone {
		timeout = aloneTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	pause := backoff{least: 10 * time.Millisecond, most: 500 * time.Millisecond}
	for try := 1; ; try++ {
		err := s.transact(ctx, l, batch)
		if err == nil {
			return
		}
		l.st = nil // it may be ahead of what is durable
		again := passing(err)
		if errors.Is(err, errLost) {
			again = true
			for _, j := range batch {
				again = again && j.request != nil
			}
		} else if !again && len(batch) > 1 {
			// None shall fail for another's sake.
			for _, j := range batch {
				if j.err = s.transact(ctx, l, []*job{j}); j.err != nil {
					l.st = nil
				}
			}
			return
		}
		if !again || try == maxTries || !pause.wait(ctx) {
			for _, j := range batch {
				j.err = err
			}
			return
		}
	}
}
