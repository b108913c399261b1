package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

const (
	// checkpointPages is how long, in pages of 4 KiB, the write-ahead log grows
	// before a commit copies it into the file. Longer logs merge more rewrites of
	// the same page; 16 MiB is where more no longer shows.
	checkpointPages = 4096
	// maxBatch bounds the requests of one transaction.
	maxBatch = 256
	// maxBatchBytes bounds their contents, about: the last one may go past it.
	maxBatchBytes = 8 << 20
)

// request is work for the writer. apply runs in the writer's transaction; it may
// run twice, if the batch that it was in fails. What it returns is the answer,
// unless the database fails: then nothing of the batch happened. An apply that
// writes returns only database errors from its first write on.
type request struct {
	ctx   context.Context
	op    string // for errors
	size  int64  // of the contents
	alone bool   // wants a transaction of its own
	apply func(t *transaction) error
	done  chan error
}

// writer owns the one connection that writes.
type writer struct {
	s        *Store
	c        *conn
	queue    chan *request
	finished chan struct{}

	nextSeq int64 // of commits
	oldDay  int64 // request ids of days before it are gone
	scrub   bool  // the log may hold redacted text
	ground  *ground

	// Memory for transactions, kept because every commit needs some of it.
	buf      []byte
	versions []version
	pending  map[*project]*pending
	spare    []*pending
}

func newWriter(s *Store, c *conn) *writer {
	return &writer{s: s, c: c, queue: make(chan *request, maxBatch), finished: make(chan struct{}),
		pending: make(map[*project]*pending)}
}

func (w *writer) load() error {
	settled, err := loadTrail(w.c, &w.s.trail)
	if err != nil {
		return err
	}
	return w.c.query(stMaxSeq, func(v []driver.Value) error {
		// The last rows may be gone; numbers up to settled are not used again.
		w.nextSeq = max(settled, v[0].(int64)) + 1
		return nil
	})
}

func (w *writer) start() { go w.run() }

// stop ends the writer after what is queued; nobody may submit any more.
func (w *writer) stop() {
	close(w.queue)
	<-w.finished
}

// submit hands apply to the writer and waits for its answer, whatever becomes of
// ctx meanwhile: a request that is under way may still be made durable.
func (s *Store) submit(ctx context.Context, r *request) error {
	r.ctx, r.done = ctx, make(chan error, 1)
	select {
	case s.w.queue <- r:
	case <-ctx.Done():
		return ctx.Err()
	}
	return public(r.op, <-r.done)
}

func (w *writer) run() {
	defer close(w.finished)
	idle := time.NewTicker(lookEvery)
	defer idle.Stop()
	var next *request // taken from the queue, but for the batch after
	batch := make([]*request, 0, maxBatch)
	for {
		first := next
		for first == nil {
			var ok bool
			select {
			case first, ok = <-w.queue:
				if !ok {
					return
				}
			case <-idle.C:
				_ = w.ground.look() // it tells whom it may concern
			}
		}
		batch, next = w.gather(append(batch[:0], first))
		w.commit(batch)
		clear(batch)
		if w.scrub {
			w.scrub = !w.emptyLog()
			_ = w.ground.after() // the next batch fails if it must
		}
	}
}

// gather adds to batch what waits in the queue: what came while the batch before was
// made durable. It never waits itself. Waiting for commits on their way was tried:
// the batches of a busy hub grew, and a commit took no less of the processor.
func (w *writer) gather(batch []*request) (_ []*request, next *request) {
	if batch[0].alone {
		return batch, nil
	}
	size := batch[0].size
	for len(batch) < maxBatch && size < maxBatchBytes {
		select {
		case r, ok := <-w.queue:
			if !ok {
				return batch, nil
			}
			if r.alone {
				return batch, r
			}
			batch = append(batch, r)
			size += r.size
		default:
			return batch, nil
		}
	}
	return batch, nil
}

// commit makes batch durable and answers it. If the database fails, each request
// gets a transaction of its own, so that none fails for another's sake.
func (w *writer) commit(batch []*request) {
	answers := make([]error, len(batch))
	if err := w.ground.before(); err != nil {
		for _, r := range batch {
			r.done <- err
		}
		return
	}
	err := w.try(batch, answers)
	if err == nil {
		err = w.ground.after()
		for i, r := range batch {
			if err != nil {
				answers[i] = err // it went to a file that nobody will read
			}
			r.done <- answers[i]
		}
		return
	}
	if len(batch) == 1 {
		batch[0].done <- err
		return
	}
	for i := range batch {
		if err := w.try(batch[i:i+1], answers[i:i+1]); err != nil {
			answers[i] = err
		} else if err := w.ground.after(); err != nil {
			answers[i] = err
		}
		batch[i].done <- answers[i]
	}
}

