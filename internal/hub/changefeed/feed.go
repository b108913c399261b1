package changefeed

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Log is what the feed needs of a store; see store.Store and store.Epochs for the
// promises.
type Log interface {
	Project(ctx context.Context, key memory.ProjectKey) (store.ProjectInfo, error)
	Changes(ctx context.Context, key memory.ProjectKey, after memory.Revision, limit int, maxBytes int64) ([]memory.Commit, error)
	Notify(keys []memory.ProjectKey) (c <-chan struct{}, stop func())
	Rewind(ctx context.Context, key memory.ProjectKey, seen memory.Epoch) (at memory.Revision, ok bool, err error)
}

// Bounds of one read of the log.
const (
	pageCommits = 64
	pageBytes   = 1 << 20
	readTimeout = 30 * time.Second
)

// Options bounds a feed. The zero value is the default of every field.
type Options struct {
	// BookmarkEvery is how long a project may be quiet before a bookmark; 0 is 10 s.
	// It must leave room below MaxQuiet.
	BookmarkEvery time.Duration
	// PollEvery is how often a tail looks without having been told to; 0 is 30 s.
	// It covers lost notices.
	PollEvery time.Duration
	// CacheBytes bounds the commits kept for all watchers; 0 is 64 MiB.
	CacheBytes int64
	// Logger gets what goes wrong while reading the log; nil discards it.
	Logger *slog.Logger
}

// Feed serves watchers from one log. Its methods are safe for concurrent use.
type Feed struct {
	log    Log
	opts   Options
	cache  *cache
	flight singleflight.Group

	done chan struct{}  // closed by Close
	wg   sync.WaitGroup // the tails

	mu       sync.Mutex // guards what follows
	closed   bool
	tails    map[memory.ProjectKey]*tail
	watchers int

	polled atomic.Int64 // commits that no notice told of
}

// New returns a feed over log. Close ends it.
func New(log Log, opts Options) *Feed {
	if opts.BookmarkEvery <= 0 {
		opts.BookmarkEvery = 10 * time.Second
	}
	if opts.PollEvery <= 0 {
		opts.PollEvery = 30 * time.Second
	}
	if opts.CacheBytes <= 0 {
		opts.CacheBytes = 64 << 20
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Feed{
		log: log, opts: opts, cache: newCache(opts.CacheBytes),
		done: make(chan struct{}), tails: map[memory.ProjectKey]*tail{},
	}
}

// Close ends every watcher after the commit it is delivering, with an
// ErrUnavailable, and waits for the feed's own goroutines.
func (f *Feed) Close() {
	f.mu.Lock()
	if !f.closed {
		f.closed = true
		close(f.done)
		for _, t := range f.tails {
			t.cancel()
		}
	}
	f.mu.Unlock()
	f.wg.Wait()
}

func (f *Feed) draining() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// Watchers returns how many watchers are open.
func (f *Feed) Watchers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.watchers
}

// Projects returns how many projects are followed for watchers.
func (f *Feed) Projects() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.tails)
}

// Polled returns how many commits were found by looking without a notice, since the
// feed was made. Notices are hints and may be lost, but where many are, watchers wait
// for the next look.
func (f *Feed) Polled() int64 { return f.polled.Load() }

// CachedBytes returns about how much memory the shared commits take.
func (f *Feed) CachedBytes() int64 { return f.cache.bytes() }

// Teams returns the teams whose projects are watched.
func (f *Feed) Teams() []memory.Team {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := make(map[memory.Team]bool)
	var out []memory.Team
	for key := range f.tails {
		if !seen[key.Team] {
			seen[key.Team] = true
			out = append(out, key.Team)
		}
	}
	return out
}

// Announce tells the watchers of the team's projects that its guard policy now
// has this version.
func (f *Feed) Announce(team memory.Team, version int64) {
	for _, t := range f.tailsOf(func(k memory.ProjectKey) bool { return k.Team == team }) {
		t.announce(version)
	}
}

// Forget drops what is cached of the project, because stored texts were rewritten.
func (f *Feed) Forget(key memory.ProjectKey) { f.cache.forget(key) }

// Fail ends the following of every watched project for which match is true, with
// a status that carries cause: the history that the watchers follow is no more.
func (f *Feed) Fail(match func(memory.ProjectKey) bool, cause error) {
	for _, t := range f.tailsOf(match) {
		f.cache.forget(t.key)
		t.fail(cause)
	}
}

func (f *Feed) tailsOf(match func(memory.ProjectKey) bool) []*tail {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*tail
	for key, t := range f.tails {
		if match(key) {
			out = append(out, t)
		}
	}
	return out
}

// acquire returns the project's running tail, or nil after Close; release gives it back.
func (f *Feed) acquire(key memory.ProjectKey) *tail {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	t, ok := f.tails[key]
	if ok && t.failed() != nil {
		ok = false // a failed tail serves its last watchers only
	}
	if !ok {
		ctx, cancel := context.WithCancel(context.Background())
		t = &tail{feed: f, key: key, cancel: cancel, ready: make(chan struct{}), watchers: map[*Watcher]int{}}
		f.tails[key] = t
		f.wg.Go(func() { t.run(ctx) })
	}
	t.refs++
	return t
}

func (f *Feed) release(t *tail) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.refs--; t.refs == 0 {
		t.cancel()
		if f.tails[t.key] == t {
			delete(f.tails, t.key)
			// Nobody follows the project here any more, and would see that another replica
			// rewrites what is kept of it.
			f.cache.forget(t.key)
		}
	}
}

// commit returns the project's commit at revision, from the cache or the log.
func (f *Feed) commit(ctx context.Context, key memory.ProjectKey, revision memory.Revision) (*Shared, error) {
	at := place{key, revision}
	if s := f.cache.get(at); s != nil {
		return s, nil
	}
	// Many watchers fall behind at the same place, after a burst or a restart: one
	// of them reads for all.
	name := key.String() + "@" + strconv.FormatInt(int64(revision), 10)
	got := f.flight.DoChan(name, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		defer cancel()
		commits, err := f.log.Changes(ctx, key, revision-1, pageCommits, pageBytes)
		if err != nil {
			return nil, err
		}
		var first *Shared
		for i := range commits {
			s := f.cache.put(place{key, commits[i].Revision}, Share(&commits[i]))
			if i == 0 {
				first = s
			}
		}
		if first == nil || first.Commit.Revision != revision {
			return nil, &memory.Error{Reason: memory.ReasonInternal, Message: "watch: the log of " + key.String() + " has a gap"}
		}
		return first, nil
	})
	select {
	case r := <-got:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*Shared), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
