package hub_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// TestOldCommitsAreNotLate lets a reader come a day after a commit: what it catches up
// with does not count as a day of lag, or each machine that wakes would raise an alarm.
func TestOldCommitsAreNotLate(t *testing.T) {
	var mu sync.Mutex
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	later := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	h := hubtest.Start(t, hubtest.Options{Now: clock})
	c := as(t, h, h.Token("acme", "app", "writer"))
	c.mustCommit(t, put("a.md", "one"))
	later(24 * time.Hour)
	w := c.watch(t, &memsvcv1.WatchedProject{Project: project})
	w.commit(t)
	c.mustCommit(t, put("a.md", "two"))
	w.commit(t)
	hubtest.Eventually(t, patience, "two deliveries counted", func() bool {
		return strings.Contains(metricsText(t, h), "\nmemsvc_delivery_seconds_count 2\n")
	})
	if got := metricsText(t, h); !strings.Contains(got, "\nmemsvc_delivery_seconds_sum 0\n") {
		t.Error("what was caught up with counts as late")
	}
}
