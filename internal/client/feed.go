package client

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// Feed follows any number of projects of one hub on one stream (SPEC 13.12). It
// resumes each from its own cursor after any break; a project that cannot be
// followed leaves the stream, and the others go on.
//
// A Feed passes on what the hub promises: per project, commits come ascending,
// whole, without gap and once. A commit that would break this ends the stream and
// makes a new one from the cursor.
type Feed struct {
	c      *Client
	handle func(Event)

	mu       sync.Mutex // guards what follows
	followed map[memory.ProjectKey]*followed
	changed  chan struct{} // closed and replaced when followed changes
	up       bool
	lastErr  error
}

// followed is one project of a feed.
type followed struct {
	cursor memory.Cursor // the last point delivered
	atHead bool          // begin with what is new
	live   bool          // the present stream has spoken of it
	head   memory.Cursor // as far as the hub has told, when live
}

// EventKind says what an Event is about.
type EventKind uint8

// The kinds of event.
const (
	// EventCommit: Commit is the next one of Project; Cursor is the point after it.
	EventCommit EventKind = iota + 1
	// EventBookmark: everything of Project up to Cursor has been delivered.
	EventBookmark
	// EventStopped: Project cannot be followed from its cursor, Err says why. The
	// feed has dropped it; Follow takes it up again.
	EventStopped
	// EventPolicy: the guard policy of Project's team has PolicyVersion now.
	EventPolicy
	// EventUp: a stream stands and the hub has spoken.
	EventUp
	// EventDown: there is no stream, Err says why. The feed goes on trying: soon
	// when IsPassing(Err), else when the token changes, Kick is called, or Reprobe
	// is over.
	EventDown
)

// Event is what a Feed tells.
type Event struct {
	Kind          EventKind
	Project       memory.ProjectKey
	Commit        memory.Commit
	Cursor        memory.Cursor
	Err           error
	PolicyVersion int64
	SendTime      time.Time // the hub's; zero for EventUp and EventDown
}

// NewFeed returns a feed that calls handle with each event, one at a time, from the
// goroutine of Run. handle must be quick: while it runs nothing is received.
func (c *Client) NewFeed(handle func(Event)) *Feed {
	return &Feed{c: c, handle: handle, followed: map[memory.ProjectKey]*followed{}, changed: make(chan struct{})}
}

// Follow adds a project, or moves it to another cursor. The zero cursor is before
// everything; fromHead asks only for what is new.
func (f *Feed) Follow(key memory.ProjectKey, after memory.Cursor, fromHead bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followed[key] = &followed{cursor: after, atHead: fromHead}
	f.signal()
}

// Drop ends following a project.
func (f *Feed) Drop(key memory.ProjectKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.followed[key]; ok {
		delete(f.followed, key)
		f.signal()
	}
}

// Kick makes a feed that waits try again at once.
func (f *Feed) Kick() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.up {
		f.signal()
	}
}

// signal wakes whoever waits on changed; f.mu is held.
func (f *Feed) signal() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// Live reports whether the stream stands and has spoken of the project, and up to
// where the hub is known to have come. While it is true, a commit after head will be
// told by an event.
func (f *Feed) Live(key memory.ProjectKey) (head memory.Cursor, live bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.followed[key]
	if p == nil || !f.up || !p.live {
		return memory.Cursor{}, false
	}
	return p.head, true
}

// Status reports whether a stream stands, and else what ended the last one.
func (f *Feed) Status() (up bool, lastErr error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.up, f.lastErr
}

// gather is how long a feed waits for further changes of its set before it makes a
// new stream.
const gather = 20 * time.Millisecond

// errSetChanged ends a stream whose projects are not the wanted ones any more.
var errSetChanged = errors.New("the set of projects changed")

// errSilent ends a stream on which nothing was heard.
var errSilent = &memory.Error{Reason: memory.ReasonUnavailable, Message: "the hub fell silent"}

