//go:build linux

package workspace

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

func TestScanSeesMemoriesOnly(t *testing.T) {
	w := open(t)
	want := map[string]string{"a.md": "one", "MEMORY.md": "- x", "sub/deep/b.md": "two", "项目.md": "三", "empty.md": ""}
	for name, text := range want {
		put(t, w, name, text)
	}
	for _, name := range []string{".hidden.md", ".git/x.md", "a.md~", "#a.md#", ".#b.md", ".a.md.swp", "4913", "a.md.bak", "image.png", "sub/.a.md.swo", ".msync-0123456789abcdef.tmp"} {
		put(t, w, name, "noise")
	}
	must(t, os.Symlink("nowhere@host.1:2", filepath.Join(w.dir, ".#a.md"))) // emacs's lock
	if diff := cmp.Diff(want, files(t, w)); diff != "" {
		t.Error(diff)
	}
	if s := scanOf(t, w); len(s.Refused)+len(s.Unreadable) != 0 || s.Root != syncer.RootOK {
		t.Errorf("%+v", s)
	}
}

func TestScanRefusesBadPaths(t *testing.T) {
	w := open(t)
	for _, name := range []string{"ok.md", "con/x.md", "nul.md", "tail .md/x.md", "a%2Fb.md", "bidi\u202e.md", "cd:e.md", "bad\xff.md", "back\\slash.md"} {
		put(t, w, name, "x")
	}
	put(t, w, "trail./x.md", "x")
	s := scanOf(t, w)
	if diff := cmp.Diff([]string{"ok.md", "tail .md/x.md"}, paths(s)); diff != "" {
		t.Error(diff)
	}
	want := map[string]string{
		"con/x.md": memory.RulePathReserved, "nul.md": memory.RulePathReserved, "a%2Fb.md": memory.RulePathPercent,
		`"bidi\u202e.md"`: memory.RulePathControl, "cd:e.md": memory.RulePathColon, `"bad\xff.md"`: memory.RulePathUTF8,
		"trail./x.md": memory.RulePathTrailing, `"back\\slash.md"`: memory.RulePathBackslash,
	}
	if diff := cmp.Diff(want, refusals(s)); diff != "" {
		t.Error(diff)
	}
}

// N3: the same name in NFC and NFD is one key; alone, an NFD name has the NFC key.
func TestNormalForms(t *testing.T) {
	const nfc, nfd = "caf\u00e9", "cafe\u0301"
	w := open(t)
	put(t, w, nfd+"/"+nfd+".md", "x")
	if diff := cmp.Diff(map[string]string{nfc + "/" + nfc + ".md": "x"}, files(t, w)); diff != "" {
		t.Fatal(diff)
	}
	// Writing and removing go to the names on disk, also from a fresh process.
	for _, v := range []*Workspace{w, openAt(t, w.dir)} {
		must(t, v.Write(t.Context(), nfc+"/"+nfc+".md", []byte("y"), time.Time{}, etag("x")))
		must(t, v.Write(t.Context(), nfc+"/new.md", []byte("n"), time.Time{}, ""))
		if got := tree(t, w.dir); got[nfd+"/"+nfd+".md"] != "text y" || got[nfd+"/new.md"] != "text n" || len(got) != 4 {
			t.Fatalf("%q", got)
		}
		must(t, v.Remove(t.Context(), nfc+"/new.md", etag("n")))
		must(t, v.Write(t.Context(), nfc+"/"+nfc+".md", []byte("x"), time.Time{}, etag("y")))
	}
	put(t, w, nfc+".md", "one")
	put(t, w, nfd+".md", "two")
	s := scanOf(t, w)
	if diff := cmp.Diff([]string{nfc + "/" + nfc + ".md"}, paths(s)); diff != "" {
		t.Error(diff)
	}
	if len(s.Refused) != 1 || s.Refused[0].Path != nfc+".md" || s.Refused[0].Violation.Rule != RuleTwin {
		t.Errorf("%+v", s.Refused)
	}
	must(t, os.Remove(filepath.Join(w.dir, nfc+".md")))
	if got := files(t, w)[nfc+".md"]; got != "two" {
		t.Errorf("after one twin is gone: %q", got)
	}
	must(t, w.Remove(t.Context(), nfc+"/"+nfc+".md", etag("x")))
	if exists(t, filepath.Join(w.dir, nfd)) {
		t.Error("the emptied directory is still there")
	}
}

