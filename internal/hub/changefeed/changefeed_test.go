package changefeed_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsvc/memsvc/internal/hub/changefeed"
	"github.com/memsvc/memsvc/internal/hub/changefeed/changefeedtest"
	"github.com/memsvc/memsvc/internal/memory"
)

func open(t testing.TB, f *changefeed.Feed, starts ...changefeed.Start) *changefeed.Watcher {
	t.Helper()
	w, err := f.Open(context.Background(), starts)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func next(t testing.TB, w *changefeed.Watcher) changefeed.Event {
	t.Helper()
	ev, err := w.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

func after(k memory.ProjectKey, r memory.Revision) changefeed.Start {
	return changefeed.Start{Project: k, After: memory.Cursor{Revision: r}}
}

// TestPromises runs writers of several projects beside watchers that start
// anywhere, are slow at random, break off and resume; all of fake time is watched.
// It checks ordered, unique, atomic, reliable, resumable and bookmarked.
func TestPromises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := []memory.ProjectKey{key("a"), key("b"), key("c")}
		log := newLog(keys...)
		// A tiny cache makes most watchers read the log.
		feed := changefeed.New(log, changefeed.Options{CacheBytes: 8 << 10})
		defer feed.Close()
		const commits = 300
		for range 20 {
			log.commit(t, keys[0], 1)
		}
		var wg sync.WaitGroup
		for i, k := range keys {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(1, uint64(i)))
				for range commits {
					log.commit(t, k, 1+rnd.IntN(4))
					time.Sleep(time.Duration(rnd.IntN(500)) * time.Millisecond)
					if rnd.IntN(100) == 0 {
						time.Sleep(time.Minute) // quiet long enough for bookmarks
					}
				}
			})
		}
		want := map[memory.ProjectKey]memory.Revision{keys[0]: commits + 20, keys[1]: commits, keys[2]: commits}
		for i := range 8 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(2, uint64(i)))
				begin := map[memory.ProjectKey]memory.Revision{keys[0]: memory.Revision(rnd.IntN(20)), keys[1]: 0, keys[2]: 0}
				for {
					// Resume from where the last watcher of this loop broke off.
					var starts []changefeed.Start
					for _, k := range keys {
						starts = append(starts, after(k, begin[k]))
					}
					check := changefeedtest.New(begin, time.Now())
					w := open(t, feed, starts...)
					for range 50 + rnd.IntN(100) {
						if err := check.Event(next(t, w), time.Now()); err != nil {
							t.Error(err)
							return
						}
						if rnd.IntN(20) == 0 {
							time.Sleep(time.Second) // slow for a while
						}
						if check.At(keys[0]) == want[keys[0]] && check.At(keys[1]) == want[keys[1]] && check.At(keys[2]) == want[keys[2]] {
							break
						}
					}
					w.Close()
					done := true
					for _, k := range keys {
						if err := check.Complete(k, log.all(k)); err != nil {
							t.Error(err)
							return
						}
						begin[k] = check.At(k)
						done = done && begin[k] == want[k]
					}
					if done {
						return
					}
				}
			})
		}
		wg.Wait()
		if n := feed.Watchers(); n != 0 {
			t.Errorf("%d watchers left", n)
		}
		if n := log.listeners(); n != 0 {
			synctest.Wait()
			if n := log.listeners(); n != 0 {
				t.Errorf("%d tails left", n)
			}
		}
	})
}

// TestBookmarked watches two quiet projects and a busy one for an hour of fake time.
func TestBookmarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet, quiet2, busy := key("q"), key("r"), key("b")
		log := newLog(quiet, quiet2, busy)
		feed := changefeed.New(log, changefeed.Options{})
		defer feed.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			for ctx.Err() == nil {
				log.commit(t, busy, 1)
				time.Sleep(900 * time.Millisecond)
			}
		})
		w := open(t, feed, after(quiet, 0), after(quiet2, 0), after(busy, 0))
		defer w.Close()
		check := changefeedtest.New(map[memory.ProjectKey]memory.Revision{quiet: 0, quiet2: 0, busy: 0}, time.Now())
		marks := map[memory.ProjectKey]int{}
		for {
			ev, err := w.Next(ctx)
			if errors.Is(err, context.DeadlineExceeded) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if ev.Kind == changefeed.KindBookmark {
				marks[ev.Project]++
			}
			if err := check.Event(ev, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		for _, k := range []memory.ProjectKey{quiet, quiet2} {
			if n := marks[k]; n < 240 || n > 520 {
				t.Errorf("%s had %d bookmarks in an hour, want one every 7 to 15 s", k, n)
			}
		}
		if marks[busy] > 5 {
			t.Errorf("the busy project had %d bookmarks", marks[busy])
		}
	})
}

