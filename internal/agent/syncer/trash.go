package syncer

import (
	"cmp"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/memory"
)

// Why texts are in the trash that the hub's history has as well.
const (
	trashDeleted = "deleted on the hub"
	trashStale   = "an old version, found after the sync state was lost"
)

// trashLost is why a text is in the trash that the hub's history had.
const trashLost = "the restored hub had lost it"

// Shared reports whether the hub's history has the text too, so that it is not gone with
// the trash. A deleted index may have had lines that never left this machine.
func (t Trashed) Shared() bool {
	return t.Reason == trashStale || t.Reason == trashDeleted && !memory.IsIndex(t.Path)
}

// Sizer is a State that tells how many bytes a text has; 0 = it keeps none. Without it the
// trash is bounded by age alone.
type Sizer interface {
	Size(etag memory.ETag) int64
}

// trimTrash gives up what has been in the trash for too long, and what is too much: texts
// that the hub's history has before those that nobody else has, and the oldest first.
func (c *cycle) trimTrash() {
	s := c.s
	var kept []Trashed
	for id, t := range s.state.Trash {
		switch {
		case slices.ContainsFunc(c.todo.PutTrash, func(n Trashed) bool { return n.ID == id }):
		case c.now.Sub(t.Time) > s.opts.TrashFor:
			c.todo.DropTrash = append(c.todo.DropTrash, id)
		default:
			kept = append(kept, t)
		}
	}
	sizer, able := s.ports.State.(Sizer)
	if !able {
		return
	}
	total, counted := int64(0), map[memory.ETag]bool{}
	fits := func(t Trashed) bool {
		if !counted[t.ETag] {
			counted[t.ETag] = true
			total += sizer.Size(t.ETag)
		}
		return total <= s.opts.TrashBytes
	}
	if !slices.ContainsFunc(kept, func(t Trashed) bool { return !fits(t) }) {
		return
	}
	slices.SortFunc(kept, func(a, b Trashed) int {
		if d := cmp.Compare(rank(a), rank(b)); d != 0 {
			return d
		}
		if d := b.Time.Compare(a.Time); d != 0 {
			return d
		}
		return strings.Compare(a.ID, b.ID)
	})
	total = 0
	clear(counted)
	for _, t := range kept {
		if !fits(t) {
			c.todo.DropTrash = append(c.todo.DropTrash, t.ID)
			c.result.GivenUp = append(c.result.GivenUp, t)
		}
	}
	slices.SortFunc(c.result.GivenUp, func(a, b Trashed) int { return strings.Compare(string(a.Path), string(b.Path)) })
}

// rank orders what is kept: first what is nowhere else.
func rank(t Trashed) int {
	if t.Shared() {
		return 1
	}
	return 0
}
