package agent

import (
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncer/synctest"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
)

// A writer whose rhythm meets the debounce is in the middle of writing whenever a cycle
// looks: that file must be looked at again at once, not with the next change on disk.
func TestFilesInMotionAreLookedAtAgainSoon(t *testing.T) {
	inSync := syncer.Result{Phase: syncer.PhaseInSync}
	unreadable := syncer.Status{Unreadable: []memory.Path{"x.md"}}
	for _, tc := range []struct {
		name string
		res  syncer.Result
		st   syncer.Status
	}{
		{"seemed empty", syncer.Result{Phase: syncer.PhasePending, Again: 2 * time.Second}, syncer.Status{}},
		{"could not be read", inSync, unreadable},
		{"changed under the hands", syncer.Result{Phase: syncer.PhasePending, Again: time.Second}, syncer.Status{}},
	} {
		r := &runner{}
		if got := r.unfinished(tc.res, tc.st); got <= 0 || got > minAgain {
			t.Errorf("%s: looked at again in %v, want at most %v", tc.name, got, minAgain)
		}
		// What stays so is looked at seldomer, and at least every half minute.
		for range 20 {
			r.unfinished(inSync, unreadable)
		}
		if got := r.unfinished(inSync, unreadable); got < maxRetry/2 || got > maxRetry {
			t.Errorf("%s: after 20 times again in %v", tc.name, got)
		}
		if got := r.unfinished(inSync, syncer.Status{}); got != 0 {
			t.Errorf("%s: all is done, and yet again in %v", tc.name, got)
		}
	}
}

// A failing cycle that moves the directory itself, as one that makes a directory on a
// full disk does, must not keep itself going without pause.
func TestFailingLinkPausesHoweverTheDirectoryMoves(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	failed := now
	r := &runner{now: func() time.Time { return now }, problem: errors.New("disk full"), problemT: failed}
	for failures, pause := range map[int]time.Duration{1: 400 * time.Millisecond, 2: 800 * time.Millisecond, 5: localRetry, 100: localRetry} {
		r.failures = failures
		for _, passed := range []time.Duration{0, pause / 2, pause - 1} {
			now = failed.Add(passed)
			if next, ran := r.step(t.Context(), wakeLocal, false); ran || next != pause-passed {
				t.Errorf("%d failures, %v later: ran %v, next look in %v, want %v", failures, passed, ran, next, pause-passed)
			}
		}
	}
}

// Uploads that only a person can let go are not asked for every second.
func TestStuckUploadsAreAskedForSeldom(t *testing.T) {
	held := syncer.Result{Phase: syncer.PhasePending, Again: time.Second}
	for _, stuck := range []bool{false, true} {
		r := &runner{gate: &uploadGate{since: time.Now(), stuck: stuck}}
		for range 20 {
			r.unfinished(held, syncer.Status{})
		}
		got := r.unfinished(held, syncer.Status{})
		if want := maxRetry / 2; stuck != (got >= want) || !stuck && got > time.Second {
			t.Errorf("stuck %v: asked again in %v", stuck, got)
		}
	}
}

// followed is a link that has pulled the only commit of its project by a call, and whose
// stream has told of nothing yet.
func followed(t *testing.T) (*runner, client.Event) {
	t.Helper()
	clock := syncer.Clock(time.Now)
	h := synctest.NewHub(clock)
	h.Put("feedback_x.md", "---\nname: x\ndescription: what changed\ntype: feedback\n---\nx\n")
	calls := h.Remote()
	s := syncer.New(syncer.Ports{
		Local: synctest.NewDisk(clock).Local(), State: synctest.NewState(), Remote: calls, Guard: &synctest.Guard{}, Clock: clock, NewID: uuid.NewString,
	}, syncer.Options{})
	if _, err := s.Cycle(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := calls.Changes(t.Context(), memory.Cursor{})
	if err != nil || len(page.Commits) != 1 || s.Status().Cursor != page.Cursors[0] {
		t.Fatalf("%d commits, at %v: %v", len(page.Commits), s.Status().Cursor, err)
	}
	cl, err := client.New(client.Options{Addr: "127.0.0.1:1", Token: "msv_x"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cl.Close() })
	state, link := stateDir(t.TempDir()), Link{Team: "acme", Project: "pay", Dir: filepath.Join(t.TempDir(), "gone")}
	r := &runner{
		link: link, hub: newHub(cl, state, slog.New(slog.DiscardHandler), time.Now), remote: &remote{},
		log: slog.New(slog.DiscardHandler), m: newMetrics(prometheus.NewRegistry()), now: time.Now, s: s, moved: make(chan struct{}),
		lock: newRootLock(link.Dir), remember: func() error { return nil }, redacted: redactions{state: state, link: link, now: time.Now}, gate: state.newUploadGate(link, time.Now),
	}
	r.remote.event(client.Event{Kind: client.EventBookmark, Cursor: memory.Cursor{Epoch: page.Cursors[0].Epoch}})
	r.remote.sawHead(page.Cursors[0])
	return r, client.Event{Kind: client.EventCommit, Cursor: page.Cursors[0], Commit: page.Commits[0]}
}

// A commit that a cycle has pulled by a call before the stream told of it is news all the
// same, and at once: no cycle need follow.
func TestPulledBeforeTheStreamTellsIsNews(t *testing.T) {
	r, ev := followed(t)
	if !r.remote.event(ev) {
		t.Fatal("the stream's commit wakes nobody")
	}
	if _, ran := r.step(t.Context(), wakeRemote, false); ran {
		t.Error("a cycle ran for what is here")
	}
	if got := r.news.since(time.Time{}); len(got) != 1 || got[0].Path != "feedback_x.md" || got[0].Description != "what changed" {
		t.Errorf("news: %+v", got)
	}
}

// A look that was due is not lost because the stream tells of what is here at the same
// instant: nothing else would make it up.
func TestDueLookIsNotLostToTheStream(t *testing.T) {
	r, ev := followed(t)
	r.remote.event(ev)
	if _, ran := r.step(t.Context(), wakeRemote, true); !ran {
		t.Error("the timer ran out, and no cycle ran")
	}
}
