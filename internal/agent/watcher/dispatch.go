package watcher

import (
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// ignoreFile is the one hidden name whose change matters: it decides what a scan
// sees (SPEC 13.18).
const ignoreFile = ".memsyncignore"

// dispatch hands events to the roots they belong to. It never waits for a root, so
// that the kernel's queue is drained whatever a reader does.
func (s *Set) dispatch(n notifier) {
	events, errs := n.Events(), n.Errors()
	for events != nil || errs != nil {
		select {
		case ev, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			s.route(ev)
		case _, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			// An overflow or any other trouble: events of any root may be lost.
			s.doubt()
		}
	}
}

// doubt makes every root check all its watches and look again.
func (s *Set) doubt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.roots {
		w.note(hints{dirty: true, rewalk: true})
	}
}

func (s *Set) route(ev fsnotify.Event) {
	name := filepath.Clean(ev.Name)
	s.mu.Lock()
	w, isDir := s.dirs[name]
	if !isDir {
		w = s.dirs[filepath.Dir(name)]
	}
	s.mu.Unlock()
	if w == nil {
		return
	}
	if h := hintsOf(name, ev.Op, isDir); h.any() {
		w.note(h)
	}
}

// hintsOf judges one event. isDir says that name is a directory we watch.
func hintsOf(name string, op fsnotify.Op, isDir bool) hints {
	base := filepath.Base(name)
	gone := op.Has(fsnotify.Remove) || op.Has(fsnotify.Rename)
	switch {
	case isDir && gone:
		return hints{dirty: true, gone: []string{name}}
	case isDir:
		return hints{dirty: true, appeared: []string{name}}
	case base == ignoreFile:
		return hints{dirty: true}
	case isNoise(base):
		return hints{}
	case strings.HasSuffix(base, ".md"):
		h := hints{dirty: true}
		if op.Has(fsnotify.Create) {
			h.appeared = []string{name} // directories may be called x.md
		}
		return h
	case gone:
		// It may have been a directory whose watch was not added in time.
		return hints{dirty: true}
	case op.Has(fsnotify.Create), op.Has(fsnotify.Chmod):
		// A new directory, or one that has become readable; if it is a file, it
		// is not ours and wakes nobody.
		return hints{appeared: []string{name}}
	}
	return hints{}
}

// isNoise reports names that no scan looks at: hidden ones, and what editors leave
// beside the file they save.
func isNoise(base string) bool {
	return strings.HasPrefix(base, ".") || strings.HasSuffix(base, "~") ||
		strings.HasPrefix(base, "#") && strings.HasSuffix(base, "#") || base == "4913"
}
