package changefeed

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Start says where the watching of one project begins.
type Start struct {
	Project memory.ProjectKey
	// After is the last point that the reader has applied. An epoch or a commit id
	// that is "" is not compared.
	After memory.Cursor
	// Head begins at the present head instead.
	Head bool
	// Policy is the version of the team's guard policy, told after the first
	// bookmark; 0 tells none.
	Policy int64
	// Err, if not nil, is the status that the project gets instead of being followed.
	Err error
}

// Watcher is a cursor into the logs of some projects. Only one goroutine may use
// it at a time.
type Watcher struct {
	feed   *Feed
	places []follow
	opened int       // how many places have had their first event
	due    time.Time // no bookmark is due before
	marks  []int     // places whose bookmark is due
	timer  *time.Timer

	mu     sync.Mutex // guards what follows
	dirty  []int      // places with something to look at, first come first
	closed bool
	wake   chan struct{} // capacity one
}

// follow is a watcher's place in one project.
type follow struct {
	key    memory.ProjectKey
	tail   *tail // nil when not followed
	cursor memory.Cursor
	start  int64     // version of the policy when the watch began
	policy int64     // version last told
	err    error     // first status
	last   time.Time // of the last event
	listed bool      // in dirty; guarded by Watcher.mu
}

func errDraining() error {
	return &memory.Error{Reason: memory.ReasonUnavailable, Message: "watch: the hub is shutting down; connect again"}
}

// Open returns a watcher of the projects. A project that cannot be followed makes
// no error: it gets a status as its first and only event, and the others go on. A store
// that cannot be asked now is an error: that says nothing about the project, and who
// connects again goes on.
// The first event of every other project is a bookmark at its start.
func (f *Feed) Open(ctx context.Context, starts []Start) (*Watcher, error) {
	w := &Watcher{feed: f, places: make([]follow, len(starts)), wake: make(chan struct{}, 1)}
	f.mu.Lock()
	f.watchers++
	f.mu.Unlock()
	for i, s := range starts {
		p := &w.places[i]
		p.key, p.cursor, p.start, p.err = s.Project, s.After, s.Policy, s.Err
		if p.err == nil {
			if p.tail = f.acquire(s.Project); p.tail == nil {
				w.Close()
				return nil, errDraining()
			}
			p.tail.join(w, i)
		}
	}
	for i, s := range starts {
		p := &w.places[i]
		if p.tail == nil {
			continue
		}
		select {
		case <-p.tail.ready:
		case <-f.done:
			w.Close()
			return nil, errDraining()
		case <-ctx.Done():
			w.Close()
			return nil, context.Cause(ctx)
		}
		if p.err = w.begin(ctx, p, s); p.err != nil {
			var known *memory.Error
			if !errors.As(p.err, &known) || errors.Is(p.err, memory.ErrUnavailable) {
				w.Close()
				return nil, p.err
			}
			w.abandon(p)
		}
	}
	return w, nil
}

// begin sets the place's cursor, or says why it cannot be followed from there.
func (w *Watcher) begin(ctx context.Context, p *follow, s Start) error {
	state := p.tail.state()
	if state.err != nil {
		return state.err
	}
	if s.Head || s.After == state.head {
		p.cursor = state.head
		return nil
	}
	info, err := w.feed.Check(ctx, p.key, s.After)
	if err != nil {
		return err
	}
	p.cursor.Epoch = info.Head.Epoch
	return nil
}

