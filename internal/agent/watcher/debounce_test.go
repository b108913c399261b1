package watcher

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

func TestSignalComesAfterQuiet(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, n *fakeNotifier, w *Watch, root string) {
		n.events <- fsnotify.Event{Name: filepath.Join(root, "a.md"), Op: fsnotify.Write}
		after(299 * time.Millisecond)
		if signalled(w) {
			t.Fatal("signalled before 300 ms of quiet")
		}
		after(2 * time.Millisecond)
		if !signalled(w) {
			t.Fatal("not signalled after 300 ms of quiet")
		}
		after(10 * time.Second)
		if signalled(w) {
			t.Fatal("signalled twice for one event")
		}
	})
}

// W11: a file that changes every 100 ms for a minute must not starve.
func TestCeilingEndsStarvation(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, n *fakeNotifier, w *Watch, root string) {
		last, worst, count := time.Now(), time.Duration(0), 0
		for range 600 {
			n.events <- fsnotify.Event{Name: filepath.Join(root, "a.md"), Op: fsnotify.Write}
			after(100 * time.Millisecond)
			if signalled(w) {
				worst, last = max(worst, time.Since(last)), time.Now()
				count++
			}
		}
		if worst > 2200*time.Millisecond || count < 25 {
			t.Fatalf("%d signals, longest gap %v; want one at least every 2 s", count, worst)
		}
	})
}

// W7: chmod storms, and a burst of whatever size, are few signals.
func TestStormsDoNotSpin(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, n *fakeNotifier, w *Watch, root string) {
		count := 0
		for range 10_000 {
			n.events <- fsnotify.Event{Name: filepath.Join(root, "a.md"), Op: fsnotify.Chmod}
			after(time.Millisecond)
			if signalled(w) {
				count++
			}
		}
		if count > 5 {
			t.Fatalf("%d signals for 10 s of chmods, want one every 2 s", count)
		}
	})
}

func TestNoiseIsIgnored(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, n *fakeNotifier, w *Watch, root string) {
		for _, name := range []string{".a.md.swp", "4913", "a.md~", "#a.md#", ".#a.md", ".msync-0011.tmp", "image.png", "a.txt"} {
			for _, op := range []fsnotify.Op{fsnotify.Create, fsnotify.Write, fsnotify.Chmod} {
				n.events <- fsnotify.Event{Name: filepath.Join(root, name), Op: op}
			}
		}
		after(5 * time.Second)
		if signalled(w) {
			t.Fatal("names that no scan looks at gave a signal")
		}
		for _, ev := range []fsnotify.Event{
			{Name: filepath.Join(root, ".memsyncignore"), Op: fsnotify.Write},
			{Name: filepath.Join(root, "a.md"), Op: fsnotify.Remove},
			{Name: filepath.Join(root, "dir"), Op: fsnotify.Rename},
		} {
			n.events <- ev
			after(time.Second)
			if !signalled(w) {
				t.Errorf("%v gave no signal", ev)
			}
		}
	})
}

// W4: an overflow makes every root look again and check its watches.
func TestOverflowRewalks(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, n *fakeNotifier, w *Watch, root string) {
		sub := filepath.Join(root, "sub")
		mkdir(t, sub) // its event was lost
		n.errs <- fsnotify.ErrEventOverflow
		after(time.Second)
		if !signalled(w) {
			t.Fatal("an overflow gave no signal")
		}
		if n.count(sub) == 0 {
			t.Fatal("a directory made during the overflow is not watched")
		}
	})
}

func TestFullScanWithoutCause(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, n *fakeNotifier, w *Watch, root string) {
		after(5*time.Minute - time.Second)
		if signalled(w) {
			t.Fatal("signalled without cause")
		}
		after(2 * time.Second)
		if !signalled(w) {
			t.Fatal("no signal after 5 minutes")
		}
	})
}

// W8: the limit is reached, polling takes over, and events come back when they can.
func TestExhaustedLimitFallsBackToPolling(t *testing.T) {
	root := realDir(t)
	synctest.Test(t, func(t *testing.T) {
		n := newFake()
		n.addErr = syscall.ENOSPC
		s := New(Options{})
		s.open = func() (notifier, error) { return n, nil }
		s.silent = func(string) string { return "" }
		defer s.Close()
		w, err := s.Watch(root)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if m := w.Mode(); m.How != Polling || m.Reason != "the limit of inotify watches is reached; raise fs.inotify.max_user_watches" {
			t.Fatalf("mode %v", m)
		}
		after(time.Second)
		for signalled(w) {
		}
		after(time.Minute)
		if signalled(w) {
			t.Fatal("polling signals though nothing changed")
		}
		write(t, filepath.Join(root, "a.md"), "x")
		after(6 * time.Second)
		if !signalled(w) {
			t.Fatal("polling missed a new file")
		}
		n.setErr(nil)
		after(5 * time.Minute)
		if m := w.Mode(); m.How != Events {
			t.Fatalf("mode %v after the limit was lifted", m)
		}
	})
}

// The limit may also be reached later, by a directory in the middle of the work.
func TestLimitReachedByNewDirectory(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, n *fakeNotifier, w *Watch, root string) {
		n.setErr(syscall.ENOSPC)
		sub := filepath.Join(root, "sub")
		mkdir(t, sub)
		n.events <- fsnotify.Event{Name: sub, Op: fsnotify.Create}
		after(time.Second)
		if m := w.Mode(); m.How != Polling {
			t.Fatalf("mode %v", m)
		}
		if !signalled(w) {
			t.Fatal("no signal at the change of mode")
		}
		write(t, filepath.Join(sub, "a.md"), "x")
		after(6 * time.Second)
		if !signalled(w) {
			t.Fatal("polling missed a file in the new directory")
		}
	})
}

func TestNoInstanceAndSilentFileSystem(t *testing.T) {
	root := realDir(t)
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		s.open = func() (notifier, error) { return nil, syscall.EMFILE }
		silent := ""
		s.silent = func(string) string { return silent }
		defer s.Close()
		w, _ := s.Watch(root)
		synctest.Wait()
		if m := w.Mode(); m.How != Polling {
			t.Fatalf("mode %v without an inotify instance", m)
		}
		silent = "the file system is NFS"
		v, _ := s.Watch(root)
		synctest.Wait()
		if m := v.Mode(); m != (Mode{Polling, silent}) {
			t.Fatalf("mode %v on a file system without events", m)
		}
	})
}

// A moved directory takes its watches along under the old names, and the event of its
// new name may find them still there. So whatever went away, all watches are checked
// before the next look, and the old names are given up.
func TestMovedDirectoryIsWatchedAnew(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, n *fakeNotifier, w *Watch, root string) {
		a, b := filepath.Join(root, "a"), filepath.Join(root, "b")
		mkdir(t, filepath.Join(a, "sub"))
		n.events <- fsnotify.Event{Name: a, Op: fsnotify.Create}
		after(time.Second)
		if n.count(a) == 0 || n.count(filepath.Join(a, "sub")) == 0 || !signalled(w) {
			t.Fatal("a new tree is not watched")
		}
		if err := os.Rename(a, b); err != nil {
			t.Fatal(err)
		}
		n.events <- fsnotify.Event{Name: a, Op: fsnotify.Rename}
		after(time.Second)
		if !signalled(w) {
			t.Fatal("no signal after the move")
		}
		for dir, want := range map[string]bool{a: false, filepath.Join(a, "sub"): false, b: true, filepath.Join(b, "sub"): true} {
			if got := n.count(dir) > 0; got != want {
				t.Errorf("%s: watched %v, want %v", dir, got, want)
			}
		}
	})
}
