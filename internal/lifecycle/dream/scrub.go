package dream

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/memsvc/memsvc/internal/memory"
)

// whyRedacted is why a change is not taken back.
const whyRedacted = "its text was redacted"

// Scrub takes the texts of team memories that were redacted on the hub out of the records
// of past dreams (ruling 13.14). redacted says of each text whether it was; where it
// cannot tell it returns none, and all texts at paths count as redacted. Indexes at paths
// always do: what a machine has of them has lines of its own. What a redacted text was
// part of cannot be undone any more. While a dream is at work it is ErrBusy.
func (d *Dreamer) Scrub(ctx context.Context, paths []memory.Path, redacted func(texts [][]byte) ([]bool, error)) error {
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
	for _, r := range records {
		if err := d.scrubRecord(&r, paths, redacted); err != nil {
			return err
		}
	}
	return nil
}

// scrubRecord asks about all texts of a record in one go.
func (d *Dreamer) scrubRecord(r *Record, paths []memory.Path, redacted func(texts [][]byte) ([]bool, error)) error {
	var texts [][]byte
	at := map[memory.ETag]int{}
	gather := func(text []byte) {
		e := memory.ETagOf(text)
		if _, known := at[e]; !known && len(text) > 0 {
			at[e] = len(texts)
			texts = append(texts, text)
		}
	}
	kept := make([][]byte, len(r.Changes))
	for i := range r.Changes {
		c := &r.Changes[i]
		if c.Ref.Scope != memory.ScopeTeam {
			continue
		}
		var err error
		if kept[i], err = os.ReadFile(filepath.Join(d.keptDir(r.ID), filepath.FromSlash(c.Ref.String()))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		gather(c.Old)
		gather(c.New)
		gather(kept[i])
	}
	if len(texts) == 0 {
		return nil
	}
	gone, err := redacted(texts)
	if err != nil {
		return err
	}
	goes := func(p memory.Path, text []byte) bool {
		named := slices.Contains(paths, p)
		switch i, known := at[memory.ETagOf(text)]; {
		case !known:
			return false
		case named && memory.IsIndex(p), named && gone == nil:
			return true
		default:
			return gone != nil && gone[i]
		}
	}
	changed := false
	for i := range r.Changes {
		c := &r.Changes[i]
		if c.Ref.Scope != memory.ScopeTeam {
			continue
		}
		if goes(c.Ref.Path, c.Old) || goes(c.Ref.Path, c.New) {
			c.Old, c.New, c.Superseded, c.Skipped, changed = nil, nil, nil, whyRedacted, true
		}
		if goes(c.Ref.Path, kept[i]) {
			if err := remove(filepath.Join(d.keptDir(r.ID), filepath.FromSlash(c.Ref.String()))); err != nil {
				return err
			}
		}
	}
	if !changed {
		return nil
	}
	return d.write(d.recordFile(r.ID), r)
}
