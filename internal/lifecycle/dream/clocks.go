package dream

import (
	"slices"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

// A memory has two times: what it says of itself (`modified`), and its file's. Neither can
// be trusted alone. An editor that does not know the field leaves it as it was, so that
// what was written today says January; a copied or restored store has the time of the copy
// on every file. So "newer", where a fact is to be dropped for another one, is what both
// say. Where they disagree nobody can tell, and nothing is dropped.
type clocks struct {
	own, file span
}

// span is from the oldest to the newest of the times of what a text was made of.
type span struct{ first, last time.Time }

func clocksOf(own, file time.Time) clocks {
	return clocks{span{own, own}, span{file, file}}
}

// with is the clocks of a text that took in another one.
func (c clocks) with(other clocks) clocks {
	return clocks{c.own.with(other.own), c.file.with(other.file)}
}

func (s span) with(other span) span {
	if other.first.Before(s.first) {
		s.first = other.first
	}
	if other.last.After(s.last) {
		s.last = other.last
	}
	return s
}

// newer reports whether all of a text is certainly newer than all of another: by one of
// the clocks, and not against the other.
func (c clocks) newer(other clocks) bool {
	if c.own.first.Before(other.own.last) || c.file.first.Before(other.file.last) {
		return false
	}
	return c.own.first.After(other.own.last) || c.file.first.After(other.file.last)
}

// recall gives the memories the clocks of what earlier dreams let them take in: a line of
// January is not newer than one of July because it stands in a memory of today.
func (t *tree) recall(records []Record) {
	took := map[memories.Ref]clocks{}
	for _, r := range slices.Backward(records) { // the oldest first
		if !r.Undone.IsZero() {
			continue
		}
		for _, c := range r.Changes {
			if c.Kind != Delete || c.Skipped != "" || c.Into == (memories.Ref{}) {
				continue
			}
			own := c.OldTime
			if fm, _, err := memory.ParseFrontmatter(c.Old); err == nil && !fm.Modified.IsZero() {
				own = fm.Modified
			}
			of := clocksOf(own, c.OldTime)
			for _, ref := range []memories.Ref{c.Ref, c.Into} {
				if more, ok := took[ref]; ok {
					of = of.with(more)
				}
			}
			took[c.Into] = of
			delete(took, c.Ref)
		}
	}
	for ref, of := range took {
		if it := t.at[ref]; it != nil {
			it.clocks = it.clocks.with(of)
		}
	}
}
