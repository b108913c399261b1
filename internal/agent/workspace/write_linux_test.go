//go:build linux

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

func TestWriteNewChangedEqual(t *testing.T) {
	w := open(t)
	scanOf(t, w)
	ctx := t.Context()
	must(t, w.Write(ctx, "a/b/c.md", []byte("one"), authored, ""))
	path := filepath.Join(w.dir, "a", "b", "c.md")
	fi, err := os.Stat(path)
	must(t, err)
	if !fi.ModTime().Equal(authored) {
		t.Errorf("mtime %v", fi.ModTime())
	}
	// Not the expected one: nothing changes.
	for _, expect := range []memory.ETag{"", etag("other")} {
		if err := w.Write(ctx, "a/b/c.md", []byte("two"), authored, expect); !errors.Is(err, syncer.ErrLocalChanged) {
			t.Errorf("expecting %.8q: %v", expect, err)
		}
	}
	if err := w.Write(ctx, "absent.md", []byte("two"), authored, etag("one")); !errors.Is(err, syncer.ErrLocalChanged) {
		t.Errorf("an absent file: %v", err)
	}
	if err := w.Write(ctx, "no/dir/absent.md", []byte("two"), authored, etag("one")); !errors.Is(err, syncer.ErrLocalChanged) || exists(t, filepath.Join(w.dir, "no")) {
		t.Errorf("an absent directory: %v", err)
	}
	must(t, w.Write(ctx, "a/b/c.md", []byte("two"), time.Time{}, etag("one")))
	// Already there: a success whatever was expected, with the author's time.
	must(t, w.Write(ctx, "a/b/c.md", []byte("two"), authored.Add(time.Hour), etag("else")))
	if fi, err = os.Stat(path); err != nil || !fi.ModTime().Equal(authored.Add(time.Hour)) {
		t.Errorf("%v, %v", fi.ModTime(), err)
	}
	if diff := cmp.Diff(map[string]string{".": "dir", "a": "dir", "a/b": "dir", "a/b/c.md": "text two"}, tree(t, w.dir)); diff != "" {
		t.Error(diff)
	}
}

func TestWriteKeepsTheMode(t *testing.T) {
	w := open(t)
	path := filepath.Join(w.dir, "a.md")
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o444, 0o666} {
		putFile(t, path, "one")
		must(t, os.Chmod(path, mode))
		must(t, w.Write(t.Context(), "a.md", []byte("two"), authored, etag("one")))
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != mode {
			t.Errorf("mode %v became %v, %v", mode, fi.Mode().Perm(), err)
		}
		must(t, os.Remove(path))
	}
}

func TestRemove(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	put(t, w, "a/b/c.md", "one")
	put(t, w, "a/keep.md", "x")
	scanOf(t, w)
	if err := w.Remove(ctx, "a/b/c.md", etag("two")); !errors.Is(err, syncer.ErrLocalChanged) {
		t.Error(err)
	}
	must(t, w.Remove(ctx, "a/b/c.md", etag("one")))
	must(t, w.Remove(ctx, "a/b/c.md", etag("one"))) // absent is a success
	if diff := cmp.Diff(map[string]string{".": "dir", "a": "dir", "a/keep.md": "text x"}, tree(t, w.dir)); diff != "" {
		t.Error(diff)
	}
	put(t, w, "d/.hidden", "mine")
	put(t, w, "d/x.md", "x")
	must(t, w.Remove(ctx, "d/x.md", etag("x")))
	if !exists(t, filepath.Join(w.dir, "d", ".hidden")) {
		t.Error("a directory with a hidden file was removed")
	}
	must(t, w.Remove(ctx, "a/keep.md", etag("x")))
	must(t, os.RemoveAll(filepath.Join(w.dir, "d")))
	if diff := cmp.Diff(map[string]string{".": "dir"}, tree(t, w.dir)); diff != "" {
		t.Errorf("the root must stay: %s", diff)
	}
}

