package watcher

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Watch is one watched root.
type Watch struct {
	set  *Set
	root string // absolute, as asked for; may be a link
	c    chan struct{}
	wake chan struct{}

	ctx    context.Context // ends the goroutine
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex // guards pending and mode
	pending hints
	mode    Mode

	// What follows belongs to the goroutine.
	deb                           debounce
	nextCheck, nextFull, nextPoll time.Time
	real                          string      // where root leads
	info                          fs.FileInfo // what is there; nil while missing
	dirs                          map[string]struct{}
	rewalk                        bool
	prints                        printer
	lastPrint                     uint64
}

func newWatch(s *Set, root string) *Watch {
	ctx, cancel := context.WithCancel(s.ctx)
	return &Watch{
		set: s, root: root,
		c: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		ctx: ctx, cancel: cancel, done: make(chan struct{}),
		mode:   Mode{How: Starting},
		deb:    debounce{quiet: s.opts.Quiet, ceiling: s.opts.Ceiling},
		dirs:   make(map[string]struct{}),
		prints: newPrinter(),
	}
}

// C is ready when the tree must be looked at again. It holds at most one signal:
// whatever happens while the reader is busy is one more look. It is never closed.
func (w *Watch) C() <-chan struct{} { return w.c }

// Mode says how the root is watched at present.
func (w *Watch) Mode() Mode {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mode
}

// Close ends the watch and waits for its goroutine. Closing twice is harmless.
func (w *Watch) Close() error {
	w.cancel()
	<-w.done
	return nil
}

func (w *Watch) setMode(m Mode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mode = m
}

// note adds hints and wakes the goroutine; it never blocks.
func (w *Watch) note(h hints) {
	w.mu.Lock()
	w.pending.merge(h)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Watch) signal() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}

func (w *Watch) run() {
	defer close(w.done)
	defer func() {
		w.detach()
		w.set.mu.Lock()
		delete(w.set.roots, w)
		w.set.mu.Unlock()
	}()
	now := time.Now()
	w.attach(now)
	w.nextCheck, w.nextFull = w.set.next(now, w.set.opts.RootCheck), now.Add(w.set.opts.FullScan)
	w.signal()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(w.nextTime()))
		select {
		case <-w.ctx.Done():
			return
		case <-w.wake:
			w.absorb(time.Now())
		case <-timer.C:
		}
		w.tick(time.Now())
	}
}

// nextTime returns when something must be done even if nothing happens.
func (w *Watch) nextTime() time.Time {
	next := w.nextCheck
	earlier := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	earlier(w.nextFull)
	if !w.nextPoll.IsZero() {
		earlier(w.nextPoll)
	}
	if due, ok := w.deb.due(); ok {
		earlier(due)
	}
	return next
}

// absorb brings the watches up to date with the hints: first what is gone, then
// what appeared, since a directory may have been replaced under its name.
func (w *Watch) absorb(now time.Time) {
	w.mu.Lock()
	h := w.pending
	w.pending = hints{}
	w.mu.Unlock()

	dirty := h.dirty
	w.rewalk = w.rewalk || h.rewalk
	for _, name := range h.gone {
		if name == w.real {
			w.attach(now)
			continue
		}
		w.dropTree(name)
		// A moved directory takes the watches inside it to its new name, where
		// they are known by the old one. Only a walk puts that right.
		w.rewalk = true
	}
	if w.info != nil && w.watching() {
		for _, name := range append(h.gone, h.appeared...) {
			if fi, err := os.Lstat(name); err == nil && fi.IsDir() {
				dirty = true
				if err := w.watchTree(name); err != nil {
					w.poll(now, reasonOf(err))
				}
			}
		}
	}
	if dirty {
		w.deb.hit(now)
	}
}

