//go:build linux

package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/memsvc/memsvc/internal/memory"
)

func TestIgnoreLanguage(t *testing.T) {
	for _, c := range []struct {
		rules   string
		yes, no string // paths, separated by blanks
	}{
		{"", "", "a.md a/b.md"},
		{"# all\n\n   \n", "", "a.md"},
		{"draft.md", "draft.md a/draft.md a/b/draft.md", "draft.md.md adraft.md draft/a.md"},
		{"/draft.md", "draft.md", "a/draft.md"},
		{"a/draft.md", "a/draft.md", "b/a/draft.md draft.md"},
		{"*.md", "a.md a/b.md", ""},
		{"tmp*", "tmp.md tmp1.md a/tmp.md tmp/x.md tmpdir/a/x.md", "atmp.md"},
		{"?.md", "a.md x/b.md 项.md", "ab.md"},
		{"[a-c].md", "a.md c.md", "d.md"},
		{"[!a-c].md", "d.md", "a.md c.md"},
		{"private/", "private/x.md private/a/x.md a/private/x.md", "private.md a.md"},
		{"notes.md/", "notes.md/x.md", "notes.md"},
		{"private", "private/x.md a/private/x.md", "privates/x.md"},
		{"/a/*/x.md", "a/b/x.md", "a/x.md a/b/c/x.md"},
		{"a/**/x.md", "a/x.md a/b/x.md a/b/c/x.md", "x.md b/a/x.md"},
		{"**/x.md", "x.md a/x.md a/b/x.md", "y.md"},
		{"a/**", "a/x.md a/b/x.md", "a.md b/a/x.md"},
		{"**", "a.md a/b.md", ""},
		{"*.md\n!keep.md", "a.md a/b.md", "keep.md a/keep.md"},
		{"dir/\n!dir/keep.md", "dir/keep.md dir/x.md", "x.md"},
		{"dir/*\n!dir/keep.md", "dir/x.md", "dir/keep.md"},
		{"!a.md\na.md", "a.md", ""},
		{`\#a.md`, "#a.md", "a.md"},
		{`\!a.md`, "!a.md", "a.md"},
		{`a\*.md`, "a*.md", "ab.md"},
		{"a.md   \t", "a.md", ""},
		{"a.md\r\nb.md\r\n", "a.md b.md", "c.md"},
		{"\ufeffa.md", "a.md", "b.md"},
		{"cafe\u0301.md", "caf\u00e9.md", "cafe.md"},
		{"草稿*", "草稿一.md 目/草稿.md", "一草稿.md"},
		{"A.md", "A.md", "a.md"},
	} {
		ig, err := ParseIgnore([]byte(c.rules))
		if err != nil {
			t.Errorf("%q: %v", c.rules, err)
			continue
		}
		for _, p := range strings.Fields(c.yes) {
			if !ig.Match(memory.Path(p)) {
				t.Errorf("%q does not match %s", c.rules, p)
			}
		}
		for _, p := range strings.Fields(c.no) {
			if ig.Match(memory.Path(p)) {
				t.Errorf("%q matches %s", c.rules, p)
			}
		}
	}
}

