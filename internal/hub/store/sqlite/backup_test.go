package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/memsvc/memsvc/internal/memory"
)

func commitN(t *testing.T, s *Store, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if _, err := s.Commit(t.Context(), put("a.md", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
}

func headOf(t *testing.T, s *Store) memory.Cursor {
	t.Helper()
	info, err := s.Project(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return info.Head
}

// Yesterday's backup comes back: clients of the epoch that was are told up to
// where they and the hub agree, and the database it replaced is kept.
func TestRestoredHubAnswersRewind(t *testing.T) {
	dir, dst := t.TempDir(), filepath.Join(t.TempDir(), "backup.db")
	s := openTest(t, Options{Dir: dir})
	if err := s.CreateProject(t.Context(), key, day0); err != nil {
		t.Fatal(err)
	}
	commitN(t, s, 0, 10)
	was := headOf(t, s)
	if err := s.Backup(t.Context(), dst); err != nil {
		t.Fatal(err)
	}
	commitN(t, s, 10, 15)
	if _, err := RestoreBackup(t.Context(), dst, dir, RestoreOptions{Now: day0, Replace: true}); err == nil {
		t.Fatal("a running hub's database was replaced")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := RestoreBackup(t.Context(), dst, dir, RestoreOptions{Now: day0}); !errors.Is(err, memory.ErrAlreadyExists) {
		t.Fatalf("got %v, want a refusal to replace unasked", err)
	}
	res, err := RestoreBackup(t.Context(), dst, dir, RestoreOptions{Now: day0, Replace: true})
	if err != nil {
		t.Fatal(err)
	}
	s = openTest(t, Options{Dir: dir})
	if got := headOf(t, s); got.Revision != 10 || got.CommitID != was.CommitID || got.Epoch != res.Epoch || got.Epoch == was.Epoch {
		t.Fatalf("the head is %+v, want revision 10 in epoch %s", got, res.Epoch)
	}
	at, ok, err := s.Rewind(t.Context(), key, was.Epoch)
	if err != nil || !ok || at != 10 {
		t.Fatalf("rewind: got %d, %v, %v, want 10", at, ok, err)
	}
	commitN(t, s, 20, 22)

	old := t.TempDir()
	if err := os.Rename(res.Replaced, filepath.Join(old, FileName)); err != nil {
		t.Fatal(err)
	}
	if got := headOf(t, openTest(t, Options{Dir: old})); got.Revision != 15 {
		t.Fatalf("the replaced database is at %d, want 15", got.Revision)
	}
}

func TestRestoreToANewDirectory(t *testing.T) {
	dst := filepath.Join(t.TempDir(), "backup.db")
	s := openTest(t, Options{Dir: t.TempDir()})
	if err := s.CreateProject(t.Context(), key, day0); err != nil {
		t.Fatal(err)
	}
	commitN(t, s, 0, 3)
	if err := s.Backup(t.Context(), dst); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new")
	res, err := RestoreBackup(t.Context(), dst, dir, RestoreOptions{Now: day0, Epoch: "epoch-2"})
	if err != nil || res.Replaced != "" || res.Epoch != "epoch-2" {
		t.Fatalf("got %+v, %v", res, err)
	}
	if got := headOf(t, openTest(t, Options{Dir: dir})); got.Revision != 3 || got.Epoch != "epoch-2" {
		t.Fatalf("the head is %+v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, stagingDir)); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the staging directory stays: %v", err)
	}
}

// A restore that was cut short left its staging directory behind.
func TestRestoreAfterACrash(t *testing.T) {
	dst := filepath.Join(t.TempDir(), "backup.db")
	s := openTest(t, Options{Dir: t.TempDir()})
	if err := s.CreateProject(t.Context(), key, day0); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), dst); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, stagingDir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, stagingDir, FileName), []byte("half a copy"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := RestoreBackup(t.Context(), dst, dir, RestoreOptions{Now: day0}); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedBackupIsRefused(t *testing.T) {
	dst := filepath.Join(t.TempDir(), "backup.db")
	s := openTest(t, Options{Dir: t.TempDir()})
	if err := s.CreateProject(t.Context(), key, day0); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if _, err := s.Commit(t.Context(), put(fmt.Sprintf("f%d.md", i), noise(2000))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Backup(t.Context(), dst); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(dst)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"cut":     whole[:len(whole)/2],
		"zeroed":  append(append([]byte(nil), whole[:8192]...), make([]byte, len(whole)-8192)...),
		"text":    []byte("# not a database"),
		"nothing": nil,
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.WriteFile(dst, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := RestoreBackup(t.Context(), dst, dir, RestoreOptions{Now: day0}); err == nil {
				t.Fatal("it was restored")
			}
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("the data directory was touched: %v", err)
			}
		})
	}
	if _, err := RestoreBackup(t.Context(), filepath.Join(t.TempDir(), "none"), t.TempDir(), RestoreOptions{Now: day0}); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a missing backup: %v", err)
	}
}

// A backup under load is one moment of the history: each project whole up to a
// revision.
func TestBackupUnderLoad(t *testing.T) {
	s := openTest(t, Options{Dir: t.TempDir()})
	if err := s.CreateProject(t.Context(), key, day0); err != nil {
		t.Fatal(err)
	}
	commitN(t, s, 0, 50)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := s.Commit(context.Background(), put(fmt.Sprintf("w%d.md", w), noise(3000))); err != nil {
					t.Errorf("commit: %v", err)
					return
				}
			}
		})
	}
	for i := range 3 {
		before := headOf(t, s).Revision
		dst := filepath.Join(t.TempDir(), "backup.db")
		if err := s.Backup(t.Context(), dst); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), fmt.Sprint(i))
		if _, err := RestoreBackup(t.Context(), dst, dir, RestoreOptions{Now: day0}); err != nil {
			t.Fatal(err)
		}
		b := openTest(t, Options{Dir: dir})
		cs, err := b.Changes(t.Context(), key, 0, 0, 0)
		if err != nil || memory.Revision(len(cs)) != headOf(t, b).Revision || headOf(t, b).Revision < before {
			t.Fatalf("the backup has %d commits up to %v, want at least %d: %v", len(cs), headOf(t, b), before, err)
		}
	}
	close(stop)
	wg.Wait()
	dst := filepath.Join(t.TempDir(), "cancelled.db")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Backup(over, dst); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want Canceled", err)
	}
	if _, err := os.Stat(dst); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a cancelled backup left a file: %v", err)
	}
	if err := os.WriteFile(dst, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), dst); !errors.Is(err, memory.ErrAlreadyExists) {
		t.Fatalf("got %v, want a refusal to overwrite", err)
	}
	if b, err := os.ReadFile(dst); err != nil || string(b) != "precious" {
		t.Fatalf("the file that was there is %q, %v", b, err)
	}
}