// N2: of a collision only the newcomer is refused.
func TestCollisions(t *testing.T) {
	w := open(t)
	put(t, w, "Note.md", "old")
	put(t, w, "Test/a.md", "old")
	scanOf(t, w)
	put(t, w, "note.md", "new")
	put(t, w, "test/b.md", "new")
	for range 2 {
		s := scanOf(t, w)
		if diff := cmp.Diff([]string{"Note.md", "Test/a.md"}, paths(s)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]string{"note.md": RuleCollision, "test/b.md": RuleCollision}, refusals(s)); diff != "" {
			t.Error(diff)
		}
	}
	// A process that knows no order refuses both.
	s := scanOf(t, openAt(t, w.dir))
	if len(s.Files) != 0 || len(s.Refused) != 4 {
		t.Errorf("%v, %v", paths(s), refusals(s))
	}
	must(t, os.Remove(filepath.Join(w.dir, "Note.md")))
	must(t, os.RemoveAll(filepath.Join(w.dir, "Test")))
	if diff := cmp.Diff([]string{"note.md", "test/b.md"}, paths(scanOf(t, w))); diff != "" {
		t.Error(diff)
	}
}

// S1: links to files and directories are refused, not followed, and what lies below
// them is unknown.
func TestLinksAreRefused(t *testing.T) {
	w := open(t)
	outside := filepath.Join(filepath.Dir(w.dir), "team-evil") // S2: the prefix is the same
	putFile(t, filepath.Join(outside, "secret.md"), "secret")
	put(t, w, "a.md", "x")
	for name, to := range map[string]string{
		"file.md": filepath.Join(outside, "secret.md"), "dir": outside, "dir.md": outside, "dangling.md": "nowhere",
		"up": "..", "loop": "loop", "loop.md": "loop.md", "in.md": "a.md", "sibling": "../team-evil",
	} {
		must(t, os.Symlink(to, filepath.Join(w.dir, name)))
	}
	s := scanOf(t, w)
	if diff := cmp.Diff([]string{"a.md"}, paths(s)); diff != "" {
		t.Error(diff)
	}
	want := []string{"dangling.md", "dir", "dir.md", "file.md", "in.md", "loop", "loop.md", "sibling", "up"}
	if diff := cmp.Diff(want, unreadable(s)); diff != "" {
		t.Error(diff)
	}
	for _, name := range want {
		if rule := refusals(s)[name]; rule != RuleLink {
			t.Errorf("%s refused by %q", name, rule)
		}
	}
	for _, p := range []memory.Path{"file.md", "in.md", "dangling.md", "loop.md", "dir/x.md", "dir/secret.md", "up/x.md", "loop/x.md", "sibling/x.md", "dir.md"} {
		if b, err := w.Read(t.Context(), p); err == nil {
			t.Errorf("read %s: %q", p, b)
		}
		if err := w.Write(t.Context(), p, []byte("evil"), time.Time{}, ""); !errors.Is(err, syncer.ErrLocalBlocked) {
			t.Errorf("write %s: %v", p, err)
		}
		if err := w.Remove(t.Context(), p, etag("secret")); !errors.Is(err, syncer.ErrLocalBlocked) {
			t.Errorf("remove %s: %v", p, err)
		}
	}
	if diff := cmp.Diff(map[string]string{".": "dir", "secret.md": "text secret"}, tree(t, outside)); diff != "" {
		t.Errorf("outside: %s", diff)
	}
}

