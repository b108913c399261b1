package sqlite

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// gatherer is a writer with a queue and nothing behind it.
func gatherer(s *Store) *writer {
	w := newWriter(s, nil)
	w.pace = time.Millisecond
	return w
}

// A commit that comes alone waits for nobody.
func TestGatherAloneDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := gatherer(&Store{})
		begin := time.Now()
		if batch, next := w.gather([]*request{{}}); len(batch) != 1 || next != nil {
			t.Errorf("gathered %d, next %v; want the one", len(batch), next)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("waited %v for nobody", took)
		}
	})
}

// Expected commits are waited for while they come, and no longer than making the last
// batch durable took.
func TestGatherWaitsForTheExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{}
		w := gatherer(s)
		s.Expect(3)
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 2 {
				time.Sleep(400 * time.Microsecond)
				s.Expect(-1)
				w.queue <- &request{}
			}
			// The third is refused on its way and never says so in time.
		})
		begin := time.Now()
		batch, _ := w.gather([]*request{{}})
		if took := time.Since(begin); len(batch) != 3 || took != w.pace {
			t.Errorf("gathered %d in %v; want 3 in %v", len(batch), took, w.pace)
		}
		wg.Wait()
		s.Expect(-1)
	})
}

// A slow disk does not make commits wait without end.
func TestGatherPatienceIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{}
		w := gatherer(s)
		w.pace = time.Minute
		s.Expect(1)
		begin := time.Now()
		w.gather([]*request{{}})
		if took := time.Since(begin); took != maxPatience {
			t.Errorf("waited %v, want %v", took, maxPatience)
		}
	})
}

// Whatever becomes of commits, none stays expected.
func TestExpectedComesToNothing(t *testing.T) {
	s := openTest(t, Options{Dir: t.TempDir()})
	ctx := context.Background()
	if err := s.CreateProject(ctx, key, day0); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	_, _ = s.Commit(cancelled, put("a.md", "x"))
	for _, req := range []struct{ name, text string }{{"a.md", "x"}, {"", "x"}, {"a.md", "x"}} {
		_, _ = s.Commit(ctx, put(req.name, req.text))
	}
	nowhere := put("a.md", "x")
	nowhere.Project.Project = memory.Project("nowhere")
	if _, err := s.Commit(ctx, nowhere); err == nil {
		t.Error("a project that does not exist took a commit")
	}
	if n := s.expected.Load(); n != 0 {
		t.Errorf("%d commits are still expected", n)
	}
}
