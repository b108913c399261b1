package memdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/memsvc/memsvc/internal/memory"
)

// IndexReport is how an index and the files beside it differ.
type IndexReport struct {
	Ghosts   []memory.IndexEntry // lines whose file is not there
	Missing  []memory.Path       // files without a line; a redaction's marker needs none
	Warnings []memory.Violation  // long lines, caps
}

// OK reports whether there is nothing to mend. Warnings are for a person.
func (r IndexReport) OK() bool { return len(r.Ghosts) == 0 && len(r.Missing) == 0 }

// CheckIndex compares the index with the files.
func (d *Dir) CheckIndex(ctx context.Context) (IndexReport, error) {
	content, _, err := d.read(memory.IndexName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return IndexReport{}, fmt.Errorf("index %s: %w", memory.IndexName, err)
	}
	return d.report(ctx, content)
}

func (d *Dir) report(ctx context.Context, index []byte) (IndexReport, error) {
	files, _, err := d.Files(ctx)
	if err != nil {
		return IndexReport{}, err
	}
	paths := make([]memory.Path, 0, len(files))
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	x := memory.ParseIndex(index)
	missing := slices.DeleteFunc(x.Missing(paths), func(p memory.Path) bool { return d.redacted(string(p)) })
	r := IndexReport{Missing: missing, Warnings: memory.IndexWarnings(memory.IndexName, index)}
	for _, e := range x.Ghosts(paths) {
		// A personal index may name the team's files too: what is there is no ghost.
		if !d.Has(e.Key()) {
			r.Ghosts = append(r.Ghosts, e)
		}
	}
	return r, nil
}

// Mend drops the ghosts of the index and adds the lines that are missing; prose and all
// other lines stay. It returns what it found.
func (d *Dir) Mend(ctx context.Context) (IndexReport, error) {
	return d.mend(ctx, func(*memory.Index) {})
}

// Rebuild makes the entries anew from the files' frontmatter, in path order, after
// whatever prose the index has. It returns what it found before.
func (d *Dir) Rebuild(ctx context.Context) (IndexReport, error) {
	return d.mend(ctx, func(x *memory.Index) {
		for _, e := range x.Entries() {
			if p, err := memory.ParsePath(e.Key()); err == nil {
				if _, err := d.root.Stat(string(p)); err == nil && !d.own(p) {
					continue // a line about a file of the team's
				}
			}
			x.Drop(e.Key())
		}
	})
}

// own reports whether a path is this directory's, not that of team/ below it.
func (d *Dir) own(p memory.Path) bool { return p.Segments()[0] != TeamDir }

func (d *Dir) mend(ctx context.Context, first func(*memory.Index)) (report IndexReport, err error) {
	err = d.locked(ctx, func() error {
		content, _, err := d.read(memory.IndexName)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("index %s: %w", memory.IndexName, err)
		}
		if report, err = d.report(ctx, content); err != nil {
			return err
		}
		report.Warnings, err = d.editIndex(func(x *memory.Index) error {
			x.DropMarker()
			first(x)
			now, err := d.report(ctx, x.Render())
			if err != nil {
				return err
			}
			for _, e := range now.Ghosts {
				x.Drop(e.Key())
			}
			for _, p := range now.Missing {
				text, _, err := d.read(string(p))
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				// One that cannot be parsed, or read, still gets a line with its name.
				fm, _, _ := memory.ParseFrontmatter(text)
				x.Set(memory.EntryFor(p, fm))
			}
			return nil
		})
		return err
	})
	return report, err
}

// redacted reports whether a redaction's marker lies there.
func (d *Dir) redacted(name string) bool {
	text, _, err := d.read(name)
	return err == nil && memory.IsRedactionMarker(text)
}

// Has reports whether there is a file of this name, or may be: false is certain. What
// lies outside of the directory is not looked at.
func (d *Dir) Has(name string) bool {
	_, err := d.root.Stat(name)
	return !errors.Is(err, fs.ErrNotExist)
}