// Special files are never opened: a fifo would block for ever.
func TestSpecialFiles(t *testing.T) {
	w := open(t)
	must(t, mkfifo(filepath.Join(w.dir, "fifo.md")))
	must(t, mkfifo(filepath.Join(w.dir, ".memsyncignore-not")))
	ln, err := net.Listen("unix", filepath.Join(w.dir, "s.md"))
	if err != nil {
		t.Skipf("no socket in the test's directory: %v", err)
	}
	defer ln.Close()
	s := scanOf(t, w)
	if diff := cmp.Diff(map[string]string{"fifo.md": RuleSpecial, "s.md": RuleSpecial}, refusals(s)); diff != "" {
		t.Error(diff)
	}
	if _, err := w.Read(t.Context(), "fifo.md"); err == nil {
		t.Error("a fifo was read")
	}
	if err := w.Write(t.Context(), "fifo.md", []byte("x"), time.Time{}, ""); !errors.Is(err, syncer.ErrLocalBlocked) {
		t.Errorf("write: %v", err)
	}
	// One that takes a file's place between look and open neither.
	put(t, w, "a.md", "x")
	root, err := os.OpenRoot(w.dir)
	must(t, err)
	defer root.Close()
	fi, err := root.Lstat("a.md")
	must(t, err)
	must(t, os.Remove(filepath.Join(w.dir, "a.md")))
	must(t, mkfifo(filepath.Join(w.dir, "a.md")))
	if _, _, err := w.hashFile(root, "a.md", fi); err == nil {
		t.Error("hashed a fifo")
	}
}

// D3: what cannot be read is unknown, not deleted; and known again later.
func TestUnreadableIsUnknown(t *testing.T) {
	w := open(t)
	put(t, w, "a.md", "x")
	put(t, w, "locked.md", "x")
	put(t, w, "sub/b.md", "x")
	put(t, w, "search/c.md", "x")
	scanOf(t, w)
	asNobody(t, w.dir, func() {
		must(t, os.Chmod(filepath.Join(w.dir, "locked.md"), 0))
		must(t, os.Chmod(filepath.Join(w.dir, "sub"), 0))
		must(t, os.Chmod(filepath.Join(w.dir, "search"), 0o400)) // names, but no stats
		s := scanOf(t, w)
		if diff := cmp.Diff([]string{"locked.md", "search", "sub"}, unreadable(s)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"a.md"}, paths(s)); diff != "" {
			t.Error(diff)
		}
		must(t, os.Chmod(filepath.Join(w.dir, "locked.md"), 0o600))
		must(t, os.Chmod(filepath.Join(w.dir, "sub"), 0o700))
		must(t, os.Chmod(filepath.Join(w.dir, "search"), 0o700))
		if got := paths(scanOf(t, w)); len(got) != 4 {
			t.Errorf("after the modes are back: %v", got)
		}
		must(t, os.Chmod(w.dir, 0))
		s, err := w.Scan(context.Background())
		if err != nil || s.Root != syncer.RootUnknown || len(s.Files) != 0 {
			t.Errorf("an unreadable root: %+v, %v", s, err)
		}
		must(t, os.Chmod(w.dir, 0o700))
	})
}

// Ruling 13.16: an edit that leaves size and mtime as they were is seen.
func TestStatCacheIsNotFooled(t *testing.T) {
	w := open(t)
	// An hour on, so that no file is hashed again merely for being young.
	w.opts.Now = func() time.Time { return time.Now().Add(time.Hour) }
	path := filepath.Join(w.dir, "a.md")
	old := time.Now().Add(-time.Hour)
	putFile(t, path, "one")
	must(t, os.Chtimes(path, old, old))
	scanOf(t, w)
	ctime := func() int64 {
		fi, err := os.Stat(path)
		must(t, err)
		return statOf(fi).ctime
	}
	for _, text := range []string{"two", "six", "ten"} {
		for before := ctime(); ctime() == before; { // the disk's clock may go by steps
			must(t, os.WriteFile(path, []byte(text), 0o644))
			must(t, os.Chtimes(path, old, old))
		}
		if got := scanOf(t, w).Files["a.md"].ETag; got != etag(text) {
			t.Fatalf("an edit to %q with the old mtime went unseen", text)
		}
	}
}

