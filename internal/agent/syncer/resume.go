package syncer

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/memsvc/memsvc/internal/memory"
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
		text, err := c.s.ports.Local.Read(ctx, p)
		switch {
		case errors.Is(err, ErrLocalChanged), errors.Is(err, ErrLocalAbsent):
			continue
		case err != nil:
			// Going on without it would move the cursor past what tells us of the pull.
			return &stepError{step: "read", path: p, err: err}
		case memory.ETagOf(text) == e:
			c.setBase(p, BaseEntry{Text: e, Hub: e, Local: e, HubRevision: rev}, text)
		}
	}
	return nil
}