// Check compares a reader's cursor with the project's history and returns where
// the project stands. The error is an ErrEpochChanged, with the last revision that
// both share, when the cursor is not of this history: another epoch, beyond the
// head, or another commit at its revision. It is an ErrRevisionCompacted when what
// follows the cursor is no longer kept.
func (f *Feed) Check(ctx context.Context, key memory.ProjectKey, after memory.Cursor) (store.ProjectInfo, error) {
	info, err := f.log.Project(ctx, key)
	if err != nil {
		return info, err
	}
	changed := func(rewind memory.Revision) error {
		return &memory.Error{
			Reason: memory.ReasonEpochChanged, Head: info.Head, RewindRevision: rewind,
			Message: "project " + key.String() + ": the cursor is of another history; compare everything",
		}
	}
	if after.Epoch != "" && after.Epoch != info.Head.Epoch {
		rewind, ok, err := f.log.Rewind(ctx, key, after.Epoch)
		if err != nil {
			return info, err
		}
		if !ok {
			rewind = 0
		}
		return info, changed(min(rewind, info.Head.Revision))
	}
	if after.Revision > info.Head.Revision {
		return info, changed(0)
	}
	if after.CommitID != "" && after.Revision > 0 {
		id, err := f.idAt(ctx, info, after.Revision)
		if err != nil {
			return info, err
		}
		if id != "" && id != after.CommitID {
			return info, changed(0)
		}
	}
	if after.Revision < info.Oldest-1 {
		return info, &memory.Error{
			Reason: memory.ReasonRevisionCompacted, Head: info.Head, Oldest: info.Oldest,
			Message: "project " + key.String() + ": the changes after the cursor are no longer kept; list everything",
		}
	}
	return info, nil
}

// idAt returns the id of the commit at revision, or "" when it is no longer kept.
func (f *Feed) idAt(ctx context.Context, info store.ProjectInfo, revision memory.Revision) (memory.CommitID, error) {
	if revision == info.Head.Revision {
		return info.Head.CommitID, nil
	}
	if revision < info.Oldest {
		return "", nil
	}
	s, err := f.commit(ctx, info.Key, revision)
	if errors.Is(err, memory.ErrRevisionCompacted) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return s.Commit.ID, nil
}

