package jsonhttp

import (
	"net/http"
	"testing"
	"time"
)

// TestRetryAfterADate: a date says how long from now, and one that has passed says nothing.
func TestRetryAfterADate(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for ahead, want := range map[time.Duration]time.Duration{15 * time.Second: 15 * time.Second, -time.Second: 0, 0: 0, 48 * time.Hour: maxAfter} {
		h := http.Header{"Retry-After": {now.Add(ahead).Format(http.TimeFormat)}}
		if got := retryAfter(h, now); got != want {
			t.Errorf("%v ahead: %v, want %v", ahead, got, want)
		}
	}
}
