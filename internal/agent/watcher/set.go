package watcher

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Options are the times of a Set; a zero field takes its default.
type Options struct {
	// Quiet is how long nothing must happen before a signal; 300 ms (SPEC 3.2).
	Quiet time.Duration
	// Ceiling bounds how long a signal waits while things go on happening; 2 s (SPEC 3.2).
	Ceiling time.Duration
	// FullScan is how often a signal is given without cause, watches are checked
	// and a polled root tries for events again; 5 min (SPEC 3.2).
	FullScan time.Duration
	// Poll is how often a root without events is walked; 5 s.
	Poll time.Duration
	// RootCheck is how often a root is looked at for having vanished, come back or
	// been replaced, which no event tells reliably (a mount, a link that points
	// elsewhere); 2 s.
	RootCheck time.Duration
	// AlwaysPoll asks for no events at all.
	AlwaysPoll bool
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&o.Quiet, 300*time.Millisecond)
	def(&o.Ceiling, 2*time.Second)
	def(&o.FullScan, 5*time.Minute)
	def(&o.Poll, 5*time.Second)
	def(&o.RootCheck, 2*time.Second)
	return o
}

// ErrClosed is returned by Watch after Close.
var ErrClosed = errors.New("watcher: closed")

// notifier is what a Set needs of the operating system.
type notifier interface {
	Add(dir string) error
	Remove(dir string) error
	Events() <-chan fsnotify.Event
	Errors() <-chan error
	Close() error
}

type osNotifier struct{ *fsnotify.Watcher }

func (n osNotifier) Events() <-chan fsnotify.Event { return n.Watcher.Events }
func (n osNotifier) Errors() <-chan error          { return n.Watcher.Errors }

func openOSNotifier() (notifier, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	return osNotifier{w}, nil
}

// Set watches any number of roots. Its methods are safe for concurrent use.
type Set struct {
	opts   Options
	open   func() (notifier, error)
	silent func(dir string) string // why dir's file system sends no events, or ""

	start  time.Time       // see next
	ctx    context.Context // ends every goroutine of the set
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex // guards what follows
	n      notifier   // opened with the first root that needs it
	dirs   map[string]*Watch
	roots  map[*Watch]struct{}
	closed bool
}

// New returns an empty Set. Close ends it.
func New(opts Options) *Set {
	ctx, cancel := context.WithCancel(context.Background())
	return &Set{
		opts: opts.withDefaults(), open: openOSNotifier, silent: silentFileSystem,
		start: time.Now(), ctx: ctx, cancel: cancel,
		dirs: make(map[string]*Watch), roots: make(map[*Watch]struct{}),
	}
}

// Watch begins to watch the tree below root, which may be a link and need not exist
// yet. It never blocks on the root; the first signal comes as soon as the watches
// stand, so that a reader who scans on every signal misses nothing.
func (s *Set) Watch(root string) (*Watch, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", root, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	w := newWatch(s, abs)
	s.roots[w] = struct{}{}
	s.wg.Go(w.run)
	return w, nil
}

// Close ends all watches and waits for their goroutines.
func (s *Set) Close() error {
	s.mu.Lock()
	s.closed = true
	n := s.n
	s.n = nil
	s.mu.Unlock()
	s.cancel()
	var err error
	if n != nil {
		err = n.Close()
	}
	s.wg.Wait()
	return err
}

// notifier returns the shared connection to the event queue.
func (s *Set) notifier() (notifier, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if s.n == nil {
		n, err := s.open()
		if err != nil {
			return nil, err
		}
		s.n = n
		s.wg.Go(func() { s.dispatch(n) })
	}
	return s.n, nil
}

// next returns the first time after now that is a multiple of every from the start of
// the set. What all roots do regularly they do together: waking the process costs far
// more than a stat.
func (s *Set) next(now time.Time, every time.Duration) time.Time {
	return s.start.Add((now.Sub(s.start)/every + 1) * every)
}

// claim routes events of dir to w. It comes before the watch is added, so that no
// event finds nobody.
func (s *Set) claim(dir string, w *Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirs[dir] = w
}

// unclaim drops the watch on dir, if it is w's.
func (s *Set) unclaim(dir string, w *Watch) {
	s.mu.Lock()
	n, mine := s.n, s.dirs[dir] == w
	if mine {
		delete(s.dirs, dir)
	}
	s.mu.Unlock()
	if mine && n != nil {
		// The kernel has usually dropped it before us; then there is nothing to do.
		_ = n.Remove(dir)
	}
}
