package watcher

import "slices"

// maxNames bounds the names kept in hints; past it the whole tree is walked, which
// costs about the same.
const maxNames = 256

// hints is what is known of a root's events since its goroutine last looked. It is a
// level, not a queue: its size is bounded whatever happens on disk.
type hints struct {
	dirty    bool     // a scan may see something new
	rewalk   bool     // watches may be missing anywhere
	gone     []string // watched directories that went away
	appeared []string // names that may be directories without a watch
}

func (h hints) any() bool {
	return h.dirty || h.rewalk || len(h.gone) > 0 || len(h.appeared) > 0
}

func (h *hints) merge(o hints) {
	h.dirty = h.dirty || o.dirty
	h.rewalk = h.rewalk || o.rewalk
	h.gone = add(h.gone, o.gone, &h.rewalk)
	h.appeared = add(h.appeared, o.appeared, &h.rewalk)
}

func add(names, more []string, rewalk *bool) []string {
	for _, n := range more {
		if len(names) >= maxNames {
			*rewalk = true
			return names
		}
		// A storm hits the same few names again and again.
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}
