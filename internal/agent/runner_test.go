package agent

import (
	"errors"
	"testing"
	"time"
)

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