// mark notes that there is something to look at in place i. It never blocks.
func (w *Watcher) mark(i int) {
	w.mu.Lock()
	p := &w.places[i]
	if !p.listed && !w.closed {
		p.listed = true
		w.dirty = append(w.dirty, i)
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// pop returns the place that has waited longest.
func (w *Watcher) pop() (int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.dirty) == 0 {
		return 0, false
	}
	i := w.dirty[0]
	w.dirty = w.dirty[1:]
	if len(w.dirty) == 0 {
		w.dirty = nil
	}
	w.places[i].listed = false
	return i, true
}

// Next returns the next event. It waits for one until ctx ends; then it returns
// the cause. After the feed's Close it returns an ErrUnavailable.
func (w *Watcher) Next(ctx context.Context) (Event, error) {
	for {
		if w.feed.draining() {
			return Event{}, errDraining()
		}
		if err := ctx.Err(); err != nil {
			return Event{}, context.Cause(ctx)
		}
		now := time.Now()
		if w.opened < len(w.places) {
			return w.first(now), nil
		}
		if ev, ok := w.bookmark(now); ok {
			return ev, nil
		}
		if i, ok := w.pop(); ok {
			ev, ok, err := w.read(ctx, i, now)
			if err != nil {
				return Event{}, err
			}
			if ok {
				return ev, nil
			}
			continue
		}
		w.wait(ctx, now)
	}
}

// first returns the first event of the next place that has had none.
func (w *Watcher) first(now time.Time) Event {
	i := w.opened
	w.opened++
	p := &w.places[i]
	p.last = now
	if p.err != nil {
		return Event{Project: p.key, Kind: KindStatus, Err: p.err}
	}
	if w.due.IsZero() {
		w.due = now.Add(w.feed.opts.BookmarkEvery)
	}
	w.mark(i) // there may be a backlog
	return Event{Project: p.key, Kind: KindBookmark, Cursor: p.cursor}
}

// bookmark returns a bookmark that is due. Those due soon go with it, so that a
// watcher of many quiet projects wakes seldom.
func (w *Watcher) bookmark(now time.Time) (Event, bool) {
	every := w.feed.opts.BookmarkEvery
	if len(w.marks) == 0 && !w.due.IsZero() && !now.Before(w.due) {
		w.due = time.Time{}
		for i := range w.places {
			p := &w.places[i]
			if p.tail == nil {
				continue
			}
			at := p.last.Add(every)
			if at.Add(-every / 4).Before(now) {
				w.marks = append(w.marks, i)
				at = now.Add(every)
			}
			if w.due.IsZero() || at.Before(w.due) {
				w.due = at
			}
		}
	}
	for len(w.marks) > 0 {
		p := &w.places[w.marks[0]]
		w.marks = w.marks[1:]
		if p.tail != nil {
			p.last = now
			return Event{Project: p.key, Kind: KindBookmark, Cursor: p.cursor}, true
		}
	}
	w.marks = nil
	return Event{}, false
}

// read looks at place i; ok is false when there is nothing to tell.
func (w *Watcher) read(ctx context.Context, i int, now time.Time) (ev Event, ok bool, err error) {
	p := &w.places[i]
	if p.tail == nil {
		return Event{}, false, nil
	}
	state := p.tail.state()
	switch {
	case errors.Is(state.err, memory.ErrUnavailable):
		return Event{}, false, state.err
	case state.err != nil:
		w.abandon(p)
		return Event{Project: p.key, Kind: KindStatus, Err: state.err}, true, nil
	case max(state.policy, p.start) > p.policy:
		p.policy = max(state.policy, p.start)
		p.last = now
		w.mark(i)
		return Event{Project: p.key, Kind: KindPolicy, Cursor: p.cursor, Policy: p.policy}, true, nil
	case p.cursor.Revision < state.head.Revision:
		return w.readCommit(ctx, i, state.head.Revision, now)
	}
	return Event{}, false, nil
}

func (w *Watcher) readCommit(ctx context.Context, i int, head memory.Revision, now time.Time) (Event, bool, error) {
	p := &w.places[i]
	s, err := w.feed.commit(ctx, p.key, p.cursor.Revision+1)
	var known *memory.Error
	switch {
	case err == nil:
	case errors.Is(err, store.ErrClosed), w.feed.draining():
		return Event{}, false, errDraining()
	case errors.As(err, &known) && known.Reason != memory.ReasonInternal && known.Reason != memory.ReasonUnavailable:
		w.abandon(p)
		return Event{Project: p.key, Kind: KindStatus, Err: known}, true, nil
	default:
		return Event{}, false, err
	}
	p.cursor.Revision, p.cursor.CommitID = s.Commit.Revision, s.Commit.ID
	p.last = now
	if p.cursor.Revision < head {
		w.mark(i) // behind the others of this watcher, so that none starves
	}
	return Event{Project: p.key, Kind: KindCommit, Commit: s, Cursor: p.cursor}, true, nil
}

// wait returns when there may be something to do.
func (w *Watcher) wait(ctx context.Context, now time.Time) {
	var due <-chan time.Time
	if !w.due.IsZero() {
		if w.timer == nil {
			w.timer = time.NewTimer(w.due.Sub(now))
		} else {
			w.timer.Reset(w.due.Sub(now))
		}
		due = w.timer.C
	}
	select {
	case <-ctx.Done():
	case <-w.feed.done:
	case <-w.wake:
	case <-due:
	}
}

// abandon stops following a place.
func (w *Watcher) abandon(p *follow) {
	t := p.tail
	if t == nil {
		return
	}
	p.tail = nil
	t.leave(w)
	w.feed.release(t)
}

// Close gives everything back. A second Close does nothing.
func (w *Watcher) Close() {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.closed = true
	w.mu.Unlock()
	for i := range w.places {
		w.abandon(&w.places[i])
	}
	if w.timer != nil {
		w.timer.Stop()
	}
	w.feed.mu.Lock()
	w.feed.watchers--
	w.feed.mu.Unlock()
}
