package client

import (
	"sync"
	"time"
)

// offsetSamples is how many measurements the filter looks back on: with a bookmark
// every 15 s about four minutes, so that a corrected clock is believed soon.
const offsetSamples = 16

// offsetFilter estimates the hub's time minus ours from one-way messages. A message
// sent at s and received at r shows offset minus delay; delay is never negative, so
// the largest of the last samples is the best one.
type offsetFilter struct {
	mu      sync.Mutex // guards what follows
	samples [offsetSamples]time.Duration
	n       int
}

func (f *offsetFilter) add(sent, received time.Time) {
	if sent.IsZero() {
		return
	}
	// Round drops the monotonic reading: wall clocks are compared here.
	d := sent.Sub(received.Round(0))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n > 0 {
		// A step of a clock makes older samples worthless.
		if last := f.samples[(f.n-1)%offsetSamples]; (d - last).Abs() > 5*time.Second {
			f.n = 0
		}
	}
	f.samples[f.n%offsetSamples] = d
	f.n++
}

func (f *offsetFilter) value() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n == 0 {
		return 0
	}
	best := f.samples[0]
	for _, s := range f.samples[:min(f.n, offsetSamples)] {
		best = max(best, s)
	}
	return best
}
