package workspace

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSame changes one thing after another about a workspace: whatever a scan would see
// other names for is not the same, and an edit of a file's text is.
func TestSame(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(w *Workspace) error
		want   bool
	}{
		{"nothing", func(*Workspace) error { return nil }, true},
		{"an edit", func(w *Workspace) error { return os.WriteFile(filepath.Join(w.dir, "a.md"), []byte("edited"), 0o644) }, true},
		{"what no scan sees", func(w *Workspace) error { return os.WriteFile(filepath.Join(w.dir, "x.txt"), nil, 0o644) }, true},
		{"an ignored file", func(w *Workspace) error { return os.WriteFile(filepath.Join(w.dir, "draft_2.md"), nil, 0o644) }, true},
		{"a twin for a file gone", func(w *Workspace) error {
			if err := os.Remove(filepath.Join(w.dir, "a.md")); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(w.dir, "e\u0301.md"), nil, 0o644)
		}, false},
		{"a new file", func(w *Workspace) error { return os.WriteFile(filepath.Join(w.dir, "sub", "c.md"), nil, 0o644) }, false},
		{"a file gone", func(w *Workspace) error { return os.Remove(filepath.Join(w.dir, "a.md")) }, false},
		{"a rename", func(w *Workspace) error { return os.Rename(filepath.Join(w.dir, "a.md"), filepath.Join(w.dir, "d.md")) }, false},
		{"a directory gone", func(w *Workspace) error { return os.RemoveAll(filepath.Join(w.dir, "sub")) }, false},
		{"emptied", func(w *Workspace) error {
			return os.Rename(filepath.Join(w.dir, "a.md"), filepath.Join(filepath.Dir(w.dir), "a.md"))
		}, false},
		{"a directory gone for a file", func(w *Workspace) error {
			if err := os.RemoveAll(filepath.Join(w.dir, "sub")); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(w.dir, "sub"), nil, 0o644)
		}, false},
		{"a link", func(w *Workspace) error { return os.Symlink("a.md", filepath.Join(w.dir, "l.md")) }, false},
		{"a near miss", func(w *Workspace) error { return os.WriteFile(filepath.Join(w.dir, "N.MD"), nil, 0o644) }, false},
		{"other ignore rules", func(w *Workspace) error {
			return os.WriteFile(filepath.Join(w.dir, IgnoreName), []byte("a.md\n"), 0o644)
		}, false},
		{"the marker gone", func(w *Workspace) error { return os.Remove(filepath.Join(w.dir, MarkerName)) }, false},
		{"a marker inside", func(w *Workspace) error { return os.WriteFile(filepath.Join(w.dir, "sub", MarkerName), nil, 0o644) }, false},
		{"the root gone", func(w *Workspace) error { return os.Rename(w.dir, w.dir+".away") }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := open(t)
			put(t, w, "a.md", "a")
			put(t, w, "sub/b.md", "b")
			put(t, w, "\u00e9.md", "NFC")
			put(t, w, "o\u0301.md", "NFD")
			put(t, w, "draft_1.md", "mine")
			put(t, w, IgnoreName, "draft_*\n")
			must(t, w.PutMarker(t.Context(), "link"))
			s := scanOf(t, w)
			if !w.Same(t.Context(), s) {
				t.Fatal("nothing changed, and it is not the same")
			}
			must(t, tc.change(w))
			if got := w.Same(t.Context(), s); got != tc.want {
				t.Errorf("same: %t, want %t", got, tc.want)
			}
		})
	}
	// What it wrote itself is for the caller to know.
	w := open(t)
	s := scanOf(t, w)
	must(t, w.Write(t.Context(), "new.md", []byte("x"), time.Time{}, ""))
	if w.Same(t.Context(), s) {
		t.Error("a file written since is overlooked")
	}
}

// BenchmarkSame is what a glance costs.
func BenchmarkSame(b *testing.B) {
	w := open(b)
	fill(b, w, 5000)
	s := scanOf(b, w)
	b.ReportAllocs()
	for b.Loop() {
		if !w.Same(b.Context(), s) {
			b.Fatal("not the same")
		}
	}
}
