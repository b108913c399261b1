//go:build linux

package workspace

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// An ignore file is saved in steps (emptied and written, or moved aside and written):
// what it hides stays hidden all along, and what is taken from it is shared only when
// that has lasted.
func TestIgnoreFileSavedInSteps(t *testing.T) {
	const grace = time.Hour // whatever holds this test up ends sooner
	old := time.Now().Add(-2 * grace)
	setup := func(t *testing.T) (w *Workspace, now *time.Time, path string) {
		w = open(t)
		at := time.Now()
		w.opts.RulesGrace, w.opts.Now = grace, func() time.Time { return at }
		put(t, w, "a.md", "x")
		put(t, w, "private.md", "x")
		put(t, w, IgnoreName, "private.md\n")
		path = filepath.Join(w.dir, IgnoreName)
		must(t, os.Chtimes(path, old, old))
		return w, &at, path
	}
	hidden, all := []string{"a.md"}, []string{"a.md", "private.md"}
	look := func(t *testing.T, w *Workspace, want []string, again bool) {
		t.Helper()
		s := scanOf(t, w)
		if diff := cmp.Diff(want, paths(s)); diff != "" {
			t.Error(diff)
		}
		if (s.Again > 0) != again || s.Again > grace {
			t.Errorf("again after %v", s.Again)
		}
		if again && w.Same(t.Context(), s) {
			t.Error("what has not settled must be looked at again")
		}
	}
	for name, step := range map[string]func(t *testing.T, w *Workspace, path string){
		"emptied":     func(t *testing.T, _ *Workspace, path string) { must(t, os.Truncate(path, 0)) },
		"moved aside": func(t *testing.T, _ *Workspace, path string) { must(t, os.Rename(path, path+"~")) },
		"other rules": func(t *testing.T, w *Workspace, _ string) { put(t, w, IgnoreName, "draft.md\n") },
		"taken back":  func(t *testing.T, w *Workspace, _ string) { put(t, w, IgnoreName, "private.md\n!private.md\n") },
	} {
		t.Run(name, func(t *testing.T) {
			w, now, path := setup(t)
			look(t, w, hidden, false)
			step(t, w, path)
			look(t, w, hidden, true)
			*now = now.Add(grace - time.Second)
			look(t, w, hidden, true)
			// The save ends: more is hidden, at once. Where nothing that was ever hidden
			// is shared by it there is nothing to wait for.
			put(t, w, IgnoreName, "private.md\na.md\n")
			look(t, w, nil, name == "other rules" || name == "taken back")

			// This time it was meant.
			must(t, os.WriteFile(path, []byte("private.md\n"), 0o644))
			look(t, w, nil, true)
			*now = now.Add(grace)
			look(t, w, hidden, false)
			step(t, w, path)
			look(t, w, hidden, true)
			*now = now.Add(grace)
			look(t, w, all, false)
		})
		t.Run(name+", at a start", func(t *testing.T) {
			w, now, path := setup(t)
			step(t, w, path)
			*now = time.Now().Add(time.Second)
			look(t, w, nil, true)
			put(t, w, IgnoreName, "private.md\n")
			look(t, w, nil, true)
			*now = now.Add(grace)
			look(t, w, hidden, false)
		})
	}
	t.Run("a clock set back", func(t *testing.T) {
		w, now, path := setup(t)
		look(t, w, hidden, false)
		must(t, os.Remove(path))
		look(t, w, hidden, true)
		*now = now.Add(-time.Hour)
		look(t, w, hidden, true)
		*now = now.Add(grace)
		look(t, w, all, false)
	})
}
