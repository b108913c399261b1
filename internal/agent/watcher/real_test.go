package watcher

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// fast are times for tests on the real file system.
func fast() Options {
	return Options{Quiet: 20 * time.Millisecond, Ceiling: 200 * time.Millisecond, RootCheck: 50 * time.Millisecond, Poll: 50 * time.Millisecond}
}

// start watches root for real and takes the first signal.
func start(t *testing.T, root string, opts Options) *Watch {
	t.Helper()
	s := New(opts)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	w, err := s.Watch(root)
	if err != nil {
		t.Fatal(err)
	}
	await(t, w, "the start")
	return w
}

// patience is how long a test waits for what has to come, on however busy a machine.
const patience = time.Minute

// await fails unless a signal comes.
func await(t *testing.T, w *Watch, what string) {
	t.Helper()
	select {
	case <-w.C():
	case <-time.After(patience):
		t.Fatalf("no signal after %s; mode %v", what, w.Mode())
	}
}

// converge waits, on signals alone, until the reader's look satisfies ok.
func converge(t *testing.T, w *Watch, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-w.C():
		case <-deadline:
			t.Fatalf("%s: the signals ended before the reader had seen everything; mode %v", what, w.Mode())
		}
	}
}

// seen reports, like a scan, whether path now holds text.
func seen(path, text string) func() bool {
	return func() bool {
		got, err := os.ReadFile(path)
		return err == nil && string(got) == text
	}
}

// A look after each signal must show each save: W1, W2, W3.
func TestEditorSaves(t *testing.T) {
	t.Parallel()
	saves := map[string]func(t *testing.T, dir, text string){
		"in place": func(t *testing.T, dir, text string) { write(t, filepath.Join(dir, "a.md"), text) },
		"vim": func(t *testing.T, dir, text string) {
			probe := filepath.Join(dir, "4913")
			write(t, probe, "")
			must(t, os.Remove(probe))
			write(t, filepath.Join(dir, ".a.md.swp"), "swap")
			_ = os.Rename(filepath.Join(dir, "a.md"), filepath.Join(dir, "a.md~"))
			write(t, filepath.Join(dir, "a.md"), text)
			_ = os.Remove(filepath.Join(dir, "a.md~"))
			must(t, os.Remove(filepath.Join(dir, ".a.md.swp")))
		},
		"rename": func(t *testing.T, dir, text string) { // VS Code's atomic save, sed -i
			write(t, filepath.Join(dir, "sedXyZ12"), text)
			must(t, os.Rename(filepath.Join(dir, "sedXyZ12"), filepath.Join(dir, "a.md")))
		},
	}
	for name, save := range saves {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := realDir(t)
			w := start(t, dir, fast())
			for i := range 50 {
				text := fmt.Sprint("revision ", i)
				save(t, dir, text)
				// The signal must come after the save, not only some signal.
				await(t, w, text)
				if !seen(filepath.Join(dir, "a.md"), text)() {
					converge(t, w, text, seen(filepath.Join(dir, "a.md"), text))
				}
				drain(w, 30*time.Millisecond)
			}
		})
	}
}