// N1 and the port's order: a case-only rename, and files that become directories and
// back.
func TestTurnsAndRenames(t *testing.T) {
	w := open(t)
	ctx := t.Context()
	must(t, w.Write(ctx, "Note.md", []byte("n"), authored, ""))
	must(t, w.Remove(ctx, "Note.md", etag("n")))
	must(t, w.Write(ctx, "note.md", []byte("n"), authored, ""))
	must(t, w.Write(ctx, "a.md", []byte("file"), authored, ""))
	if err := w.Write(ctx, "a.md/x.md", []byte("x"), authored, ""); !errors.Is(err, syncer.ErrLocalBlocked) {
		t.Errorf("below a file: %v", err)
	}
	must(t, w.Remove(ctx, "a.md", etag("file")))
	must(t, w.Write(ctx, "a.md/x.md", []byte("x"), authored, ""))
	if err := w.Write(ctx, "a.md", []byte("file"), authored, ""); !errors.Is(err, syncer.ErrLocalBlocked) {
		t.Errorf("over a directory with a file: %v", err)
	}
	if err := w.Remove(ctx, "a.md", etag("file")); !errors.Is(err, syncer.ErrLocalBlocked) {
		t.Errorf("removing a directory: %v", err)
	}
	must(t, w.Remove(ctx, "a.md/x.md", etag("x")))
	must(t, os.MkdirAll(filepath.Join(w.dir, "a.md", "empty", "deep"), 0o755)) // only directories
	must(t, w.Write(ctx, "a.md", []byte("file"), authored, ""))
	if diff := cmp.Diff(map[string]string{"a.md": "file", "note.md": "n"}, files(t, w)); diff != "" {
		t.Error(diff)
	}
}

// S5: a hub that sends hostile paths writes nothing, anywhere.
func TestHostilePathsWriteNothing(t *testing.T) {
	w := open(t)
	scanOf(t, w)
	parent := filepath.Dir(w.dir)
	for _, p := range []memory.Path{
		"", "..", "../x.md", "a/../../x.md", "/etc/x.md", "C:x.md", `C:\x.md`, `\\host\x.md`, `a\b.md`, "%2e%2e/x.md", "%2e%2e%2fx.md",
		"a%2Fb.md", "a\x00.md", "CON.md", "nul.md", "x.md.", "x.md ", "．．/x.md", "a／b.md", ".hidden.md", ".git/x.md", "a//b.md", "./a.md",
		"x.md\n", "x", MarkerName, IgnoreName, "e\u0301.md",
	} {
		if err := w.Write(t.Context(), p, []byte("evil"), authored, ""); !errors.Is(err, memory.ErrInvalidPath) {
			t.Errorf("write %q: %v", p, err)
		}
		if err := w.Remove(t.Context(), p, etag("evil")); !errors.Is(err, memory.ErrInvalidPath) {
			t.Errorf("remove %q: %v", p, err)
		}
	}
	if diff := cmp.Diff(map[string]string{".": "dir", "team": "dir"}, tree(t, parent)); diff != "" {
		t.Error(diff)
	}
}

// C4: an edit that lands right before the replacement is never overwritten. The edit
// is made at every step of the write, by hooking the moments between them.
func TestEditRightBeforeTheReplacement(t *testing.T) {
	w := open(t)
	path := filepath.Join(w.dir, "y.md")
	for name, edit := range map[string]func(){
		"in place": func() { must(t, os.WriteFile(path, []byte("edit"), 0o644)) },
		"same size and time": func() {
			must(t, os.WriteFile(path, []byte("tsuj"), 0o644))
			must(t, os.Chtimes(path, authored, authored))
		},
		"renamed over": func() { putFile(t, path+"~", "edit"); must(t, os.Rename(path+"~", path)) },
		"removed":      func() { must(t, os.Remove(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.RemoveAll(path))
			putFile(t, path, "just")
			must(t, os.Chtimes(path, authored, authored))
			root, err := os.OpenRoot(w.dir)
			must(t, err)
			defer root.Close()
			seen, err := w.look(root, "y.md")
			must(t, err)
			tmp, err := writeTemp(root, []byte("hub's"), authored, 0o644)
			must(t, err)
			edit()
			before := tree(t, w.dir)
			if err := w.put(root, tmp, seen); !errors.Is(err, syncer.ErrLocalChanged) {
				t.Errorf("put: %v", err)
			}
			if diff := cmp.Diff(before, tree(t, w.dir)); diff != "" {
				t.Error(diff)
			}
			must(t, root.Remove(tmp))
		})
	}
	// A file that appears where none was.
	must(t, os.RemoveAll(path))
	root, err := os.OpenRoot(w.dir)
	must(t, err)
	defer root.Close()
	tmp, err := writeTemp(root, []byte("hub's"), authored, 0o644)
	must(t, err)
	putFile(t, path, "edit")
	if err := w.put(root, tmp, target{name: "y.md"}); !errors.Is(err, syncer.ErrLocalChanged) {
		t.Errorf("put: %v", err)
	}
	if got := tree(t, w.dir)["y.md"]; got != "text edit" {
		t.Errorf("the edit became %q", got)
	}
}

