package syncer

import (
	"context"
	"maps"
	"slices"

	"github.com/memsvc/memsvc/internal/memory"
)

// honourIntents settles the steps whose end an earlier cycle did not see.
func (c *cycle) honourIntents(ctx context.Context) error {
	for _, p := range slices.Sorted(maps.Keys(c.s.state.Intents)) {
		i := c.s.state.Intents[p]
		if c.masked(p) {
			continue
		}
		rev, happened := memory.Revision(0), false
		if i.ToHub {
			rev, happened = c.passed[p][i.Wanted]
			if f := c.remote[p]; f.ETag == i.Wanted {
				rev, happened = f.Revision, true
			}
		} else if c.local[p] == i.Wanted {
			rev, happened = c.passed[p][i.Base], true
			if f := c.remote[p]; f.ETag == i.Base {
				rev = f.Revision
			}
		}
		if !happened {
			// A write that did not happen is over; a request may still arrive.
			if !i.ToHub || c.base[p].Hub == i.Wanted {
				c.todo.DropIntents = append(c.todo.DropIntents, p)
			}
			continue
		}
		entry := BaseEntry{Text: i.Base, Hub: i.Base, HubRevision: rev, Local: i.Base}
		if memory.IsIndex(p) {
			// What of the file on disk stays private is worked out anew.
			entry.Local = ""
			if !i.ToHub {
				entry.Local = i.Wanted
			}
		}
		if text, err := c.text(ctx, i.Base); err == nil {
			c.setBase(p, entry, text)
			c.todo.DropIntents = append(c.todo.DropIntents, p)
		}
	}
	return nil
}
