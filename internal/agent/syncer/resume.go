package syncer

import (
	"context"
	"maps"
	"slices"
)

// resumePulls settles pulls whose end was not saved: a file that holds a text which its
// path went through on the hub since the baseline was pulled there, by a cycle that
// ended before the baseline knew. Without this the file would look like an edit of this
// machine, which would conflict with a later text of the hub, or bring back what was
// deleted there meanwhile.
func (c *cycle) resumePulls(ctx context.Context) error {
	if c.full {
		return nil // compared by texts already, and the listing tells no revisions of earlier ones
	}
	for _, p := range slices.Sorted(maps.Keys(c.passed)) {
		e := c.local[p]
		rev, was := c.passed[p][e]
		b := c.base[p]
		if e == "" || !was || e == b.Local || e == b.Hub || e == c.remote[p].ETag || rev <= b.HubRevision || c.masked(p) {
			continue
		}
		text, ok, err := c.readAs(ctx, p, e)
		if err != nil {
			return err
		}
		entry := BaseEntry{Text: e, Hub: e, Local: e, HubRevision: rev}
		if ok {
			c.setBase(p, entry, text)
		} else {
			c.base[p] = entry // planned with; a later cycle, which can read the file, saves it
		}
	}
	return nil
}