// C4 and C5 with real concurrency: an editor saves while the hub's texts land; every
// text of the editor is either there at the end or was replaced knowingly.
func TestNoEditIsEverLost(t *testing.T) {
	w := open(t)
	path := filepath.Join(w.dir, "y.md")
	putFile(t, path, "edit 0")
	done := make(chan int)
	var came atomic.Bool // a write came through
	go func() {
		n, pause := 0, 50*time.Microsecond
		for began := time.Now(); ; {
			n++
			// As editors do it: the whole text, then the name.
			tmp := path + ".edit"
			if os.WriteFile(tmp, fmt.Appendf(nil, "edit %d", n), 0o644) != nil || os.Rename(tmp, path) != nil {
				break
			}
			if past := time.Since(began); past > time.Minute || past > time.Second && came.Load() {
				break
			} else if past > time.Second {
				pause = min(2*pause, time.Second) // a write takes a slow disk longer than there is between edits
			}
			time.Sleep(pause)
		}
		done <- n
	}()
	seen := map[string]bool{}
	writes := 0
	for running := true; running; {
		select {
		case n := <-done:
			running = false
			last := fmt.Sprintf("edit %d", n)
			b, err := os.ReadFile(path)
			if err != nil || string(b) != last && !seen[last] {
				t.Errorf("the last edit %q was lost: the file holds %q, %v", last, b, err)
			}
		default:
			b, err := os.ReadFile(path)
			must(t, err)
			text := string(b)
			if !strings.HasPrefix(text, "edit ") && !strings.HasPrefix(text, "hub ") {
				t.Fatalf("half a file: %q", text)
			}
			err = w.Write(t.Context(), "y.md", fmt.Appendf(nil, "hub %d", writes), authored, etag(text))
			switch {
			case err == nil:
				seen[text] = true // replaced knowingly
				writes++
				came.Store(true)
			case !errors.Is(err, syncer.ErrLocalChanged):
				t.Fatal(err)
			}
		}
	}
	if writes == 0 {
		t.Error("no write came through")
	}
}

// S4: a directory is swapped for a link to the outside, over and over, while files are
// written and removed below it. Nothing outside is touched.
func TestSwappedDirectoryEscapesNothing(t *testing.T) {
	w := open(t)
	scanOf(t, w)
	parent := filepath.Dir(w.dir)
	outside := filepath.Join(parent, "outside")
	putFile(t, filepath.Join(outside, "x.md"), "outside")
	putFile(t, filepath.Join(outside, "deep", "x.md"), "outside")
	want := tree(t, outside)
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		dir, swaps := filepath.Join(w.dir, "dir"), 0
		for {
			select {
			case <-stop:
				stopped <- swaps
				return
			default:
			}
			_ = os.Mkdir(dir, 0o755)
			_ = os.Rename(dir, dir+".moved")
			_ = os.Symlink(outside, dir)
			swaps++
			_ = os.Remove(dir)
			_ = os.Rename(dir+".moved", dir)
		}
	}()
	wrote := 0
	for i := range 3000 {
		p := memory.Path([]string{"dir/x.md", "dir/deep/x.md", "dir/new.md"}[i%3])
		text := fmt.Sprint("text ", i)
		if err := w.Write(t.Context(), p, []byte(text), authored, ""); err == nil {
			wrote++
			_ = w.Remove(t.Context(), p, etag(text))
		}
		_ = w.Remove(t.Context(), p, etag("outside"))
		if b, err := w.Read(t.Context(), p); err == nil && string(b) == "outside" {
			t.Fatal("read a file outside")
		}
		if i%100 == 0 {
			s := scanOf(t, w)
			for q, f := range s.Files {
				if f.ETag == etag("outside") {
					t.Fatalf("the scan saw %s outside", q)
				}
			}
		}
	}
	close(stop)
	t.Logf("%d writes among %d swaps", wrote, <-stopped)
	if wrote == 0 {
		t.Error("no write came through; the test tests nothing")
	}
	if diff := cmp.Diff(want, tree(t, outside)); diff != "" {
		t.Errorf("outside: %s", diff)
	}
}

