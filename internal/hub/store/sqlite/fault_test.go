package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

var (
	day0 = time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	key  = memory.ProjectKey{Team: "acme", Project: "payments"}
)

func openTest(t testing.TB, opts Options) *Store {
	t.Helper()
	s, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func put(path, text string) store.CommitRequest {
	return store.CommitRequest{Project: key, Now: day0, Changes: []memory.Change{{Path: memory.Path(path), Kind: memory.Put, Content: []byte(text)}}}
}

func noise(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(rand.IntN(26))
	}
	return string(b)
}

// fillUp commits until the database has no room, and returns the texts that were
// acknowledged.
func fillUp(t *testing.T, s *Store) map[string]string {
	t.Helper()
	kept := make(map[string]string)
	for i := range 100_000 {
		path, text := fmt.Sprintf("f%d.md", i), noise(3000)
		_, err := s.Commit(t.Context(), put(path, text))
		if err == nil {
			kept[path] = text
			continue
		}
		if !errors.Is(err, memory.ErrUnavailable) {
			t.Fatalf("a full disk is answered with %v, want UNAVAILABLE", err)
		}
		if strings.Contains(err.Error(), text[:20]) {
			t.Fatal("the error holds content")
		}
		return kept
	}
	t.Fatal("the disk never got full")
	return nil
}

func checkKept(t *testing.T, s *Store, kept map[string]string) {
	t.Helper()
	for path, text := range kept {
		m, err := s.Get(t.Context(), key, memory.Path(path), 0)
		if err != nil || string(m.Content) != text {
			t.Fatalf("%s was acknowledged and is lost: %v", path, err)
		}
	}
	info, err := s.Project(t.Context(), key)
	if err != nil || info.Files != int64(len(kept)) || info.Head.Revision != memory.Revision(len(kept)) {
		t.Fatalf("got %+v, %v, want %d files and revisions", info, err, len(kept))
	}
	if err := s.CheckIntegrity(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestFullDatabaseLosesNothingAndGoesOn(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	if err := s.CreateProject(t.Context(), key, day0); err != nil {
		t.Fatal(err)
	}
	if err := s.w.c.script("PRAGMA max_page_count=400"); err != nil {
		t.Fatal(err)
	}
	kept := fillUp(t, s)
	checkKept(t, s, kept)
	if _, err := s.Commit(t.Context(), put("f0.md", kept["f0.md"])); err != nil {
		t.Fatalf("a commit that needs no room: %v", err)
	}
	if err := s.w.c.script("PRAGMA max_page_count=100000"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), put("later.md", "room again")); err != nil {
		t.Fatalf("after space returned: %v", err)
	}
	kept["later.md"] = "room again"
	checkKept(t, s, kept)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	checkKept(t, openTest(t, Options{Dir: dir}), kept)
}

// mountTmpfs gives the test a file system of its own, of so many bytes.
func mountTmpfs(t *testing.T, size int) string {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("needs root on Linux to mount a small tmpfs; max_page_count stands in elsewhere")
	}
	dir := t.TempDir()
	unmount, err := mount(dir, fmt.Sprintf("size=%d", size))
	if err != nil {
		t.Skipf("a tmpfs cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unmount(); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

func TestFullDiskLosesNothingAndGoesOn(t *testing.T) {
	dir := mountTmpfs(t, 3<<20)
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	s, err := Open(Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := s.CreateProject(t.Context(), key, day0); err != nil {
		t.Fatal(err)
	}
	kept := fillUp(t, s)
	checkKept(t, s, kept)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), put("later.md", "room again")); err != nil {
		t.Fatalf("after space returned: %v", err)
	}
	kept["later.md"] = "room again"
	checkKept(t, s, kept)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open(Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	checkKept(t, s, kept)
}

// One request that the database chokes on fails alone: the others of its batch are
// done, and nothing of it stays.
func TestFailureInABatchIsAlone(t *testing.T) {
	s := openTest(t, Options{Dir: t.TempDir()})
	if err := s.CreateProject(t.Context(), key, day0); err != nil {
		t.Fatal(err)
	}
	hold, held := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = s.submit(t.Context(), &request{op: "hold", alone: true, apply: func(*transaction) error {
			close(held)
			<-hold
			return nil
		}})
	})
	<-held
	errs := make([]error, 9)
	p, err := s.acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer s.release(p)
	for i := range errs {
		wg.Go(func() {
			if i == 4 {
				errs[i] = s.submit(t.Context(), &request{op: "bad", apply: func(tx *transaction) error {
					o := tx.on(p)
					c := memory.Commit{Project: key, Revision: o.rev + 1, ID: "aa", Time: day0, Changes: []memory.AppliedChange{
						{Path: "bad.md", Kind: memory.Put, ETag: memory.ETagOf([]byte("bad")), Content: []byte("bad"), Size: 3}}}
					if err := tx.append(o, &c, nil); err != nil {
						return err
					}
					return tx.c.exec(stPutEpoch, nil, int64(0)) // breaks a constraint
				}})
				return
			}
			_, errs[i] = s.Commit(t.Context(), put(fmt.Sprintf("f%d.md", i), "good"))
		})
	}
	// Once all wait in the queue they make one batch.
	for len(s.w.queue) < len(errs) {
		runtime.Gosched()
	}
	close(hold)
	wg.Wait()
	for i, err := range errs {
		if bad := i == 4; bad != errors.Is(err, memory.ErrUnavailable) || !bad && err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
	info, err := s.Project(t.Context(), key)
	if err != nil || info.Files != 8 || info.Head.Revision != 8 {
		t.Fatalf("got %+v, %v, want 8 files in 8 revisions", info, err)
	}
	if _, err := s.Commit(t.Context(), put("BAD.md", "the failed path stands in no one's way")); err != nil {
		t.Fatal(err)
	}
}

func TestSecondHubIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	_, err := Open(Options{Dir: dir})
	if !errors.Is(err, memory.ErrInvalidArgument) || !strings.Contains(err.Error(), "another memsvc uses it") {
		t.Fatalf("got %v, want a refusal that says why", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openTest(t, Options{Dir: dir})
}

func TestForeignAndNewerFilesAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"newer schema":     {fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=99; CREATE TABLE x(y);", applicationID), "schema 99"},
		"another program":  {"PRAGMA application_id=7; CREATE TABLE x(y);", "another program"},
		"its own versions": {"PRAGMA user_version=3; CREATE TABLE x(y);", "another program"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, FileName)
			raw, err := open(file, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(raw.script(c.script), raw.close()); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error that says %q", err, c.want)
			}
		})
	}
	t.Run("no database", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, FileName), []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Options{Dir: dir}); err == nil {
			t.Fatal("it was opened")
		}
	})
}

func TestFilesAreForTheirOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := openTest(t, Options{Dir: dir})
	if err := s.CreateProject(t.Context(), key, day0); err != nil {
		t.Fatal(err)
	}
	dst := filepath.Join(dir, "backup")
	if err := s.Backup(t.Context(), dst); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 5 { // database, log, index, lock, backup
		t.Fatalf("found %v, want all five files", files)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v, want 0600", f.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v, %v, want 0700", info.Mode(), err)
	}
}

// A redacted text is in none of the files: neither in the pages that held it, nor
// in free ones, nor in the log.
func TestRedactedTextLeavesTheFiles(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	if err := s.CreateProject(t.Context(), key, day0); err != nil {
		t.Fatal(err)
	}
	const secret = "the-leaked-passphrase-of-the-vault"
	for i, size := range []int{10, 900, 3000, 20_000, 200} { // in a row, and over overflow pages
		for j := range 20 {
			if _, err := s.Commit(t.Context(), put(fmt.Sprintf("other%d.md", j), noise(100+i*50))); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Commit(t.Context(), put("leak.md", noise(size)+secret+noise(size))); err != nil {
			t.Fatal(err)
		}
	}
	found := func() (where []string) {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(b, []byte(secret)) {
				where = append(where, filepath.Base(f))
			}
		}
		return where
	}
	if len(found()) == 0 {
		t.Fatal("the text is in no file even before the redaction: the test looks wrongly")
	}
	_, err := s.Redact(t.Context(), store.RedactRequest{Project: key, Path: "leak.md", Marker: []byte("[redacted]"), Now: day0})
	if err != nil {
		t.Fatal(err)
	}
	// The log is emptied after the answer; the next commit waits for that.
	if _, err := s.Commit(t.Context(), put("next.md", "next")); err != nil {
		t.Fatal(err)
	}
	if where := found(); len(where) > 0 {
		t.Fatalf("the text is still in %v", where)
	}
}

// The states kept in memory do not grow with the number of projects.
func TestCacheIsBounded(t *testing.T) {
	const limit = 500
	s := openTest(t, Options{Dir: t.TempDir(), CacheEntries: limit})
	for i := range 60 {
		k := memory.ProjectKey{Team: "acme", Project: memory.Project(fmt.Sprintf("p%d", i))}
		if err := s.CreateProject(t.Context(), k, day0); err != nil {
			t.Fatal(err)
		}
		req := store.CommitRequest{Project: k, Now: day0}
		for j := range 50 {
			req.Changes = append(req.Changes, memory.Change{Path: memory.Path(fmt.Sprintf("f%d.md", j)), Kind: memory.Put, Content: []byte("x")})
		}
		if _, err := s.Commit(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		s.cache.mu.Lock()
		weight, slots := s.cache.weight, len(s.cache.slots)
		s.cache.mu.Unlock()
		if weight > limit || slots > limit/(50+slotWeight)+1 {
			t.Fatalf("after %d projects the cache holds %d entries in %d states, the limit is %d", i+1, weight, slots, limit)
		}
	}
	for i := range 60 { // evicted states are loaded again
		info, err := s.Project(t.Context(), memory.ProjectKey{Team: "acme", Project: memory.Project(fmt.Sprintf("p%d", i))})
		if err != nil || info.Files != 50 {
			t.Fatalf("project %d: %+v, %v", i, info, err)
		}
	}
	if _, err := s.Project(context.Background(), key); !errors.Is(err, memory.ErrNotFound) {
		t.Fatalf("an unknown project: %v", err)
	}
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	if s.cache.slots[key] != nil {
		t.Fatal("an unknown project takes a place in the cache")
	}
}
