package service

import (
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// TestRefusalsThatCannotBeWritten: what is kept of refusals does not grow while the store
// takes no events or no counts, and no count goes missing.
func TestRefusalsThatCannotBeWritten(t *testing.T) {
	now := time.Unix(1e9, 0)
	r := refusal{"acme", "token:ci", "commit.refused", "subject", "SECRET_DETECTED"}
	refuse := func(f *refusals, at time.Time) func(int64) int64 {
		_, _, done := f.fold("ci", "acme", r, memory.ReasonSecretDetected, at)
		return done
	}

	// The event is written so slowly that its span ends before it fails.
	f := newRefusals()
	for i := range 50 {
		at := now.Add(time.Duration(i) * 2 * foldSpan)
		done := refuse(f, at)
		refuse(f, at)
		f.take(at.Add(foldSpan))
		if lost := done(0); lost != 2 {
			t.Fatalf("%d lost, want both", lost)
		}
	}
	if n := len(f.ended); n != 0 {
		t.Errorf("%d rows are kept that never were on record", n)
	}

	// Counts fail for longer than a span.
	f = newRefusals()
	refuse(f, now)(7)
	for range 720 {
		refuse(f, now)
		for _, u := range f.take(now) {
			f.giveBack(u)
		}
	}
	now = now.Add(foldSpan)
	for range 720 {
		for _, u := range f.take(now) {
			f.giveBack(u)
		}
	}
	if n := len(f.ended); n != 1 {
		t.Errorf("%d rows wait for one event", n)
	}
	out := f.take(now)
	if len(out) != 1 || out[0].id != 7 || out[0].n != 720 {
		t.Errorf("%d counts are to be written, the first is %+v; want one, of 720 more of event 7", len(out), out[:min(len(out), 1)])
	}
	if left := f.take(now); len(f.ended) != 0 || len(left) != 0 {
		t.Errorf("left: %+v, %d rows", left, len(f.ended))
	}
}
