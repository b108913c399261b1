package agent

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// filesOf returns what is below a directory: contents of files, "dir" for directories.
func filesOf(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil || d.IsDir() {
			out[rel] = "dir"
			return err
		}
		text, err := os.ReadFile(name)
		out[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestUndo takes back new files, new directories and replaced files, in whatever order
// they were made.
func TestUndo(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"there": "before", "empty": "", "same": "same"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := filesOf(t, dir)
	var u undo
	if err := errors.Join(
		u.mkdir(filepath.Join(dir, "a", "b")),
		u.write(filepath.Join(dir, "a", "b", "new"), []byte("new")),
		u.write(filepath.Join(dir, "there"), []byte("after")),
		u.write(filepath.Join(dir, "there"), []byte("once more")),
		u.write(filepath.Join(dir, "empty"), []byte("full")),
		u.write(filepath.Join(dir, "same"), []byte("same")),
	); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "dir", "a/b": "dir", "a/b/new": "new", "there": "once more", "empty": "full", "same": "same"}
	if d := cmp.Diff(want, filesOf(t, dir)); d != "" {
		t.Errorf("done (-want +got):\n%s", d)
	}
	if err := u.run(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, filesOf(t, dir)); d != "" {
		t.Errorf("undone (-want +got):\n%s", d)
	}
}
