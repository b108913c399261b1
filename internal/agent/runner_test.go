package agent

import (
	"errors"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
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