// Run follows until ctx ends, and returns its error.
func (f *Feed) Run(ctx context.Context) error {
	pause := f.c.opts.MinBackoff
	for ctx.Err() == nil {
		req, changed := f.request()
		if len(req.GetProjects()) == 0 {
			if wait(ctx, changed, 0) {
				continue
			}
			break
		}
		used := f.c.token.fingerprint() // no newer than the credential of the stream
		heard, err := f.stream(ctx, req, changed)
		if ctx.Err() != nil {
			break
		}
		if heard {
			pause = f.c.opts.MinBackoff
		}
		if refused(err) {
			f.c.reintroduce()
		}
		if errors.Is(err, errSetChanged) || errors.Is(err, memory.ErrUnauthenticated) && f.c.token.fingerprint() != used {
			// Changes of the set come in flocks, one for each link of a daemon. And a
			// stream that ends with its token goes on with the one that replaced it.
			sleep(ctx, gather)
			continue
		}
		f.down(err)
		if IsPassing(err) {
			d := jitter(pause)
			var e *memory.Error
			if errors.As(err, &e) && e.RetryAfter > 0 {
				d = min(e.RetryAfter, f.c.opts.Reprobe)
			}
			pause = min(2*pause, f.c.opts.MaxBackoff)
			wait(ctx, changed, d)
			continue
		}
		f.waitForCause(ctx, used, changed)
	}
	f.mu.Lock()
	f.up = false
	f.mu.Unlock()
	return ctx.Err()
}

// wait returns when woken or after d (0 = never); false when ctx ended.
func wait(ctx context.Context, woken <-chan struct{}, d time.Duration) bool {
	var after <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		after = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-woken:
	case <-after:
	}
	return true
}

// tokenPoll is how often the token file is read while the hub refuses us; it happens in
// no other state.
const tokenPoll = 2 * time.Second

// waitForCause waits until what was refused for good may be accepted: another token than
// used, with which the stream began, another set of projects than it asked for, a Kick, or
// the slow probe.
func (f *Feed) waitForCause(ctx context.Context, used [sha256.Size]byte, changed <-chan struct{}) {
	if f.c.token.fingerprint() != used {
		sleep(ctx, f.c.opts.MinBackoff)
		return
	}
	until := time.NewTimer(f.c.opts.Reprobe)
	defer until.Stop()
	look := time.NewTicker(tokenPoll)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			return
		case <-until.C:
			return
		case <-look.C:
			if f.c.token.fingerprint() != used {
				return
			}
		}
	}
}

// request returns what to ask for now, and a channel that is closed when that changes.
func (f *Feed) request() (*memsvcv1.WatchMemoriesRequest, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.c.opts.Agent
	req := &memsvcv1.WatchMemoriesRequest{Agent: &memsvcv1.AgentInfo{AgentId: a.ID, Machine: a.Machine, Version: a.Version}}
	for key, p := range f.followed {
		p.live = false
		w := &memsvcv1.WatchedProject{Project: key.String(), Cursor: wire.CursorToProto(p.cursor)}
		if p.atHead {
			w.Start = memsvcv1.WatchStart_WATCH_START_HEAD
		}
		req.Projects = append(req.Projects, w)
	}
	return req, f.changed
}

func (f *Feed) down(err error) {
	f.mu.Lock()
	f.up, f.lastErr = false, err
	f.mu.Unlock()
	f.handle(Event{Kind: EventDown, Err: err})
}

