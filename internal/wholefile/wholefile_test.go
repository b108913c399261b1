package wholefile_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/memsvc/memsvc/internal/wholefile"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	for _, text := range []string{"first", "second, longer", ""} {
		if err := wholefile.Replace(name, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name)
		if err != nil || string(got) != text {
			t.Errorf("got %q, %v; want %q", got, err, text)
		}
	}
	if fi, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && fi.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	// What cannot be replaced stays, and nothing is left beside it.
	if err := os.Mkdir(filepath.Join(dir, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := wholefile.Replace(filepath.Join(dir, "dir"), []byte("x"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if err := wholefile.Replace(filepath.Join(dir, "none", "file"), []byte("x"), 0o600); err == nil {
		t.Error("a directory was made")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