// TestReliableWithoutNotices loses every notice; polling must be enough alone.
func TestReliableWithoutNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := key("a")
		log := newLog(k)
		log.mute = true
		feed := changefeed.New(log, changefeed.Options{PollEvery: time.Second})
		defer feed.Close()
		w := open(t, feed, after(k, 0))
		defer w.Close()
		next(t, w)
		log.commit(t, k, 1)
		begin := time.Now()
		if ev := next(t, w); ev.Kind != changefeed.KindCommit || time.Since(begin) > 2*time.Second {
			t.Errorf("event %+v after %v", ev, time.Since(begin))
		}
		synctest.Wait() // it is counted once it was told
		if n := feed.Polled(); n != 1 {
			t.Errorf("%d commits found by polling, want 1", n)
		}
		if n := feed.Projects(); n != 1 {
			t.Errorf("%d projects followed, want 1", n)
		}
	})
}

// TestReliableThroughTrouble fails reads of the log for a while.
func TestReliableThroughTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := key("a")
		log := newLog(k)
		feed := changefeed.New(log, changefeed.Options{})
		defer feed.Close()
		w := open(t, feed, after(k, 0))
		defer w.Close()
		next(t, w)
		log.mu.Lock()
		log.failNext = 7
		log.mu.Unlock()
		log.commit(t, k, 3)
		for {
			if ev := next(t, w); ev.Kind == changefeed.KindCommit {
				break
			}
		}
	})
}

// TestReadOnce lets a thousand watchers share what was read from the log once.
func TestReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := key("a")
		log := newLog(k)
		feed := changefeed.New(log, changefeed.Options{})
		defer feed.Close()
		const watchers = 1000
		encoded := 0
		var wg sync.WaitGroup
		for range watchers {
			w := open(t, feed, after(k, 0))
			next(t, w)
			wg.Go(func() {
				defer w.Close()
				for {
					ev := next(t, w)
					if ev.Kind != changefeed.KindCommit {
						continue
					}
					got, err := ev.Commit.Encoded(changefeed.Full, func(*memory.Commit) (any, error) {
						encoded++ // once, so no lock
						return "form", nil
					})
					if err != nil || got != "form" {
						t.Errorf("form %v, error %v", got, err)
					}
					return
				}
			})
		}
		synctest.Wait()
		before := log.readCount()
		log.commit(t, k, 2)
		wg.Wait()
		if n := log.readCount() - before; n != 1 {
			t.Errorf("the log was read %d times for one commit", n)
		}
		if encoded != 1 {
			t.Errorf("the commit was encoded %d times", encoded)
		}
	})
}

