package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

func projectKey(n int) memory.ProjectKey {
	return memory.ProjectKey{Team: "acme", Project: memory.Project(fmt.Sprintf("p%d", n))}
}

func createProjects(t *testing.T, s *Store, n int) {
	t.Helper()
	for i := range n {
		if err := s.CreateProject(t.Context(), projectKey(i), day0); err != nil {
			t.Fatal(err)
		}
	}
}

func commitTo(t *testing.T, s *Store, n int, text string) {
	t.Helper()
	req := put("a.md", text)
	req.Project = projectKey(n)
	if _, err := s.Commit(context.Background(), req); err != nil {
		t.Error(err)
	}
}

// checkHistory reads the whole history of project n, in both directions, and wants
// revisions up to head without gap.
func checkHistory(t *testing.T, s *Store, n int, head memory.Revision) {
	t.Helper()
	commits, err := s.History(context.Background(), projectKey(n), 0, 0, 0)
	if err != nil {
		t.Error(err)
		return
	}
	for i := range commits {
		if commits[i].Revision != memory.Revision(i+1) {
			t.Errorf("project %d: revision %d where %d should be", n, commits[i].Revision, i+1)
			return
		}
	}
	if len(commits) < int(head) {
		t.Errorf("project %d: %d revisions, want %d", n, len(commits), head)
	}
	ms, err := s.List(context.Background(), projectKey(n), store.ListOptions{EarlierETags: true})
	if err != nil || len(ms) != 1 || len(ms[0].EarlierETags) < int(head)-1 {
		t.Errorf("project %d: %d memories, %v, want one with %d earlier etags", n, len(ms), err, head-1)
	}
}

// lateCommits returns how many commits the table of revisions lacks, by two counts.
func lateCommits(t *testing.T, s *Store) int {
	t.Helper()
	s.trail.mu.RLock()
	defer s.trail.mu.RUnlock()
	var n int
	for _, l := range s.trail.projects {
		n += len(l.places)
	}
	if n != s.trail.n {
		t.Errorf("%d commits counted, %d there", s.trail.n, n)
	}
	return n
}

// Whatever the table of revisions lacks is found all the same, before and after it
// catches up, and by a store that is opened anew or from a backup.
func TestRevisionsFallBehindAndCatchUp(t *testing.T) {
	const projects, limit = 3, 10
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	s.SetLateLimit(limit)
	createProjects(t, s, projects)
	for i := range 3*limit + 5 {
		commitTo(t, s, i%projects, fmt.Sprint(i))
		if want := i%limit + 1; lateCommits(t, s) != want {
			t.Fatalf("after commit %d the table lacks %d, want %d", i+1, lateCommits(t, s), want)
		}
		for n := range projects {
			if head := memory.Revision((i + projects - n) / projects); head > 0 {
				checkHistory(t, s, n, head)
			}
		}
	}
	backup := filepath.Join(t.TempDir(), FileName)
	if err := s.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"opened anew": dir, "from a backup": filepath.Dir(backup)} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, Options{Dir: dir})
			if got := lateCommits(t, s); got != 5 {
				t.Errorf("the table lacks %d, want 5", got)
			}
			for n := range projects {
				checkHistory(t, s, n, 11)
			}
		})
	}
}

// A row's number is not used again when the row is gone: the table of revisions
// believes to have it already.
func TestRowNumbersAreNotUsedAgain(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	createProjects(t, s, 2)
	commitTo(t, s, 0, "first")
	for i := range 3 {
		commitTo(t, s, 1, fmt.Sprint("purged ", i))
	}
	if err := s.PurgeProject(t.Context(), projectKey(1)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"second", "third", "fourth"} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openTest(t, Options{Dir: dir})
		commitTo(t, s, 0, text)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	checkHistory(t, openTest(t, Options{Dir: dir}), 0, 4)
}

// Readers see no gap while the table catches up beside them.
func TestReadersBesideCatchingUp(t *testing.T) {
	const projects, commitsEach = 4, 150
	s := openTest(t, Options{Dir: t.TempDir(), CacheEntries: 1})
	s.SetLateLimit(3)
	createProjects(t, s, projects)
	for n := range projects {
		commitTo(t, s, n, "first")
	}
	var readers, writers sync.WaitGroup
	done := make(chan struct{})
	for n := range projects {
		writers.Go(func() {
			for i := range commitsEach {
				commitTo(t, s, n, fmt.Sprint(i))
			}
		})
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				info, err := s.Project(context.Background(), projectKey(n))
				if err != nil {
					t.Error(err)
					return
				}
				checkHistory(t, s, n, min(info.Head.Revision, store.MaxEarlierETags))
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	for n := range projects {
		commits, err := s.History(t.Context(), projectKey(n), 0, 0, 0)
		if err != nil || len(commits) != 1+commitsEach {
			t.Errorf("project %d: %d revisions, %v, want %d", n, len(commits), err, 1+commitsEach)
		}
	}
}
