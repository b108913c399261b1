package watcher

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// fakeNotifier lets a test say what the operating system says.
type fakeNotifier struct {
	events chan fsnotify.Event
	errs   chan error

	mu     sync.Mutex
	added  map[string]int
	addErr error
}

func newFake() *fakeNotifier {
	return &fakeNotifier{events: make(chan fsnotify.Event), errs: make(chan error), added: map[string]int{}}
}

func (f *fakeNotifier) Add(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.addErr != nil {
		return &fs.PathError{Op: "inotify_add_watch", Path: dir, Err: f.addErr}
	}
	f.added[dir]++
	return nil
}

func (f *fakeNotifier) Remove(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.added, dir)
	return nil
}

func (f *fakeNotifier) setErr(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addErr = err
}

func (f *fakeNotifier) count(dir string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.added[dir]
}

func (f *fakeNotifier) Events() <-chan fsnotify.Event { return f.events }
func (f *fakeNotifier) Errors() <-chan error          { return f.errs }
func (f *fakeNotifier) Close() error {
	close(f.events)
	close(f.errs)
	return nil
}

// bubble runs f in fake time with a Set on a fake notifier and one watched root,
// its first signal taken.
func bubble(t *testing.T, opts Options, f func(t *testing.T, n *fakeNotifier, w *Watch, root string)) {
	t.Helper()
	root := realDir(t)
	synctest.Test(t, func(t *testing.T) {
		n := newFake()
		s := New(opts)
		s.open = func() (notifier, error) { return n, nil }
		s.silent = func(string) string { return "" }
		defer s.Close()
		w, err := s.Watch(root)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !signalled(w) {
			t.Fatal("no signal at the start; a reader would not scan")
		}
		f(t, n, w, root)
	})
}

func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func signalled(w *Watch) bool {
	select {
	case <-w.C():
		return true
	default:
		return false
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// after lets fake time pass.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
