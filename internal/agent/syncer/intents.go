package syncer

import (
	"context"
	"maps"
	"slices"

	"github.com/memsvc/memsvc/internal/memory"
)

// maxEarlier bounds Intent.Earlier.
const maxEarlier = 8

// intend notes that a text is about to be sent.
func (c *cycle) intend(p memory.Path, text []byte) {
	e := memory.ETagOf(text)
	c.keepText(text)
	c.putIntent(Intent{Path: p, ToHub: true, Wanted: e, Base: e})
}

// intendDelete notes that a delete is about to be sent.
func (c *cycle) intendDelete(p memory.Path) { c.putIntent(Intent{Path: p, ToHub: true}) }

// putIntent adds to an intent what was intended before and may still arrive.
func (c *cycle) putIntent(i Intent) {
	if old, sent := c.s.state.Intents[i.Path]; sent && old.ToHub {
		for _, was := range append(slices.Clone(old.Earlier), old.Wanted) {
			if was != i.Wanted && was != "" {
				i.Earlier = append(i.Earlier, was)
			}
		}
		i.Earlier = i.Earlier[max(0, len(i.Earlier)-maxEarlier):]
	}
	c.todo.PutIntents = append(c.todo.PutIntents, i)
}

// notSent notes that the text that was intended last certainly did not arrive. What was
// sent before it still may. A refused text is not kept.
func (c *cycle) notSent(p memory.Path) {
	i, sent := c.s.state.Intents[p]
	n := len(i.Earlier)
	if !sent || n == 0 {
		c.todo.DropIntents = append(c.todo.DropIntents, p)
		return
	}
	c.todo.PutIntents = append(c.todo.PutIntents, Intent{Path: p, ToHub: true, Wanted: i.Earlier[n-1], Earlier: i.Earlier[:n-1]})
}

// ours reports whether e is a text that this machine sent to p without seeing an answer.
func (i Intent) ours(e memory.ETag) bool {
	return i.ToHub && e != "" && (i.Wanted == e || slices.Contains(i.Earlier, e))
}

// honourIntents settles the steps whose end an earlier cycle did not see.
func (c *cycle) honourIntents(ctx context.Context) error {
	for _, p := range slices.Sorted(maps.Keys(c.s.state.Intents)) {
		if c.masked(p) {
			continue
		}
		i := c.s.state.Intents[p]
		f := c.remote[p]
		switch rev, passed := c.passed[p][i.Wanted]; {
		case i.ours(f.ETag):
			if err := c.fetch(ctx, []memory.Path{p}); err != nil {
				return err
			}
			if f = c.remote[p]; f.Content != nil {
				c.agreeOn(p, i, f.ETag, f.Revision, f.Content)
			}
		case i.ToHub && passed && i.Base != "":
			if text, err := c.text(ctx, i.Base); err == nil {
				c.agreeOn(p, i, i.Base, rev, text)
			}
		case i.ToHub && i.Wanted == "" && f.ETag == "" && c.base[p].Hub != "":
			// Our delete arrived. What is here now was put here since.
			c.dropBase(p)
			c.todo.DropIntents = append(c.todo.DropIntents, p)
		case i.ToHub && c.base[p].Hub != i.Wanted:
			// It may still arrive.
		case !i.ToHub && c.local[p] == i.Wanted:
			rev := c.passed[p][i.Base]
			if f.ETag == i.Base {
				rev = f.Revision
			}
			if text, err := c.text(ctx, i.Base); err == nil {
				c.agreeOn(p, i, i.Base, rev, text)
			}
		default:
			c.todo.DropIntents = append(c.todo.DropIntents, p)
		}
	}
	return nil
}

// agreeOn makes a text the agreed one, because an intent turned out to have been
// carried out.
func (c *cycle) agreeOn(p memory.Path, i Intent, e memory.ETag, rev memory.Revision, text []byte) {
	entry := BaseEntry{Text: e, Hub: e, HubRevision: rev, Local: e}
	if memory.IsIndex(p) {
		// What of the file on disk stays private is worked out anew.
		entry.Local = ""
		if !i.ToHub {
			entry.Local = i.Wanted
		}
	}
	c.setBase(p, entry, text)
	c.todo.DropIntents = append(c.todo.DropIntents, p)
}

// resumeDeletes settles deletes that were pulled by a cycle which ended before the
// baseline knew. If the hub has the path again, even with the very bytes of the
// baseline, then that it is missing here is not this machine's doing: whoever made it
// anew comes after the delete, and after ours too if there was one.
func (c *cycle) resumeDeletes() {
	if c.full {
		return
	}
	var missing []memory.Path
	for p := range c.base {
		if c.local[p] == "" && c.remote[p].ETag != "" && !c.masked(p) {
			missing = append(missing, p)
		}
	}
	slices.Sort(missing)
	for _, p := range missing {
		b := c.base[p]
		a, ahead := c.s.state.Ahead[p]
		gone := ahead && a.ETag == "" && a.Revision > b.HubRevision
		for rev, e := range c.told[p] {
			gone = gone || e == "" && rev > b.HubRevision
		}
		if gone {
			c.dropBase(p)
		}
	}
}
