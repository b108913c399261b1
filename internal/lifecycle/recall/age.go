package recall

import (
	"fmt"
	"time"
)

// Age returns how old a memory is in words: "today", "yesterday", "N days ago". Days
// are those of the calendar where now is; what lies ahead, by a wrong clock, is today.
func Age(t, now time.Time) string {
	switch d := days(t, now); {
	case d <= 0:
		return "today"
	case d == 1:
		return "yesterday"
	default:
		return fmt.Sprintf("%d days ago", d)
	}
}

// Caution is what a memory's reader is told of its age: nothing of one that is at most a
// day old (SPEC 6.6).
func Caution(t, now time.Time) string {
	if now.Sub(t) <= 24*time.Hour {
		return ""
	}
	return "This note is from " + Age(t, now) + " and says what was seen then; what it says of code, files and lines may be outdated. Check before relying on it."
}

// days counts the midnights between two times.
func days(t, now time.Time) int {
	t = t.In(now.Location())
	y1, m1, d1 := t.Date()
	y2, m2, d2 := now.Date()
	// In UTC every day has 24 hours.
	a := time.Date(y1, m1, d1, 0, 0, 0, 0, time.UTC)
	b := time.Date(y2, m2, d2, 0, 0, 0, 0, time.UTC)
	return int(b.Sub(a) / (24 * time.Hour))
}