// try runs batch in one transaction. An error means that nothing of it happened.
func (w *writer) try(batch []*request, answers []error) (err error) {
	if err := w.c.exec(stBegin); err != nil {
		return err
	}
	t := &transaction{w: w, c: w.c, s: w.s, epoch: w.s.epoch(), seq: w.nextSeq, pending: w.pending}
	defer w.reuse(t)
	defer func() {
		if err != nil {
			_ = w.c.exec(stRollback) // SQLite may have rolled back by itself
			t.undo()
		}
	}()
	for i, r := range batch {
		if answers[i] = r.ctx.Err(); answers[i] != nil {
			continue
		}
		answers[i] = r.apply(t)
		var db *dbError
		if errors.As(answers[i], &db) || errors.Is(answers[i], errCorrupt) {
			return answers[i]
		}
	}
	if !t.wrote {
		return w.c.exec(stRollback)
	}
	if w.ground.unmarked {
		// Writing the schema's version, the same one, changes the first page.
		if err := w.c.script(fmt.Sprintf("PRAGMA user_version=%d", len(migrations()))); err != nil {
			return err
		}
	}
	if err := w.c.exec(stCommit); err != nil {
		return err
	}
	w.ground.unmarked = false
	t.publish()
	return nil
}

// emptyLog moves the write-ahead log into the file and empties it, unless a reader
// still needs it.
func (w *writer) emptyLog() bool {
	if err := w.c.script("PRAGMA busy_timeout(100)"); err != nil {
		return false
	}
	busy, err := w.c.pragma("wal_checkpoint(TRUNCATE)")
	_ = w.c.script("PRAGMA busy_timeout(10000)")
	return err == nil && busy == 0
}

// transaction is what a batch has done so far. Nobody but the writer sees it
// before publish.
type transaction struct {
	w       *writer
	c       *conn
	s       *Store
	epoch   memory.Epoch
	seq     int64 // of the next commit
	wrote   bool
	pending map[*project]*pending
	order   []*pending
	after   []func() // to do once it is durable
	revert  []func() // to do if it fails

	revsSettled bool // wrote the table of revisions, as of before this transaction
}

// pending is one project's state within a transaction, over the durable one.
type pending struct {
	p       *project
	rev     memory.Revision
	commit  memory.CommitID
	seq     int64
	files   int64
	bytes   int64
	entries map[memory.Path]head
	commits []memory.Commit
	places  []place             // of commits
	recent  map[[16]byte]recent // request ids of commits
	spilled bool                // wrote rows of requests
	settled bool                // wrote the heads, as of before this transaction
	undo    []pathMove
}

// maxKept bounds what a pending state that is used again keeps room for.
const maxKept = 64

// unused returns a pending state without content.
func (w *writer) unused() *pending {
	if n := len(w.spare); n > 0 {
		o := w.spare[n-1]
		w.spare = w.spare[:n-1]
		return o
	}
	return &pending{entries: make(map[memory.Path]head, 1)}
}

// reuse keeps the memory of a transaction that is over, but nothing that it held.
func (w *writer) reuse(t *transaction) {
	for _, o := range t.order {
		if len(o.entries) > maxKept || len(o.commits) > maxKept || len(o.recent) > maxKept {
			continue
		}
		clear(o.entries)
		clear(o.commits)
		clear(o.recent)
		clear(o.undo)
		*o = pending{entries: o.entries, recent: o.recent,
			commits: o.commits[:0], places: o.places[:0], undo: o.undo[:0]}
		w.spare = append(w.spare, o)
	}
	clear(w.pending)
	clear(w.versions)
	if cap(w.versions) > maxKept {
		w.versions = nil
	}
}

// pathMove is a change of a collision index, for taking it back.
type pathMove struct {
	path  memory.Path
	added bool
}

// on returns the pending state of p. Its first commit with a request id makes room
// for it in the state, if need be.
func (t *transaction) on(p *project) *pending {
	if o := t.pending[p]; o != nil {
		return o
	}
	// The writer alone changes p, so reading it needs no lock here.
	o := t.w.unused()
	o.p, o.rev, o.commit, o.seq, o.files, o.bytes = p, p.rev, p.commit, p.seq, p.files, p.bytes
	t.pending[p] = o
	t.order = append(t.order, o)
	return o
}

func (o *pending) entry(path memory.Path) (head, bool) {
	if h, ok := o.entries[path]; ok {
		return h, true
	}
	h, ok := o.p.entries[path]
	return h, ok
}

func (o *pending) cursor(epoch memory.Epoch) memory.Cursor {
	return memory.Cursor{Epoch: epoch, Revision: o.rev, CommitID: o.commit}
}