func TestIgnoreErrors(t *testing.T) {
	for rules, line := range map[string]int{
		"a.md\n[a.md": 2, "/": 1, "!": 1, "a//b": 1, "../a.md": 1, "a/./b": 1, `a\`: 1,
		strings.Repeat("x\n", maxIgnorePatterns+1): maxIgnorePatterns + 1,
		strings.Repeat("#", maxIgnoreBytes+1):      0,
	} {
		_, err := ParseIgnore([]byte(rules))
		var e *IgnoreError
		if !errors.As(err, &e) || e.Line != line {
			t.Errorf("%.20q: %v, want line %d", rules, err, line)
		}
	}
	// A line is named, never quoted: people write what they like there.
	const secret = "hunter2-Harbour"
	for _, line := range []string{secret + "/[x", "/" + secret + "//", secret + "/../a", secret + `\`} {
		if _, err := ParseIgnore([]byte(line + "\n")); err == nil || strings.Contains(err.Error(), "Harbour") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// Patterns made to be slow are not.
func TestIgnoreIsNotSlow(t *testing.T) {
	ig, err := ParseIgnore([]byte(strings.Repeat("**/a/", 100) + "b\n" + strings.Repeat("*a", 100) + "b\n"))
	if err != nil {
		t.Fatal(err)
	}
	// By the processor: what else goes on takes time, too.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		t.Helper()
		var u unix.Rusage
		must(t, unix.Getrusage(unix.RUSAGE_THREAD, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	start := used()
	for range 2 {
		ig.Match(memory.Path(strings.Repeat("a/", 500) + "a.md"))
		ig.Match(memory.Path(strings.Repeat("a", 250) + ".md"))
	}
	if d := used() - start; d > 5*time.Second {
		t.Errorf("4 matches took %v", d)
	}
}

// Ruling 13.18: ignored paths are not in the snapshot, and changing the file works in
// both directions.
func TestScanObeysIgnoreFile(t *testing.T) {
	w := open(t)
	put(t, w, "a.md", "x")
	put(t, w, "draft/b.md", "x")
	put(t, w, "draft/con.md", "x") // not even looked at
	put(t, w, IgnoreName, "draft/\n")
	must(t, os.Symlink("/", filepath.Join(w.dir, "draft-link")))
	put(t, w, IgnoreName, "draft/\ndraft-link\n")
	s := scanOf(t, w)
	if diff := cmp.Diff([]string{"a.md"}, paths(s)); diff != "" {
		t.Error(diff)
	}
	if len(s.Refused)+len(s.Unreadable) != 0 || !s.Ignored("draft/new.md") || s.Ignored("a.md") {
		t.Errorf("%+v", s)
	}
	put(t, w, IgnoreName, "a.md\ndraft-link\n")
	scanOf(t, w)
	if diff := cmp.Diff([]string{"draft/b.md"}, paths(scanOf(t, w))); diff != "" {
		t.Error(diff)
	}
	// What the file itself says never becomes a memory, taken back or not.
	put(t, w, IgnoreName, "!"+IgnoreName+"\n!*\ndraft-link\n")
	scanOf(t, w)
	if diff := cmp.Diff([]string{"a.md", "draft/b.md"}, paths(scanOf(t, w))); diff != "" {
		t.Error(diff)
	}
	// One that cannot be understood lets nothing through.
	put(t, w, IgnoreName, "ok.md\n[\n")
	s = scanOf(t, w)
	if len(s.Files) != 0 || len(s.Unreadable) != 1 || s.Unreadable[0] != "" || len(s.Refused) != 1 || s.Refused[0].Violation.Line != 2 {
		t.Errorf("%+v", s)
	}
	must(t, os.Remove(filepath.Join(w.dir, IgnoreName)))
	must(t, os.Remove(filepath.Join(w.dir, "draft-link")))
	scanOf(t, w)
	if diff := cmp.Diff([]string{"a.md", "draft/b.md"}, paths(scanOf(t, w))); diff != "" {
		t.Error(diff)
	}
	// Nor one that is not a file.
	must(t, mkfifo(filepath.Join(w.dir, IgnoreName)))
	if s := scanOf(t, w); len(s.Files) != 0 || len(s.Refused) != 1 {
		t.Errorf("%+v", s)
	}
}

func FuzzIgnore(f *testing.F) {
	f.Add([]byte("a/**/b*\n!c\n[x-z]/\n\\#"), "a/b.md")
	f.Fuzz(func(t *testing.T, rules []byte, path string) {
		ig, err := ParseIgnore(rules)
		if err != nil {
			return
		}
		p, err := memory.ParsePath(path)
		if err != nil {
			return
		}
		got := ig.Match(p)
		if dir := p.Dir(); dir != "" && !got {
			for above := dir; above != "" && above != "."; above = filepath.Dir(above) {
				if ig.matchDir(above) {
					t.Fatalf("%s is ignored, %s below it is not", above, p)
				}
			}
		}
	})
}

// TestIgnoreFileWrittenDuringAScan writes a pattern, and then what it hides, while a scan
// is on its way: whatever the scan read before, that text is not in it.
func TestIgnoreFileWrittenDuringAScan(t *testing.T) {
	w := open(t)
	dirs := make([]string, 10) // in whichever order the disk lists them
	for n := range dirs {
		dirs[n] = fmt.Sprint("dir", n)
		for m := range 200 {
			put(t, w, fmt.Sprintf("%s/note_%d.md", dirs[n], m), fmt.Sprint("text ", n, m))
		}
	}
	for round := range 15 {
		must(t, os.RemoveAll(filepath.Join(w.dir, IgnoreName)))
		for _, d := range dirs {
			put(t, w, d+"/private.md", "harmless")
		}
		scanOf(t, w)
		scanOf(t, w)       // no rules count now
		w.tree = &folder{} // the next scan reads everything, which takes a while
		written := make(chan error, 1)
		go func() {
			time.Sleep(time.Duration(round) * time.Millisecond) // at another moment of the scan each time
			err := os.WriteFile(filepath.Join(w.dir, IgnoreName), []byte("private.md\n"), 0o644)
			for _, d := range dirs {
				err = errors.Join(err, os.WriteFile(filepath.Join(w.dir, d, "private.md"), []byte("private"), 0o644))
			}
			written <- err
		}()
		s := scanOf(t, w)
		must(t, <-written)
		for p, f := range s.Files {
			if f.ETag == etag("private") {
				t.Fatalf("round %d: the scan has the text of %s that is to stay", round, p)
			}
		}
	}
}
