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

func (d *Dreamer) scrubRecord(r *Record, paths []memory.Path, redacted func(texts [][]byte) ([]bool, error)) error {
	goes := func(p memory.Path, texts ...[]byte) (bool, error) {
		texts = slices.DeleteFunc(texts, func(t []byte) bool { return len(t) == 0 })
		if len(texts) == 0 {
			return false, nil
		}
		named := slices.Contains(paths, p)
		if named && memory.IsIndex(p) {
			return true, nil
		}
		gone, err := redacted(texts)
		return slices.Contains(gone, true) || gone == nil && named, err
	}
	changed := false
	for i := range r.Changes {
		c := &r.Changes[i]
		if c.Ref.Scope != memory.ScopeTeam {
			continue
		}
		hit, err := goes(c.Ref.Path, c.Old, c.New)
		if err != nil {
			return err
		}
		if hit {
			c.Old, c.New, c.Superseded, c.Skipped, changed = nil, nil, nil, whyRedacted, true
		}
		file := filepath.Join(d.keptDir(r.ID), filepath.FromSlash(c.Ref.String()))
		kept, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if hit, err = goes(c.Ref.Path, kept); err != nil {
			return err
		}
		if hit {
			if err := remove(file); err != nil {
				return err
			}
		}
	}
	if !changed {
		return nil
	}
	return d.write(d.recordFile(r.ID), r)
}
