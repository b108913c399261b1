package dream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/memsvc/memsvc/internal/memory"
)

// whyRedacted is why a change is not taken back.
const whyRedacted = "its text was redacted"

// Scrub takes texts that were redacted on the hub out of the records of past dreams
// (ruling 13.14). What they were part of cannot be undone any more.
func (d *Dreamer) Scrub(ctx context.Context, etags []memory.ETag) error {
	if _, err := d.Recover(ctx); err != nil {
		return err
	}
	records, err := d.Log(ctx)
	if err != nil {
		return err
	}
	hit := func(text []byte) bool { return text != nil && slices.Contains(etags, memory.ETagOf(text)) }
	for _, r := range records {
		found := false
		for i := range r.Changes {
			if c := &r.Changes[i]; hit(c.Old) || hit(c.New) {
				c.Old, c.New, c.Superseded, c.Skipped, found = nil, nil, nil, whyRedacted, true
			}
		}
		if found {
			if err := d.write(d.recordFile(r.ID), &r); err != nil {
				return err
			}
		}
	}
	err = filepath.WalkDir(filepath.Join(d.Dir, "kept"), func(file string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(file)
		if err == nil && hit(text) {
			err = os.Remove(file)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("dream: %w", err)
	}
	return nil
}