// TestSlowReader stops one watcher; writers and others go on, memory stays
// bounded, and the slow one catches up without a gap.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := key("a")
		log := newLog(k)
		const bound = 32 << 10
		feed := changefeed.New(log, changefeed.Options{CacheBytes: bound})
		defer feed.Close()
		slow, fast := open(t, feed, after(k, 0)), open(t, feed, after(k, 0))
		defer slow.Close()
		defer fast.Close()
		begin := time.Now()
		slowCheck := changefeedtest.New(map[memory.ProjectKey]memory.Revision{k: 0}, begin)
		if err := slowCheck.Event(next(t, slow), begin); err != nil {
			t.Fatal(err)
		}
		next(t, fast)
		for i := range memory.Revision(2000) {
			log.commit(t, k, 2)
			if ev := next(t, fast); ev.Cursor.Revision != i+1 {
				t.Fatalf("fast reader got %d, want %d", ev.Cursor.Revision, i+1)
			}
			if n := feed.CachedBytes(); n > bound {
				t.Fatalf("cache holds %d bytes, bound %d", n, bound)
			}
		}
		for slowCheck.At(k) < 2000 {
			// The reader was away; what it is told is judged from now.
			if err := slowCheck.Event(next(t, slow), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestStarts covers where a watch may begin and what an impossible start is told.
func TestStarts(t *testing.T) {
	k := key("a")
	log := newLog(k)
	var ids []memory.CommitID
	for range 10 {
		ids = append(ids, log.commit(t, k, 1).ID)
	}
	log.compact(k, 4)
	head := memory.Cursor{Epoch: epoch, Revision: 10, CommitID: ids[9]}
	for _, tc := range []struct {
		name   string
		start  changefeed.Start
		from   memory.Revision
		reason memory.Reason
		rewind memory.Revision
	}{
		{name: "cursor", start: changefeed.Start{After: memory.Cursor{Epoch: epoch, Revision: 5, CommitID: ids[4]}}, from: 5},
		{name: "revision only", start: changefeed.Start{After: memory.Cursor{Revision: 5}}, from: 5},
		{name: "head cursor", start: changefeed.Start{After: head}, from: 10},
		{name: "head", start: changefeed.Start{Head: true}, from: 10},
		{name: "oldest", start: changefeed.Start{After: memory.Cursor{Revision: 3, CommitID: "gone"}}, from: 3},
		{name: "compacted", start: changefeed.Start{After: memory.Cursor{Revision: 2}}, reason: memory.ReasonRevisionCompacted},
		{name: "beyond head", start: changefeed.Start{After: memory.Cursor{Epoch: epoch, Revision: 11}}, reason: memory.ReasonEpochChanged},
		{name: "other commit", start: changefeed.Start{After: memory.Cursor{Epoch: epoch, Revision: 5, CommitID: ids[5]}}, reason: memory.ReasonEpochChanged},
		{name: "other commit at head", start: changefeed.Start{After: memory.Cursor{Epoch: epoch, Revision: 10, CommitID: ids[5]}}, reason: memory.ReasonEpochChanged},
		{name: "earlier epoch", start: changefeed.Start{After: memory.Cursor{Epoch: "e0", Revision: 5}}, reason: memory.ReasonEpochChanged, rewind: 2},
		{name: "unknown epoch", start: changefeed.Start{After: memory.Cursor{Epoch: "e9", Revision: 5}}, reason: memory.ReasonEpochChanged},
		{name: "unknown project", start: changefeed.Start{Project: key("none")}, reason: memory.ReasonNotFound},
		{name: "refused", start: changefeed.Start{Err: memory.ErrPermissionDenied}, reason: memory.ReasonPermissionDenied},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				feed := changefeed.New(log, changefeed.Options{})
				defer feed.Close()
				if tc.start.Project == (memory.ProjectKey{}) {
					tc.start.Project = k
				}
				w := open(t, feed, tc.start)
				defer w.Close()
				ev := next(t, w)
				if tc.reason != "" {
					var e *memory.Error
					if ev.Kind != changefeed.KindStatus || !errors.As(ev.Err, &e) || e.Reason != tc.reason || e.RewindRevision != tc.rewind {
						t.Fatalf("first event %+v, error %v; want status %s with rewind %d", ev, ev.Err, tc.reason, tc.rewind)
					}
					return
				}
				if ev.Kind != changefeed.KindBookmark || ev.Cursor.Revision != tc.from {
					t.Fatalf("first event %+v, want a bookmark at %d", ev, tc.from)
				}
				for want := tc.from + 1; want <= 10; want++ {
					ev := next(t, w)
					if ev.Kind != changefeed.KindCommit || ev.Cursor != (memory.Cursor{Epoch: epoch, Revision: want, CommitID: ids[want-1]}) {
						t.Fatalf("event %+v, want commit %d", ev, want)
					}
				}
			})
		})
	}
}

