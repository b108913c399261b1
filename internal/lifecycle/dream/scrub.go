package dream

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

// whyRedacted is why a change is not taken back.
const whyRedacted = "its text was redacted"

// Scrub takes all texts of team memories that were redacted on the hub out of the records
// of past dreams (ruling 13.14): the hub says at which paths it redacted, not what. What
// they were part of cannot be undone any more. While a dream is at work it is ErrBusy.
func (d *Dreamer) Scrub(ctx context.Context, paths []memory.Path) error {
	release, err := d.exclusive()
	if err != nil {
		return err
	}
	defer release()
	if _, err := d.recover(ctx); err != nil {
		return err
	}
	records, err := d.Log(ctx)
	if err != nil {
		return err
	}
	hit := func(r memories.Ref) bool { return r.Scope == memory.ScopeTeam && slices.Contains(paths, r.Path) }
	for _, r := range records {
		found := false
		for i := range r.Changes {
			if c := &r.Changes[i]; hit(c.Ref) && (c.Old != nil || c.New != nil) {
				c.Old, c.New, c.Superseded, c.Skipped, found = nil, nil, nil, whyRedacted, true
			}
		}
		if found {
			if err := d.write(d.recordFile(r.ID), &r); err != nil {
				return err
			}
		}
		for _, p := range paths {
			kept := memories.Ref{Scope: memory.ScopeTeam, Path: p}
			if err := remove(filepath.Join(d.keptDir(r.ID), filepath.FromSlash(kept.String()))); err != nil {
				return err
			}
		}
	}
	return nil
}
