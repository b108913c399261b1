package wholefile_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

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

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * time.Hour)
	for name, stays := range map[string]bool{".new-123": false, ".new-4567890": false, ".new-": true, ".new-1a": true, "new-1": true, "file": true} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		wholefile.Sweep(dir)
		if _, err := os.Lstat(file); err != nil {
			t.Errorf("%s: a fresh one went: %v", name, err)
		}
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
		wholefile.Sweep(dir)
		if _, err := os.Lstat(file); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
	sub := filepath.Join(dir, ".new-99")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(sub, old, old); err != nil {
		t.Fatal(err)
	}
	wholefile.Sweep(dir)
	wholefile.Sweep(filepath.Join(dir, "missing"))
	if _, err := os.Lstat(sub); err != nil {
		t.Errorf("a directory went: %v", err)
	}
}

func TestMakeRoom(t *testing.T) {
	dir := t.TempDir()
	begin := time.Now().Add(-time.Hour)
	for i, name := range []string{"c.x", "a.x", "b.x", "d.x", "old.y"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		when := begin.Add(time.Duration(i/2) * time.Minute) // c and a are of one age
		if name == "old.y" {
			when = begin.Add(-time.Hour)
		}
		if err := os.Chtimes(file, when, when); err != nil {
			t.Fatal(err)
		}
	}
	left := func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	for _, step := range []struct {
		most int
		want []string
	}{
		{5, []string{"a.x", "b.x", "c.x", "d.x", "old.y"}},
		{4, []string{"b.x", "c.x", "d.x", "old.y"}},
		{2, []string{"d.x", "old.y"}},
		{1, []string{"old.y"}},
	} {
		wholefile.MakeRoom(dir, ".x", step.most)
		if got := left(); !slices.Equal(got, step.want) {
			t.Errorf("room for one of %d: left %q, want %q", step.most, got, step.want)
		}
	}
	wholefile.MakeRoom(filepath.Join(dir, "none"), ".x", 1) // is none to make room in
}