// What a crash leaves is cleaned up, and nothing else.
func TestLeftoverTemporaryFiles(t *testing.T) {
	w := open(t)
	old := time.Now().Add(-time.Hour)
	mine, young := "sub/.msync-0123456789abcdef.tmp", ".msync-00000000000000ff.tmp"
	others := []string{".msync-mine.tmp", ".msync-0123456789ABCDEF.tmp", ".msync-0123456789abcdef.tmp.md", ".tmp", ".hidden"}
	for _, name := range append([]string{mine, young}, others...) {
		put(t, w, name, "x")
		if name != young {
			must(t, os.Chtimes(filepath.Join(w.dir, name), old, old))
		}
	}
	scanOf(t, w)
	if !exists(t, filepath.Join(w.dir, mine)) {
		t.Fatal("the scan wrote")
	}
	must(t, w.Write(t.Context(), "a.md", []byte("x"), authored, ""))
	if exists(t, filepath.Join(w.dir, mine)) {
		t.Error("the leftover is still there")
	}
	for _, name := range append(others, young) {
		if !exists(t, filepath.Join(w.dir, name)) {
			t.Errorf("%s was removed", name)
		}
	}
}

// A failed write leaves neither a temporary file nor a directory that it made.
func TestFailedWriteLeavesNothing(t *testing.T) {
	w := open(t)
	put(t, w, "ro/keep.md", "x")
	scanOf(t, w)
	asNobody(t, w.dir, func() {
		must(t, os.Chmod(filepath.Join(w.dir, "ro"), 0o555))
		before := tree(t, w.dir)
		for _, p := range []memory.Path{"ro/x.md", "ro/sub/x.md"} {
			if err := w.Write(t.Context(), p, []byte("x"), authored, ""); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s: %v", p, err)
			}
		}
		if err := w.Remove(t.Context(), "ro/keep.md", etag("x")); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("remove: %v", err)
		}
		if diff := cmp.Diff(before, tree(t, w.dir)); diff != "" {
			t.Error(diff)
		}
		must(t, os.Chmod(filepath.Join(w.dir, "ro"), 0o755))
	})
	// The name is too long for this disk once the directories are made.
	long := memory.Path("made/for/nothing/" + strings.Repeat("é", 120) + ".md")
	if err := w.Write(t.Context(), long+"/", nil, authored, ""); !errors.Is(err, memory.ErrInvalidPath) {
		t.Error(err)
	}
	must(t, os.Mkdir(filepath.Join(w.dir, "blocked"), 0o755))
	put(t, w, "blocked/x.md/file", "in the way")
	if err := w.Write(t.Context(), "blocked/x.md", nil, authored, ""); !errors.Is(err, syncer.ErrLocalBlocked) {
		t.Error(err)
	}
	for name := range tree(t, w.dir) {
		if isTempName(filepath.Base(name)) || strings.HasPrefix(name, "made") {
			t.Errorf("%s was left", name)
		}
	}
}

func TestTempNames(t *testing.T) {
	for range 100 {
		if n := newTempName(); !isTempName(n) || !isHidden(n) || len(n) > 32 {
			t.Fatal(n)
		}
	}
}