// The race that git calls racy: hashed, then changed within the clock's step, so that
// the stat is the same. A file must not be trusted until its change is old.
func TestRacilyCleanIsHashedAgain(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	s := stat{size: 3, mtime: now.UnixNano(), ctime: now.UnixNano(), inode: 1}
	for after, want := range map[time.Duration]bool{-time.Hour: false, 0: false, time.Second: false, 3 * time.Second: true} {
		f := &file{etag: "x", stat: s, hashed: now.Add(after).UnixNano()}
		if got := f.trusted(s, 2*time.Second); got != want {
			t.Errorf("hashed %v after the change: trusted %v", after, got)
		}
	}
	f := &file{etag: "x", stat: s, hashed: now.Add(time.Hour).UnixNano()}
	for _, other := range []stat{{4, s.mtime, s.ctime, 1}, {3, s.mtime + 1, s.ctime, 1}, {3, s.mtime, s.ctime + 1, 1}, {3, s.mtime, s.ctime, 2}} {
		if f.trusted(other, 2*time.Second) {
			t.Errorf("trusted %+v", other)
		}
	}
}

// F7: an empty file in mid-write is not reported empty.
func TestEmptyFileInMidWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		put(t, w, "a.md", "text")
		scanOf(t, w)
		name := filepath.Join(w.dir, "a.md")
		empty := func() { // by the clock of this test, which stands still while anything works
			must(t, os.Truncate(name, 0))
			must(t, os.Chtimes(name, time.Now(), time.Now()))
		}
		empty() // an editor truncates, then writes
		scanned := make(chan syncer.Snapshot, 1)
		go func() { scanned <- scanOf(t, w) }()
		// The scan holds the answer back; the rest of the save comes meanwhile.
		synctest.Wait()
		select {
		case s := <-scanned:
			t.Fatalf("the scan did not wait: %v", s.Files)
		default:
		}
		put(t, w, "a.md", "new text")
		if got := (<-scanned).Files["a.md"].ETag; got != etag("new text") {
			t.Errorf("the scan saw %s", got)
		}
		// One that stays empty is empty.
		empty()
		began := time.Now()
		if got := scanOf(t, w).Files["a.md"]; got.ETag != etag("") || got.Size != 0 || time.Since(began) != w.opts.Settle {
			t.Errorf("a file that stays empty, after %v: %+v", time.Since(began), got)
		}
	})
}

// F7: large files are hashed, not loaded, and Read is bounded.
func TestLargeFile(t *testing.T) {
	w := open(t)
	text := strings.Repeat("0123456789abcdef", 5<<16) // 5 MiB
	put(t, w, "big.md", text)
	s := scanOf(t, w)
	if f := s.Files["big.md"]; f.ETag != etag(text) || f.Size != int64(len(text)) {
		t.Errorf("%+v", f)
	}
	b, err := w.Read(t.Context(), "big.md")
	if err != nil || len(b) != memory.MaxMemoryBytes+1 {
		t.Errorf("read %d bytes, %v", len(b), err)
	}
	allocs := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			v := openAt(t, w.dir)
			scanOf(t, v)
		}
	}).AllocedBytesPerOp()
	if allocs > 1<<20 {
		t.Errorf("a scan of a 5 MiB file allocates %d bytes", allocs)
	}
}

func TestReadAbsent(t *testing.T) {
	w := open(t)
	put(t, w, "dir/x.md", "x")
	for _, p := range []memory.Path{"a.md", "none/a.md", "é.md"} {
		if _, err := w.Read(t.Context(), p); !errors.Is(err, syncer.ErrLocalAbsent) {
			t.Errorf("%s: %v", p, err)
		}
	}
	if _, err := w.Read(t.Context(), "../x.md"); !errors.Is(err, memory.ErrInvalidPath) {
		t.Errorf("a hostile path: %v", err)
	}
}

func TestScanEndsWithItsContext(t *testing.T) {
	w := open(t)
	put(t, w, "a.md", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Scan(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
