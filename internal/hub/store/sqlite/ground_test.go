package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/sqlite"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
)

// TestFilesReplacedUnderARunningStore puts others in the place of the store's files in
// every way: within a moment the store says so by itself, and from the first commit
// after it on nothing is acknowledged.
func TestFilesReplacedUnderARunningStore(t *testing.T) {
	replace := func(t *testing.T, dir, snapshot, name string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(snapshot, name))
		if err != nil {
			t.Fatal(err)
		}
		tmp := filepath.Join(dir, "tmp")
		if err := errors.Join(os.WriteFile(tmp, text, 0o600), os.Rename(tmp, filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		do func(t *testing.T, dir, snapshot string)
		// slow: seen by the calm look only, not by the next commit.
		slow bool
		// copied: first the log is copied into the file, which then differs from the snapshot.
		copied bool
	}{
		"database replaced": {do: func(t *testing.T, dir, snapshot string) { replace(t, dir, snapshot, sqlite.FileName) }},
		"database overwritten in place": {copied: true, do: func(t *testing.T, dir, snapshot string) {
			text, err := os.ReadFile(filepath.Join(snapshot, sqlite.FileName))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, sqlite.FileName), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
		"database truncated": {do: func(t *testing.T, dir, _ string) {
			if err := os.Truncate(filepath.Join(dir, sqlite.FileName), 4096); err != nil {
				t.Fatal(err)
			}
		}, copied: true},
		"database removed": {do: func(t *testing.T, dir, _ string) { mustRemove(t, filepath.Join(dir, sqlite.FileName)) }},
		"directory moved away": {do: func(t *testing.T, dir, _ string) {
			if err := os.Rename(dir, dir+"-old"); err != nil {
				t.Fatal(err)
			}
		}},
		"directory moved away and another put there": {do: func(t *testing.T, dir, snapshot string) {
			if err := errors.Join(os.Rename(dir, dir+"-old"), os.CopyFS(dir, os.DirFS(snapshot))); err != nil {
				t.Fatal(err)
			}
		}},
		"lock removed": {do: func(t *testing.T, dir, _ string) { mustRemove(t, filepath.Join(dir, "hub.lock")) }},
		"log removed":  {do: func(t *testing.T, dir, _ string) { mustRemove(t, filepath.Join(dir, sqlite.FileName+"-wal")) }, slow: true},
		"log replaced": {do: func(t *testing.T, dir, snapshot string) { replace(t, dir, snapshot, sqlite.FileName+"-wal") }, slow: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, snapshot := filepath.Join(t.TempDir(), "data"), t.TempDir()
			lost := make(chan error, 10)
			s, err := sqlite.Open(sqlite.Options{Dir: dir, Lost: func(err error) { lost <- err }})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }() // it cannot end well
			key := memory.ProjectKey{Team: "acme", Project: "app"}
			if err := s.CreateProject(t.Context(), key, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			commit := func(text string) error {
				_, err := s.Commit(context.Background(), store.CommitRequest{
					Project: key, Now: time.Unix(2, 0), Author: memory.Author{Principal: "p"}, Quota: store.Quota{Files: 100, Bytes: 1 << 20},
					Changes: []memory.Change{{Path: "a.md", Kind: memory.Put, Content: []byte(text)}},
				})
				return err
			}
			if err := commit("one"); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(snapshot, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			if err := commit("two"); err != nil {
				t.Fatal(err)
			}
			if tc.copied {
				_, err := s.Redact(t.Context(), store.RedactRequest{Project: key, Path: "a.md", Marker: []byte("gone\n"), Author: memory.Author{Principal: "p"}, Now: time.Unix(3, 0)})
				if err != nil {
					t.Fatal(err)
				}
				waitForEmptyLog(t, dir)
				if err := commit("past the writer's own look"); err != nil {
					t.Fatal(err)
				}
			}
			waitForNextStamp(t, filepath.Join(dir, sqlite.FileName))
			tc.do(t, dir, snapshot)
			if !tc.slow {
				if err := commit("three"); !errors.Is(err, memory.ErrUnavailable) || !strings.Contains(err.Error(), "while this hub was running on it") {
					t.Fatalf("the next commit: %v, want it refused", err)
				}
			}
			select {
			case err := <-lost:
				if !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "restore-backup") {
					t.Errorf("told: %v", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("nobody was told")
			}
			if err := commit("four"); !errors.Is(err, memory.ErrUnavailable) {
				t.Errorf("a later commit: %v, want it refused", err)
			}
			if len(lost) > 0 {
				t.Error("told twice")
			}
		})
	}
}

// TestTouchedIsNotReplaced changes the database's time stamps, and puts the very same
// bytes into it: the store goes on. Then it puts in what the file held before the log was
// last copied into it, of the same size: the store notices.
func TestTouchedIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	live := filepath.Join(dir, sqlite.FileName)
	lost := make(chan error, 1)
	s, err := sqlite.Open(sqlite.Options{Dir: dir, Lost: func(err error) { lost <- err }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }() // it cannot end well
	key := memory.ProjectKey{Team: "acme", Project: "app"}
	if err := s.CreateProject(t.Context(), key, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	commit := func(text string) error {
		_, err := s.Commit(t.Context(), store.CommitRequest{
			Project: key, Now: time.Unix(2, 0), Author: memory.Author{Principal: "p"}, Quota: store.Quota{Files: 100, Bytes: 1 << 20},
			Changes: []memory.Change{{Path: "a.md", Kind: memory.Put, Content: []byte(text)}},
		})
		return err
	}
	// settle has the log copied into the file, and returns what the file holds then.
	settle := func() []byte {
		t.Helper()
		if err := commit("a secret"); err != nil {
			t.Fatal(err)
		}
		_, err := s.Redact(t.Context(), store.RedactRequest{Project: key, Path: "a.md", Marker: []byte("gone\n"), Author: memory.Author{Principal: "p"}, Now: time.Unix(3, 0)})
		if err != nil {
			t.Fatal(err)
		}
		waitForEmptyLog(t, dir)
		if err := commit("past the writer's own look"); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(live)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	touches := func(name string, touch func() error) {
		t.Helper()
		for range 3 {
			if err := errors.Join(touch(), commit(name)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	touches("touched before anything was copied", func() error { return os.Chtimes(live, time.Unix(4, 0), time.Unix(5, 0)) })
	before := settle()
	touches("touched", func() error { return os.Chtimes(live, time.Unix(6, 0), time.Unix(7, 0)) })
	after := settle()
	touches("the same bytes", func() error { return os.WriteFile(live, after, 0o600) })
	if len(lost) > 0 {
		t.Fatal(<-lost)
	}
	for len(before) < len(after) { // the file grew: go on until it does not
		before, after = after, settle()
	}
	if bytes.Equal(before, after) {
		t.Fatal("nothing was copied into the file; the test tests nothing")
	}
	waitForNextStamp(t, live)
	if err := os.WriteFile(live, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := commit("after an older copy"); !errors.Is(err, memory.ErrUnavailable) || !strings.Contains(err.Error(), "written to by another program") {
		t.Fatalf("an older copy of the same size: %v, want it refused", err)
	}
}

// TestRestoredSnapshotIsLeftAlone closes a store whose database was overwritten: what
// was put there stays as it is, byte by byte.
func TestRestoredSnapshotIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlite.Open(sqlite.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	key := memory.ProjectKey{Team: "acme", Project: "app"}
	if err := s.CreateProject(t.Context(), key, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(t.TempDir(), "backup")
	if err := s.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	live := filepath.Join(dir, sqlite.FileName)
	waitForNextStamp(t, live)
	if err := os.WriteFile(live, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "written to by another program") {
		t.Errorf("close: %v, want it told", err)
	}
	if got, err := os.ReadFile(live); err != nil || string(got) != string(want) {
		t.Errorf("what was put there was changed: %d bytes of %d (%v)", len(got), len(want), err)
	}
}

// TestOwnWritesAreNoLoss commits past several checkpoints, redactions and idle looks:
// the store does not mistake its own work for another's.
func TestOwnWritesAreNoLoss(t *testing.T) {
	lost := make(chan error, 1)
	s, err := sqlite.Open(sqlite.Options{Dir: t.TempDir(), Lost: func(err error) { lost <- err }})
	if err != nil {
		t.Fatal(err)
	}
	key := memory.ProjectKey{Team: "acme", Project: "app"}
	if err := s.CreateProject(t.Context(), key, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("0123456789abcdef", 8<<10) // 128 KiB: a checkpoint every hundred
	for i := range 300 {
		_, err := s.Commit(t.Context(), store.CommitRequest{
			Project: key, Now: time.Unix(int64(i), 0), Author: memory.Author{Principal: "p"}, Quota: store.Quota{Files: 100, Bytes: 1 << 20},
			Changes: []memory.Change{{Path: "a.md", Kind: memory.Put, Content: []byte(text[i:])}},
		})
		if err != nil {
			t.Fatalf("commit %d: %v", i, err)
		}
		if i%100 == 50 {
			_, err := s.Redact(t.Context(), store.RedactRequest{Project: key, Path: "a.md", Marker: []byte("gone\n"), Author: memory.Author{Principal: "p"}, Now: time.Unix(int64(i), 0)})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "backup")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if len(lost) > 0 {
		t.Error(<-lost)
	}
}

// waitForEmptyLog waits until the log is copied into the file, as after a redaction.
func waitForEmptyLog(t *testing.T, dir string) {
	t.Helper()
	hubtest.Eventually(t, time.Minute, "the log is in the file", func() bool {
		info, err := os.Stat(filepath.Join(dir, sqlite.FileName+"-wal"))
		return err == nil && info.Size() == 0
	})
}

// waitForNextStamp waits until what is written now gets another time stamp than the file
// has: the kernel's clock for files moves in steps of some milliseconds, and the store
// tells by the stamp whether somebody wrote.
func waitForNextStamp(t *testing.T, name string) {
	t.Helper()
	was, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	probe := filepath.Join(t.TempDir(), "probe")
	hubtest.Eventually(t, time.Minute, "the clock for files moves on", func() bool {
		if err := os.WriteFile(probe, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(probe)
		return err == nil && info.ModTime().After(was.ModTime())
	})
}

func mustRemove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}
