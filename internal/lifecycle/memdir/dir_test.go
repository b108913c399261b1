package memdir_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/memory"
)

func create(t *testing.T) *memdir.Dir {
	t.Helper()
	d, err := memdir.Create(filepath.Join(t.TempDir(), "memory"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func text(name, description string) []byte {
	return fmt.Appendf(nil, "---\nname: %s\ndescription: %s\ntype: project\n---\n\nbody of %s\n", name, description, name)
}

func put(t *testing.T, d *memdir.Dir, path memory.Path, content []byte, want memory.Precondition) error {
	t.Helper()
	fm, _, err := memory.ParseFrontmatter(content)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Put(t.Context(), path, content, want, memory.EntryFor(path, fm), time.Time{})
	return err
}

func index(t *testing.T, d *memdir.Dir) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(d.Path(), memory.IndexName))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPutReadRemove(t *testing.T) {
	d := create(t)
	first := text("Freeze", "no merges in March")
	if err := put(t, d, "project_freeze.md", first, memory.IfAbsent()); err != nil {
		t.Fatal(err)
	}
	if got, want := index(t, d), "- [Freeze](project_freeze.md) — no merges in March\n"; got != want {
		t.Errorf("index: %q, want %q", got, want)
	}
	got, _, err := d.Read("project_freeze.md")
	if err != nil || string(got) != string(first) {
		t.Errorf("read %q, %v", got, err)
	}
	if fi, err := os.Stat(filepath.Join(d.Path(), "project_freeze.md")); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; a personal memory is for its owner", fi.Mode(), err)
	}
	if err := put(t, d, "project_freeze.md", text("Other", "x"), memory.IfAbsent()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second one under the name: %v, want fs.ErrExist", err)
	}
	if err := put(t, d, "project_freeze.md", text("Other", "x"), memory.IfMatch(memory.ETagOf([]byte("else")))); !errors.Is(err, memdir.ErrChanged) {
		t.Errorf("over another text: %v, want ErrChanged", err)
	}
	if err := put(t, d, "deep/er/project_x.md", text("Deep", "x"), memory.IfAbsent()); err != nil {
		t.Fatal(err)
	}
	if err := put(t, d, "project_freeze.md", text("Freeze", "until April"), memory.IfMatch(memory.ETagOf(first))); err != nil {
		t.Fatal(err)
	}
	if got, want := index(t, d), "- [Freeze](project_freeze.md) — until April\n- [Deep](deep/er/project_x.md) — x\n"; got != want {
		t.Errorf("index: %q, want %q", got, want)
	}
	if err := d.Remove(t.Context(), "deep/er/project_x.md", memory.Precondition{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(d.Path(), "deep")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("empty directories stay: %v", err)
	}
	if err := d.Remove(t.Context(), "deep/er/project_x.md", memory.Precondition{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a second time: %v, want fs.ErrNotExist", err)
	}
	if got, want := index(t, d), "- [Freeze](project_freeze.md) — until April\n"; got != want {
		t.Errorf("index: %q, want %q", got, want)
	}
	entries, err := os.ReadDir(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{".memdir.lock", "MEMORY.md", "project_freeze.md"}, names); diff != "" {
		t.Errorf("what lies there (-want +got):\n%s", diff)
	}
}

func TestFilesPassesOverWhatIsNoMemory(t *testing.T) {
	d := create(t)
	for _, name := range []string{"a.md", "sub/b.md", "team/c.md", ".hidden.md", ".git/x.md", "notes.txt", "con.md", "MEMORY.md"} {
		file := filepath.Join(d.Path(), name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(d.Path(), "link.md")); err != nil {
		t.Fatal(err)
	}
	files, bad, err := d.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, string(f.Path))
	}
	if diff := cmp.Diff([]string{"MEMORY.md", "a.md", "sub/b.md"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(bad) != 1 || !strings.Contains(bad[0].Error(), "con.md") {
		t.Errorf("bad names: %v, want con.md", bad)
	}
	if _, _, err := d.Read("link.md"); err == nil {
		t.Error("a link that leads outside is read")
	}
}

func TestWritesStayInside(t *testing.T) {
	d := create(t)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(d.Path(), "out")); err != nil {
		t.Fatal(err)
	}
	if err := put(t, d, "out/x.md", text("X", "x"), memory.IfAbsent()); err == nil {
		t.Error("a write through a link that leads outside is taken")
	}
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Errorf("outside there is %v", left)
	}
}

func TestGhostsAndMissingLinesAreMended(t *testing.T) {
	d := create(t)
	for _, name := range []string{"a.md", "b.md"} {
		if err := put(t, d, memory.Path(name), text(name, "about "+name), memory.IfAbsent()); err != nil {
			t.Fatal(err)
		}
	}
	team := filepath.Join(d.Path(), "team")
	if err := os.Mkdir(team, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{
		filepath.Join(team, "t.md"):     "x",
		filepath.Join(d.Path(), "c.md"): "---\nname: [broken\n---\n",
		filepath.Join(d.Path(), "MEMORY.md"): "# My index\n\n- [A](a.md) — mine, not to be touched\n- [Gone](gone.md)\n" +
			"- [Team](team/t.md) — shared\n- [Gone too](team/gone.md)\n",
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	report, err := d.CheckIndex(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Ghosts) != 2 || !cmp.Equal(report.Missing, []memory.Path{"b.md", "c.md"}) || report.OK() {
		t.Errorf("check says %+v", report)
	}
	if _, err := d.Mend(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "# My index\n\n- [A](a.md) — mine, not to be touched\n- [Team](team/t.md) — shared\n- [b.md](b.md) — about b.md\n- [c.md](c.md)\n"
	if got := index(t, d); got != want {
		t.Errorf("mended: %q\nwant    %q", got, want)
	}
	if _, err := d.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	want = "# My index\n\n- [Team](team/t.md) — shared\n- [a.md](a.md) — about a.md\n- [b.md](b.md) — about b.md\n- [c.md](c.md)\n"
	if got := index(t, d); got != want {
		t.Errorf("rebuilt: %q\nwant     %q", got, want)
	}
}

// TestMarkersOfRedactions: what was redacted gets no line, and an index that was redacted
// itself begins anew without the marker.
func TestMarkersOfRedactions(t *testing.T) {
	for _, rebuild := range []bool{false, true} {
		d := create(t)
		for file, content := range map[string]string{
			"a.md": string(text("A", "about a")), "gone.md": memory.RedactionMarker, "MEMORY.md": memory.RedactionMarker + "- [Left](gone.md) — of before\n",
		} {
			if err := os.WriteFile(filepath.Join(d.Path(), file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		mend, want := d.Mend, "- [Left](gone.md) — of before\n- [A](a.md) — about a\n"
		if rebuild {
			mend, want = d.Rebuild, "- [A](a.md) — about a\n"
		}
		report, err := mend(t.Context())
		if err != nil || !cmp.Equal(report.Missing, []memory.Path{"a.md"}) {
			t.Errorf("mend says %+v, %v", report, err)
		}
		if got := index(t, d); got != want {
			t.Errorf("rebuild %v: %q\nwant %q", rebuild, got, want)
		}
	}
	d := create(t)
	if err := os.WriteFile(filepath.Join(d.Path(), "MEMORY.md"), []byte(memory.RedactionMarker), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := put(t, d, "a.md", text("A", "about a"), memory.IfAbsent()); err != nil {
		t.Fatal(err)
	}
	if got, want := index(t, d), "- [A](a.md) — about a\n"; got != want {
		t.Errorf("after a memory was added: %q, want %q", got, want)
	}
}

// TestForeignWriterLosesNothing: a program that knows no lock appends to the index
// between our look and our replacement.
func TestForeignWriterLosesNothing(t *testing.T) {
	d := create(t)
	foreign := 0
	_, err := d.EditIndex(t.Context(), func(x *memory.Index) error {
		if foreign < 3 {
			foreign++
			f, err := os.OpenFile(filepath.Join(d.Path(), "MEMORY.md"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
			if err != nil {
				return err
			}
			fmt.Fprintf(f, "- [F%d](f%d.md)\n", foreign, foreign)
			if err := f.Close(); err != nil {
				return err
			}
		}
		x.Set(memory.IndexEntry{Title: "Ours", Target: "ours.md"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := index(t, d), "- [F1](f1.md)\n- [F2](f2.md)\n- [F3](f3.md)\n- [Ours](ours.md)\n"; got != want {
		t.Errorf("index: %q, want %q", got, want)
	}
}

func TestWhoPassesACapIsTold(t *testing.T) {
	d := create(t)
	var lines strings.Builder
	for i := range memory.MaxIndexLines {
		fmt.Fprintf(&lines, "- [M%d](m%d.md)\n", i, i)
	}
	if err := os.WriteFile(filepath.Join(d.Path(), "MEMORY.md"), []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	told, err := d.Put(t.Context(), "project_more.md", text("More", "x"), memory.IfAbsent(), memory.IndexEntry{Title: "More", Target: "project_more.md"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || told[0].Rule != memory.RuleIndexOverCap {
		t.Errorf("told %+v, want %s", told, memory.RuleIndexOverCap)
	}
}

// TestOnlyWhatDeadWritersLeftIsSwept: by the next writer, and by whoever asks for it.
func TestOnlyWhatDeadWritersLeftIsSwept(t *testing.T) {
	for how, do := range map[string]func(d *memdir.Dir) error{
		"a write": func(d *memdir.Dir) error {
			return d.Write(t.Context(), "a.md", text("a", "x"), memory.Precondition{}, time.Time{})
		},
		"a sweep": func(d *memdir.Dir) error { return d.Sweep(t.Context()) },
	} {
		d := create(t)
		if err := d.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if names, err := os.ReadDir(d.Path()); err != nil || len(names) > 0 {
			t.Errorf("with nothing to sweep, something was written: %v, %v", names, err)
		}
		const left = ".memdir-767070050fbb7489"
		others := []string{".memdir-notes", ".memdir-767070050fbb74", ".memdir-767070050fbb7489.md", ".memdir-0123456789abcdef"}
		for _, name := range append(others[:3:3], left) {
			if err := os.WriteFile(filepath.Join(d.Path(), name), []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(filepath.Join(d.Path(), others[3]), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := do(d); err != nil {
			t.Fatal(err)
		}
		for _, name := range others {
			if _, err := os.Lstat(filepath.Join(d.Path(), name)); err != nil {
				t.Errorf("%s: %v", how, err)
			}
		}
		if _, err := os.Lstat(filepath.Join(d.Path(), left)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %s is still there: %v", how, left, err)
		}
	}
}
