package changefeed

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// tail follows the end of one project's log for all its watchers.
type tail struct {
	feed   *Feed
	key    memory.ProjectKey
	cancel context.CancelFunc
	refs   int           // guarded by feed.mu
	ready  chan struct{} // closed when the head is known, or that it cannot be

	mu       sync.Mutex // guards what follows
	isReady  bool
	head     memory.Cursor
	policy   int64
	err      error // why the tail has ended
	watchers map[*Watcher]int
}

// run reads the log until ctx ends or the project cannot be followed any more.
func (t *tail) run(ctx context.Context) {
	log := t.feed.log
	// Subscribe before reading: what is committed after the first look is noticed.
	notice, stop := log.Notify([]memory.ProjectKey{t.key})
	defer stop()
	pause := backoff{}
	for {
		info, err := log.Project(ctx, t.key)
		if err == nil {
			t.open(info.Head)
			break
		}
		if t.ended(ctx, err) || !pause.wait(ctx) {
			return
		}
	}
	poll := time.NewTicker(t.feed.opts.PollEvery)
	defer poll.Stop()
	for {
		polled := false
		select {
		case <-ctx.Done():
			return
		case <-notice:
		case <-poll.C:
			polled = true
		}
		for {
			found, more, err := t.advance(ctx)
			if polled {
				t.feed.polled.Add(int64(found))
			}
			if err == nil {
				pause = backoff{}
				if more {
					continue
				}
				break
			}
			if t.ended(ctx, err) || !pause.wait(ctx) {
				return
			}
		}
	}
}

// advance reads one page after the head, which holds so many commits. more says that
// the page was full.
func (t *tail) advance(ctx context.Context) (found int, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	head := t.state().head
	commits, err := t.feed.log.Changes(ctx, t.key, head.Revision, pageCommits, pageBytes)
	if err != nil || len(commits) == 0 {
		return 0, false, err
	}
	var bytes int64
	for i := range commits {
		c := &commits[i]
		if c.Revision != head.Revision+1 {
			return 0, false, &memory.Error{Reason: memory.ReasonInternal, Message: "watch: the log of " + t.key.String() + " has a gap"}
		}
		s := Share(c)
		bytes += s.size()
		for _, ch := range c.Changes {
			if ch.Kind == memory.Redact {
				// Stored texts were rewritten; copies of the old ones must go.
				t.feed.cache.forget(t.key)
				break
			}
		}
		t.feed.cache.put(place{t.key, c.Revision}, s)
		head.Revision, head.CommitID = c.Revision, c.ID
	}
	t.publish(head)
	return len(commits), len(commits) == pageCommits || bytes >= pageBytes, nil
}

// ended reports whether err means that the tail is over, and tells the watchers.
func (t *tail) ended(ctx context.Context, err error) bool {
	switch {
	case ctx.Err() != nil:
		return true
	case errors.Is(err, store.ErrClosed):
		t.fail(errDraining())
	case errors.Is(err, memory.ErrNotFound):
		t.fail(&memory.Error{Reason: memory.ReasonNotFound, Message: "project " + t.key.String() + ": not found"})
	case errors.Is(err, memory.ErrInvalidArgument), errors.Is(err, memory.ErrRevisionCompacted):
		// The log is shorter than what we have read, or lost what we have not:
		// another history was put in its place.
		t.feed.opts.Logger.Warn("a project's history was replaced; its agents compare everything", "project", t.key.String())
		t.fail(&memory.Error{Reason: memory.ReasonEpochChanged, Message: "project " + t.key.String() + ": its history was replaced; compare everything"})
	default:
		t.feed.opts.Logger.Warn("watch: reading the log failed, trying again", "project", t.key.String(), "error", err.Error())
		return false
	}
	return true
}

type tailState struct {
	head   memory.Cursor
	policy int64
	err    error
}

func (t *tail) state() tailState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return tailState{t.head, t.policy, t.err}
}

func (t *tail) failed() error { return t.state().err }

func (t *tail) open(head memory.Cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.head = head
	t.readyLocked()
	t.wakeLocked()
}

func (t *tail) readyLocked() {
	if !t.isReady {
		t.isReady = true
		close(t.ready)
	}
}

func (t *tail) publish(head memory.Cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.head = head
	t.wakeLocked()
}

func (t *tail) announce(policy int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if policy > t.policy {
		t.policy = policy
		t.wakeLocked()
	}
}

func (t *tail) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
	t.readyLocked()
	t.wakeLocked()
	t.cancel()
}

func (t *tail) wakeLocked() {
	for w, i := range t.watchers {
		w.mark(i)
	}
}

func (t *tail) join(w *Watcher, i int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watchers[w] = i
}

func (t *tail) leave(w *Watcher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.watchers, w)
}

// backoff waits longer each time: 50 ms, doubling, at most 5 s.
type backoff struct{ last time.Duration }

// wait reports whether ctx still holds after the pause.
func (b *backoff) wait(ctx context.Context) bool {
	b.last = min(max(2*b.last, 50*time.Millisecond), 5*time.Second)
	timer := time.NewTimer(b.last)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