// stream runs one stream to its end; heard says whether the hub spoke at all.
func (f *Feed) stream(ctx context.Context, req *memsvcv1.WatchMemoriesRequest, changed <-chan struct{}) (heard bool, err error) {
	sctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	silent := time.AfterFunc(f.c.opts.Silence, func() { cancel(errSilent) })
	defer silent.Stop()
	wg.Go(func() {
		select {
		case <-changed:
			cancel(errSetChanged)
		case <-stop:
		}
	})

	conn := f.c.cc()
	s, err := memsvcv1.NewMemoryServiceClient(conn).WatchMemories(sctx, req)
	for err == nil {
		var res *memsvcv1.WatchMemoriesResponse
		if res, err = s.Recv(); err != nil {
			break
		}
		now := f.c.opts.Now()
		silent.Reset(f.c.opts.Silence)
		if !heard {
			heard = true
			f.c.worked.Store(true)
			f.mu.Lock()
			f.up, f.lastErr = true, nil
			f.mu.Unlock()
			f.handle(Event{Kind: EventUp})
		}
		err = f.receive(res, now)
	}
	if cause := context.Cause(sctx); cause != nil && ctx.Err() == nil {
		err = cause
	}
	if errors.Is(err, errSilent) {
		f.c.renew(conn)
	}
	return heard, f.c.domain(ctx, err)
}

// receive turns one message into an event.
func (f *Feed) receive(res *memsvcv1.WatchMemoriesResponse, now time.Time) error {
	sent, err := wire.TimeFromProto("send_time", res.GetSendTime())
	if err != nil {
		return err
	}
	f.c.offset.add(sent, now)
	key, err := memory.ParseProjectKey(res.GetProject())
	if err != nil {
		return err
	}
	ev := Event{Project: key, SendTime: sent}
	switch e := res.GetEvent().(type) {
	case *memsvcv1.WatchMemoriesResponse_Commit:
		ev.Kind = EventCommit
		if ev.Commit, err = wire.CommitFromProto(e.Commit); err != nil {
			return err
		}
	case *memsvcv1.WatchMemoriesResponse_Bookmark:
		ev.Kind = EventBookmark
		if ev.Cursor, err = wire.CursorFromProto(e.Bookmark); err != nil {
			return err
		}
	case *memsvcv1.WatchMemoriesResponse_Status:
		ev.Kind, ev.Err = EventStopped, wire.ProjectStatusFromProto(e.Status)
	case *memsvcv1.WatchMemoriesResponse_PolicyVersion:
		ev.Kind, ev.PolicyVersion = EventPolicy, e.PolicyVersion
	default:
		return nil // a newer hub's event
	}
	deliver, err := f.record(&ev)
	if deliver {
		f.handle(ev)
	}
	return err
}

// errOutOfOrder ends a stream that broke the hub's promise.
func errOutOfOrder(key memory.ProjectKey, have, got memory.Revision) error {
	return &memory.Error{Reason: memory.ReasonUnavailable,
		Message: fmt.Sprintf("%s: the stream went from revision %d to %d", key, have, got)}
}

// record notes ev in the project's cursor and says whether to deliver it.
func (f *Feed) record(ev *Event) (deliver bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.followed[ev.Project]
	if p == nil {
		return false, nil // dropped meanwhile
	}
	switch ev.Kind {
	case EventCommit:
		if !p.live || ev.Commit.Revision != p.cursor.Revision+1 {
			return false, errOutOfOrder(ev.Project, p.cursor.Revision, ev.Commit.Revision)
		}
		p.cursor.Revision, p.cursor.CommitID = ev.Commit.Revision, ev.Commit.ID
		ev.Cursor = p.cursor
		if p.head.Revision < p.cursor.Revision {
			p.head = p.cursor
		}
	case EventBookmark:
		if p.live && ev.Cursor.Revision < p.cursor.Revision {
			return false, errOutOfOrder(ev.Project, p.cursor.Revision, ev.Cursor.Revision)
		}
		first := !p.live
		if !first && ev.Cursor.Revision > p.cursor.Revision {
			// The hub says that we have what we do not have.
			return false, errOutOfOrder(ev.Project, p.cursor.Revision, ev.Cursor.Revision)
		}
		if first && !p.atHead && ev.Cursor.Revision > p.cursor.Revision {
			return false, errOutOfOrder(ev.Project, p.cursor.Revision, ev.Cursor.Revision)
		}
		p.live, p.atHead = true, false
		p.cursor, p.head = ev.Cursor, ev.Cursor
	case EventStopped:
		delete(f.followed, ev.Project)
	}
	return true, nil
}
