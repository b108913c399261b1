package extract_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/extract"
)

// TestCursorsAreBounded: those of the conversations that were read last stay, and nothing
// else in the directory is touched.
func TestCursorsAreBounded(t *testing.T) {
	f := newFixture(t)
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(name string, age time.Duration) {
		file := filepath.Join(f.Dir, name)
		at := time.Now().Add(-age)
		if err := os.WriteFile(file, []byte("u1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1100 {
		put(fmt.Sprintf("old%04d.cursor", i), time.Duration(2000-i)*time.Hour)
	}
	put("other", 9000*time.Hour)
	f.talk.person("Always run the linter before you commit.")
	f.run()
	f.talk.person("Thanks.")
	f.run() // a conversation that has its cursor
	left, err := filepath.Glob(filepath.Join(f.Dir, "*.cursor"))
	if err != nil || len(left) != 1000 {
		t.Errorf("%d cursors are left, %v", len(left), err)
	}
	for name, want := range map[string]bool{"s1.cursor": true, "old1099.cursor": true, "old0101.cursor": true, "old0100.cursor": false, "old0000.cursor": false, "other": true} {
		if _, err := os.Stat(filepath.Join(f.Dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r, err := f.Run(t.Context(), extract.Conversation{Session: "s1", Transcript: f.talk.file}, false); err != nil || r.Skipped == "" {
		t.Errorf("read anew: %+v, %v", r, err)
	}
}