// view is what Judge sees.
func (o *pending) view(epoch memory.Epoch) store.View {
	return store.View{
		Head: o.cursor(epoch), Files: o.files, Bytes: o.bytes,
		Entry: func(path memory.Path) (store.Entry, bool) {
			h, ok := o.entry(path)
			if !ok {
				return store.Entry{}, false
			}
			if h.deleted {
				return store.Entry{LastETag: h.etag(), Revision: h.rev}, true
			}
			return store.Entry{ETag: h.etag(), Size: h.size, Revision: h.rev}, true
		},
		Collides: o.p.paths.CheckAfter,
	}
}

// append writes c as the next commit of o's project. Its contents are kept as they
// are: nobody may change them any more.
func (t *transaction) append(o *pending, c *memory.Commit, tag *requestTag) error {
	t.wrote = true
	if len(o.commits) == 0 && o.p.loose() {
		if err := t.settle(o); err != nil {
			return err
		}
	}
	if t.s.trail.n >= t.s.trail.limit {
		if err := t.settleRevs(); err != nil {
			return err
		}
	}
	seq := t.seq
	t.seq++
	r := record{Commit: *c, versions: slices.Grow(t.w.versions[:0], len(c.Changes))[:len(c.Changes)], request: tag}
	t.w.versions = r.versions
	for i := range c.Changes {
		v := &r.versions[i]
		*v = version{AppliedChange: c.Changes[i]}
		if was, ok := o.entry(v.Path); ok {
			v.prevSeq, v.prevRev = was.seq, was.rev
		}
	}
	t.w.buf = appendMeta(t.w.buf[:0], &r)
	if err := t.c.exec(stPutCommit, seq, o.p.id, int64(c.Revision), t.w.buf, r.content()); err != nil {
		return err
	}
	for i := range c.Changes {
		t.move(o, &c.Changes[i], c.Revision, seq)
	}
	o.rev, o.commit, o.seq = c.Revision, c.ID, seq
	o.commits = append(o.commits, *c)
	o.places = append(o.places, place{c.Revision, seq})
	if tag == nil {
		return nil
	}
	if len(o.recent) == 0 {
		if err := t.spill(o, c.Time); err != nil {
			return err
		}
		if o.recent == nil {
			o.recent = make(map[[16]byte]recent, 1)
		}
	}
	o.recent[tag.key] = recent{seq: seq, rev: c.Revision, at: c.Time}
	return nil
}

// move brings one path of o to what the change leaves.
func (t *transaction) move(o *pending, ch *memory.AppliedChange, rev memory.Revision, seq int64) {
	was, existed := o.entry(ch.Path)
	now := newHead(ch, rev, seq)
	if existed && !was.deleted {
		o.files--
		o.bytes -= was.size
		if now.deleted {
			o.p.paths.Remove(ch.Path)
			o.undo = append(o.undo, pathMove{ch.Path, false})
		}
	}
	if !now.deleted {
		o.files++
		o.bytes += now.size
		if !existed || was.deleted {
			o.p.paths.Add(ch.Path)
			o.undo = append(o.undo, pathMove{ch.Path, true})
		}
	}
	o.entries[ch.Path] = now
}

// undo takes back what the transaction did to shared state.
func (t *transaction) undo() {
	for _, f := range t.revert {
		f()
	}
	for _, o := range t.order {
		for i := len(o.undo) - 1; i >= 0; i-- {
			if m := o.undo[i]; m.added {
				o.p.paths.Remove(m.path)
			} else {
				o.p.paths.Add(m.path)
			}
		}
	}
}

// publish makes visible what is durable now, and then says so.
func (t *transaction) publish() {
	t.w.nextSeq = t.seq
	if t.revsSettled {
		t.s.trail.clear()
	}
	for _, o := range t.order {
		if len(o.places) > 0 {
			t.s.trail.add(o.p.key, o.p.id, o.places...)
		}
		o.publish()
	}
	for _, f := range t.after {
		f()
	}
	for _, o := range t.order {
		if len(o.commits) > 0 {
			t.s.notices.Wake(o.p.key)
		}
	}
}

func (o *pending) publish() {
	p := o.p
	if o.settled {
		p.headed = p.rev
		clear(p.unheaded)
	}
	for path := range o.entries {
		p.unheaded[path] = struct{}{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rev, p.commit, p.seq, p.files, p.bytes = o.rev, o.commit, o.seq, o.files, o.bytes
	for path, h := range o.entries {
		p.entries[path] = h
	}
	for k, r := range o.recent {
		p.recent[k] = r
	}
	p.spilled = p.spilled || o.spilled
	for i := range o.commits {
		p.tail.push(o.commits[i])
	}
}

// errGone is a project that was purged while a call held it.
func errGone(p *project) error { return store.NoProject(p.key) }

func corrupt(p *project, seq int64) error {
	return fmt.Errorf("%s: row %d: %w", p.key, seq, errCorrupt)
}
