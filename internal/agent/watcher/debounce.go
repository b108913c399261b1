package watcher

import "time"

// debounce turns bursts into single signals: it is due once nothing was hit for
// quiet, and in any case when the first hit is ceiling old, so that a file written
// without pause still syncs. The zero times mean that nothing is pending.
type debounce struct {
	quiet, ceiling time.Duration
	first, last    time.Time
}

func (d *debounce) hit(now time.Time) {
	if d.first.IsZero() {
		d.first = now
	}
	d.last = now
}

func (d *debounce) reset() { d.first, d.last = time.Time{}, time.Time{} }

// due returns when to signal; ok is false while nothing is pending.
func (d *debounce) due() (at time.Time, ok bool) {
	if d.first.IsZero() {
		return time.Time{}, false
	}
	quiet, ceiling := d.last.Add(d.quiet), d.first.Add(d.ceiling)
	if ceiling.Before(quiet) {
		return ceiling, true
	}
	return quiet, true
}