// drain takes signals until none comes for d.
func drain(w *Watch, d time.Duration) {
	for {
		select {
		case <-w.C():
		case <-time.After(d):
			return
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// W5: mkdir -p with a file at once, and later changes deep inside.
func TestNewTreeAtOnce(t *testing.T) {
	t.Parallel()
	root := realDir(t)
	w := start(t, root, fast())
	for i := range 15 {
		dir := filepath.Join(root, fmt.Sprint("t", i), "a", "b", "c.md") // a directory may look like a file
		mkdir(t, dir)
		write(t, filepath.Join(dir, "x.md"), "one")
		await(t, w, "mkdir -p")
		drain(w, 50*time.Millisecond)
		write(t, filepath.Join(dir, "x.md"), "two")
		await(t, w, "a change in a directory made in one go")
		drain(w, 50*time.Millisecond)
	}
}

// W6: nested directories appear while the first is being added.
func TestNestedBurst(t *testing.T) {
	t.Parallel()
	root := realDir(t)
	w := start(t, root, fast())
	dir := root
	var files []string
	for i := range 40 {
		dir = filepath.Join(dir, fmt.Sprint(i))
		must(t, os.Mkdir(dir, 0o755))
		file := filepath.Join(dir, "x.md")
		write(t, file, "one")
		files = append(files, file)
	}
	await(t, w, "the burst")
	drain(w, 250*time.Millisecond)
	for _, file := range files {
		write(t, file, "two")
		await(t, w, file)
		drain(w, 30*time.Millisecond)
	}
}

// A directory moved within the tree is watched under its new name, also inside, and
// a new one under the old name takes nothing from it.
func TestMovedDirectory(t *testing.T) {
	t.Parallel()
	root := realDir(t)
	mkdir(t, filepath.Join(root, "a", "sub"))
	w := start(t, root, fast())
	must(t, os.Rename(filepath.Join(root, "a"), filepath.Join(root, "b")))
	mkdir(t, filepath.Join(root, "a", "sub"))
	await(t, w, "the move")
	drain(w, 250*time.Millisecond)
	for _, file := range []string{"a/x.md", "b/x.md", "a/sub/x.md", "b/sub/x.md"} {
		write(t, filepath.Join(root, file), "x")
		await(t, w, file)
		drain(w, 50*time.Millisecond)
	}
}

// W4: 40,000 events while the reader is stopped.
func TestStoppedReaderConverges(t *testing.T) {
	t.Parallel()
	root := realDir(t)
	w := start(t, root, fast())
	for i := range 10_000 { // each: create, write, rename away, rename to
		name := filepath.Join(root, fmt.Sprintf("%d.md", i))
		write(t, name, "x")
		must(t, os.Rename(name, filepath.Join(root, fmt.Sprintf("moved-%d.md", i))))
	}
	last := filepath.Join(root, "last.md")
	write(t, last, "last")
	await(t, w, "the storm") // one signal was kept
	converge(t, w, "the storm", seen(last, "last"))
	drain(w, 300*time.Millisecond)
	write(t, last, "after")
	await(t, w, "a change after the storm")
}

// D2 and 3.2: the root vanishes, comes back, is replaced.
func TestRootVanishesAndReturns(t *testing.T) {
	t.Parallel()
	parent := realDir(t)
	root := filepath.Join(parent, "team")
	w := start(t, root, fast())
	if m := w.Mode(); m.How != Missing {
		t.Fatalf("mode %v before the root exists", m)
	}
	for range 3 {
		mkdir(t, root)
		await(t, w, "the root came")
		converge(t, w, "events", func() bool { return w.Mode().How == Events })
		drain(w, 100*time.Millisecond)
		write(t, filepath.Join(root, "a.md"), "x")
		await(t, w, "a file in the root that came")
		drain(w, 100*time.Millisecond)
		must(t, os.RemoveAll(root))
		await(t, w, "the root went")
		converge(t, w, "missing", func() bool { return w.Mode().How == Missing })
		drain(w, 100*time.Millisecond)
	}
}

func TestRootReplacedByRename(t *testing.T) {
	t.Parallel()
	parent := realDir(t)
	root, other := filepath.Join(parent, "team"), filepath.Join(parent, "other")
	mkdir(t, root)
	mkdir(t, other)
	w := start(t, root, fast())
	must(t, os.Rename(root, filepath.Join(parent, "old")))
	must(t, os.Rename(other, root))
	await(t, w, "the root was replaced")
	drain(w, 200*time.Millisecond)
	write(t, filepath.Join(root, "a.md"), "x")
	await(t, w, "a file in the new root")
}

func TestRootIsALink(t *testing.T) {
	t.Parallel()
	parent := realDir(t)
	one, two, root := filepath.Join(parent, "one"), filepath.Join(parent, "two"), filepath.Join(parent, "team")
	mkdir(t, one)
	mkdir(t, two)
	must(t, os.Symlink(one, root))
	w := start(t, root, fast())
	write(t, filepath.Join(one, "a.md"), "x")
	await(t, w, "a file behind the link")
	drain(w, 100*time.Millisecond)
	must(t, os.Remove(root))
	must(t, os.Symlink(two, root))
	await(t, w, "the link points elsewhere")
	drain(w, 200*time.Millisecond)
	write(t, filepath.Join(two, "a.md"), "x")
	await(t, w, "a file behind the new target")
}

// W7: a file removed while it is open is seen.
func TestRemoveWhileOpen(t *testing.T) {
	t.Parallel()
	root := realDir(t)
	path := filepath.Join(root, "a.md")
	write(t, path, "x")
	w := start(t, root, fast())
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	must(t, os.Remove(path))
	await(t, w, "a remove with an open handle")
}

func TestPollingSeesWhatEventsSee(t *testing.T) {
	t.Parallel()
	root := realDir(t)
	opts := fast()
	opts.AlwaysPoll = true
	w := start(t, root, opts)
	drain(w, 100*time.Millisecond)
	path := filepath.Join(root, "a", "b", "x.md")
	mkdir(t, filepath.Dir(path))
	write(t, path, "one")
	await(t, w, "a new tree")
	drain(w, 150*time.Millisecond)
	fi, err := os.Stat(path)
	must(t, err)
	write(t, path, "two")
	must(t, os.Chtimes(path, fi.ModTime(), fi.ModTime())) // same size, same mtime
	await(t, w, "a change that only ctime tells")
	drain(w, 150*time.Millisecond)
	must(t, os.RemoveAll(filepath.Join(root, "a")))
	await(t, w, "a removed tree")
}

// One connection and one goroutine a root, and nothing left at the end.
func TestGoroutinesAreFewAndEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	s := New(fast())
	var ws []*Watch
	for range 20 {
		w, err := s.Watch(realDir(t))
		must(t, err)
		ws = append(ws, w)
		await(t, w, "the start")
	}
	if n := runtime.NumGoroutine() - before; n > 23 {
		t.Errorf("%d goroutines for 20 roots", n)
	}
	must(t, ws[0].Close())
	must(t, ws[0].Close())
	must(t, s.Close())
	must(t, s.Close())
	if _, err := s.Watch("x"); err == nil {
		t.Error("Watch after Close succeeded")
	}
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines left of %d", runtime.NumGoroutine(), before)
		}
	}
}