func (w *Watch) tick(now time.Time) {
	if !now.Before(w.nextCheck) {
		w.nextCheck = w.set.next(now, w.set.opts.RootCheck)
		if w.rootChanged() {
			w.attach(now)
			w.deb.hit(now)
		}
	}
	if !now.Before(w.nextFull) {
		w.nextFull = now.Add(w.set.opts.FullScan)
		if w.watching() {
			w.rewalk = true
		} else {
			w.attach(now) // the limit may have been lifted
		}
		w.deb.first, w.deb.last = now.Add(-w.deb.ceiling), now
	}
	if !w.nextPoll.IsZero() && !now.Before(w.nextPoll) {
		w.nextPoll = w.set.next(now, w.set.opts.Poll)
		if p := w.prints.tree(w.real); p != w.lastPrint {
			w.lastPrint = p
			w.deb.hit(now)
		}
	}
	if due, ok := w.deb.due(); ok && !now.Before(due) {
		w.deb.reset()
		if w.rewalk && w.watching() {
			w.rewalk = false
			// Before the signal: what the scan does not see must find a watch.
			if err := w.watchTree(w.real); err != nil {
				w.poll(now, reasonOf(err))
			}
		}
		w.signal()
	}
}

func (w *Watch) watching() bool { return w.Mode().How == Events }

// rootChanged reports whether root leads to another directory than the one watched.
func (w *Watch) rootChanged() bool {
	fi, err := os.Stat(w.root)
	if err != nil || !fi.IsDir() {
		return w.info != nil
	}
	return w.info == nil || !os.SameFile(fi, w.info)
}

// attach starts over: it finds out where root leads and watches that, by events if
// possible.
func (w *Watch) attach(now time.Time) {
	w.detach()
	real, err := filepath.EvalSymlinks(w.root)
	var fi fs.FileInfo
	if err == nil {
		fi, err = os.Stat(real)
	}
	if err == nil && !fi.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		w.setMode(Mode{Missing, missingReason(err)})
		return
	}
	w.real, w.info = real, fi
	if w.set.opts.AlwaysPoll {
		w.poll(now, "asked for by configuration")
		return
	}
	if why := w.set.silent(real); why != "" {
		w.poll(now, why)
		return
	}
	if err := w.watchTree(real); err != nil {
		w.poll(now, reasonOf(err))
		return
	}
	w.setMode(Mode{How: Events})
}

func (w *Watch) detach() {
	for dir := range w.dirs {
		w.set.unclaim(dir, w)
	}
	clear(w.dirs)
	w.real, w.info, w.nextPoll, w.rewalk = "", nil, time.Time{}, false
}

// poll falls back to walking the tree by stat every Options.Poll.
func (w *Watch) poll(now time.Time, why string) {
	for dir := range w.dirs {
		w.set.unclaim(dir, w)
	}
	clear(w.dirs)
	w.rewalk = false
	w.setMode(Mode{Polling, why})
	// The signal that follows every change of mode covers what this print holds.
	w.lastPrint = w.prints.tree(w.real)
	w.deb.hit(now)
	w.nextPoll = w.set.next(now, w.set.opts.Poll)
}

// watchTree watches dir and all directories below it. Each watch is added before
// the directory is listed: what comes later has an event, what came before is
// listed. Directories that cannot be read or are gone again are left out, the scan
// will say so; any other error means that events cannot be relied on.
func (w *Watch) watchTree(dir string) error {
	n, err := w.set.notifier()
	if err != nil {
		return err
	}
	for todo := []string{dir}; len(todo) > 0; {
		d := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		w.set.claim(d, w)
		w.dirs[d] = struct{}{}
		if err := n.Add(d); err != nil {
			w.set.unclaim(d, w)
			delete(w.dirs, d)
			if d != w.real && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
				continue
			}
			return fmt.Errorf("watch %s: %w", d, err)
		}
		entries, err := readDir(d)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() && !isNoise(e.Name()) {
				todo = append(todo, filepath.Join(d, e.Name()))
			}
		}
	}
	return nil
}

// dropTree forgets the watches on dir and below it.
func (w *Watch) dropTree(dir string) {
	for d := range w.dirs {
		if d == dir || strings.HasPrefix(d, dir+string(filepath.Separator)) {
			w.set.unclaim(d, w)
			delete(w.dirs, d)
		}
	}
}

// readDir lists dir unsorted.
func readDir(dir string) ([]fs.DirEntry, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}