// TestCompactedWhileBehind gives a reader that fell behind retention a typed
// status instead of a silent gap, and the other project goes on.
func TestCompactedWhileBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, other := key("a"), key("b")
		log := newLog(k, other)
		feed := changefeed.New(log, changefeed.Options{CacheBytes: 1})
		defer feed.Close()
		w := open(t, feed, after(k, 0), after(other, 0))
		defer w.Close()
		next(t, w)
		next(t, w)
		for range 100 {
			log.commit(t, k, 1)
		}
		next(t, w)      // revision 1
		synctest.Wait() // the feed itself is not behind
		log.compact(k, 90)
		for {
			ev := next(t, w)
			if ev.Kind == changefeed.KindStatus {
				if !errors.Is(ev.Err, memory.ErrRevisionCompacted) {
					t.Fatal(ev.Err)
				}
				break
			}
		}
		log.commit(t, other, 1)
		if ev := next(t, w); ev.Project != other || ev.Kind != changefeed.KindCommit {
			t.Errorf("event %+v, want the other project's commit", ev)
		}
	})
}

// TestStoreAwayWhileOpening opens watchers of a project that is followed already while the
// store cannot be asked: that is an error of the whole, which a reader tries again, and
// no verdict on the project.
func TestStoreAwayWhileOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := key("a")
		log := newLog(k)
		feed := changefeed.New(log, changefeed.Options{})
		defer feed.Close()
		w := open(t, feed, after(k, 0))
		defer w.Close()
		next(t, w)
		for range 3 {
			log.commit(t, k, 1)
			next(t, w)
		}
		log.mu.Lock()
		log.away = true
		log.mu.Unlock()
		if w, err := feed.Open(t.Context(), []changefeed.Start{after(k, 1)}); !errors.Is(err, memory.ErrUnavailable) {
			w.Close()
			t.Errorf("Open: %v, want an ErrUnavailable", err)
		}
		log.mu.Lock()
		log.away = false
		log.mu.Unlock()
		again := open(t, feed, after(k, 1))
		defer again.Close()
		if ev := next(t, again); ev.Kind != changefeed.KindBookmark {
			t.Errorf("event %+v, want the bookmark", ev)
		}
	})
}

// TestPolicy tells the version that held at the start and each later one, once.
func TestPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := key("a")
		log := newLog(k)
		feed := changefeed.New(log, changefeed.Options{})
		defer feed.Close()
		w := open(t, feed, changefeed.Start{Project: k, Policy: 3})
		defer w.Close()
		if ev := next(t, w); ev.Kind != changefeed.KindBookmark {
			t.Fatalf("first event %+v", ev)
		}
		if ev := next(t, w); ev.Kind != changefeed.KindPolicy || ev.Policy != 3 {
			t.Fatalf("second event %+v, want policy 3", ev)
		}
		feed.Announce("other", 9)
		feed.Announce("t", 3)
		feed.Announce("t", 4)
		if ev := next(t, w); ev.Kind != changefeed.KindPolicy || ev.Policy != 4 {
			t.Fatalf("event %+v, want policy 4", ev)
		}
	})
}

// TestFail ends a project's following with the given cause.
func TestFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := key("a")
		log := newLog(k)
		feed := changefeed.New(log, changefeed.Options{})
		defer feed.Close()
		w := open(t, feed, after(k, 0))
		defer w.Close()
		next(t, w)
		feed.Fail(func(memory.ProjectKey) bool { return true }, memory.ErrEpochChanged)
		if ev := next(t, w); ev.Kind != changefeed.KindStatus || !errors.Is(ev.Err, memory.ErrEpochChanged) {
			t.Errorf("event %+v", ev)
		}
		// A watcher that comes afterwards follows the log anew.
		again := open(t, feed, after(k, 0))
		defer again.Close()
		if ev := next(t, again); ev.Kind != changefeed.KindBookmark {
			t.Errorf("event %+v", ev)
		}
	})
}

// TestCloseEndsWatchers ends a waiting watcher with a retryable error.
func TestCloseEndsWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := key("a")
		feed := changefeed.New(newLog(k), changefeed.Options{})
		w := open(t, feed, after(k, 0))
		defer w.Close()
		next(t, w)
		got := make(chan error)
		go func() {
			_, err := w.Next(context.Background())
			got <- err
		}()
		synctest.Wait()
		feed.Close()
		if err := <-got; !errors.Is(err, memory.ErrUnavailable) {
			t.Errorf("error %v", err)
		}
		if _, err := feed.Open(context.Background(), []changefeed.Start{after(k, 0)}); !errors.Is(err, memory.ErrUnavailable) {
			t.Errorf("Open after Close: %v", err)
		}
	})
}
