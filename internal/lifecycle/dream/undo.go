package dream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wholefile"
)

// Undo takes back the last dream that still stands. What was edited since is merged, or
// left as it is where that does not go; its text from before the dream is then kept beside
// the state, and Left says where. When no dream is left it is ErrNoDream.
func (d *Dreamer) Undo(ctx context.Context) (Report, error) {
	now := d.Now()
	var r Report
	if _, err := d.Recover(ctx); err != nil {
		return r, err
	}
	release, err := d.exclusive()
	if err != nil {
		return r, err
	}
	defer release()
	records, err := d.Log(ctx)
	if err != nil {
		return r, err
	}
	i := slices.IndexFunc(records, func(r Record) bool { return r.Undone.IsZero() })
	if i < 0 {
		return r, ErrNoDream
	}
	lock, ok, err := d.take(now)
	if err != nil {
		return r, err
	}
	if !ok {
		return r, ErrBusy
	}
	err = d.undo(ctx, &records[i], now, &r)
	r.Took = d.Now().Sub(now)
	return r, errors.Join(err, d.release(lock)) // it was no dream: the lock says what it said
}

func (d *Dreamer) undo(ctx context.Context, rec *Record, now time.Time, r *Report) error {
	free, err := d.hold(ctx)
	if err != nil {
		return err
	}
	defer free()
	k := &disk{store: d.Store, open: map[memory.Scope]*memdir.Dir{}}
	defer k.close()
	u := &undoing{Dreamer: d, disk: k, id: rec.ID, stay: map[memories.Ref]bool{}}
	for _, c := range rec.Changes {
		if c.Skipped != "" || memory.IsIndex(c.Ref.Path) {
			continue
		}
		if err := u.file(ctx, &c); err != nil {
			return fmt.Errorf("dream: undo: %w", err)
		}
	}
	for _, c := range rec.Changes {
		if c.Skipped == "" && memory.IsIndex(c.Ref.Path) {
			if err := u.index(ctx, &c); err != nil {
				return fmt.Errorf("dream: undo: %w", err)
			}
		}
	}
	j := &journal{Record: Record{ID: rec.ID, Time: now, By: rec.By, Changes: slices.Concat(u.files, u.indexes, u.deletes), Left: u.left}, Undoes: rec.ID}
	if err := d.commit(ctx, j); err != nil {
		return err
	}
	r.ID, r.By, r.Changes, r.Left = rec.ID, rec.By, j.Changes, u.left
	for _, c := range j.Changes {
		if c.Skipped != "" {
			r.Left = append(r.Left, Left{c.Ref.String(), c.Skipped})
		}
	}
	return nil
}

// undoing collects the change set that takes a dream back.
type undoing struct {
	*Dreamer
	*disk
	id                      string
	files, indexes, deletes []Change
	stay                    map[memories.Ref]bool // made by the dream, and edited since
	left                    []Left
}

const reasonUndone = "taken back"

// now reads a file as it is; nil = it is not there.
func (u *undoing) now(r memories.Ref) ([]byte, time.Time, error) {
	d, err := u.dir(r.Scope)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, time.Time{}, err
	}
	text, at, err := d.Read(r.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, time.Time{}, nil
	case err == nil && text == nil:
		text = []byte{}
	}
	return text, at, err
}

func (u *undoing) file(ctx context.Context, c *Change) error {
	now, at, err := u.now(c.Ref)
	if err != nil {
		return err
	}
	back := Change{Ref: c.Ref, Kind: Edit, Reasons: []string{reasonUndone}, Old: now, New: c.Old, OldTime: at, NewTime: c.OldTime}
	switch {
	case now != nil && c.Old != nil && bytes.Equal(now, c.Old), now == nil && c.Kind == Create:
		return nil // it is so already
	case c.Kind == Create && bytes.Equal(now, c.New):
		back.Kind, back.NewTime = Delete, time.Time{}
		u.deletes = append(u.deletes, back)
		return nil
	case c.Kind == Create:
		u.stay[c.Ref] = true
		u.left = append(u.left, Left{c.Ref.String(), "it was edited since, and stays"})
		return nil
	case c.Kind == Delete && now == nil:
		back.Kind = Create
	case c.Kind == Delete:
		return u.keep(c, whyThere)
	case now == nil:
		return u.keep(c, "it was deleted since, and stays so")
	case !bytes.Equal(now, c.New):
		merged, ok := []byte(nil), false
		if u.Merge != nil {
			merged, ok = u.Merge(c.Ref.Path, c.New, now, c.Old)
		}
		if !ok {
			return u.keep(c, "it was edited since, and stays as it is")
		}
		if bytes.Equal(merged, now) {
			return nil
		}
		back.New, back.NewTime = merged, time.Time{}
	}
	if c.Ref.Scope == memory.ScopeTeam {
		if err := u.vet(ctx, c.Ref, back.New); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return u.keep(c, "the guard does not let its text from before the dream into the team's directory")
		}
	}
	u.files = append(u.files, back)
	return nil
}

func (d *Dreamer) keptDir(id string) string { return filepath.Join(d.Dir, "kept", id) }

// keep puts the text from before the dream beside the state, and says where.
func (u *undoing) keep(c *Change, why string) error {
	file := filepath.Join(u.keptDir(u.id), filepath.FromSlash(c.Ref.String()))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := wholefile.Replace(file, c.Old, 0o600); err != nil {
		return err
	}
	u.left = append(u.left, Left{c.Ref.String(), why + "; its text from before the dream is in " + file})
	return nil
}

// index takes an index back: to the byte if it is what the dream left, else entry by entry,
// so that it names what is there once all is taken back.
func (u *undoing) index(ctx context.Context, c *Change) error {
	now, at, err := u.now(c.Ref)
	if err != nil || now == nil && c.Old == nil {
		return err
	}
	there, err := u.there(ctx, c.Ref.Scope)
	if err != nil {
		return err
	}
	x := memory.ParseIndex(now)
	var named []memory.Path // that must have a line
	if bytes.Equal(now, c.New) {
		x = memory.ParseIndex(c.Old)
		for path := range u.stay {
			if path.Scope == c.Ref.Scope {
				named = append(named, path.Path)
			}
		}
	} else {
		editEntries(&x, c.New, c.Old)
		for _, e := range x.Entries() {
			if ref := refOf(c.Ref.Scope, e.Key()); ref.Scope == c.Ref.Scope && there[ref.Path] == nil && !onDisk(u.Store, c.Ref.Scope, e.Key()) {
				x.Drop(e.Key())
			}
		}
		named = slices.Collect(pathsOf(there))
	}
	for _, back := range u.deletes {
		if back.Ref.Scope == c.Ref.Scope {
			x.Drop(string(back.Ref.Path))
		}
	}
	slices.Sort(named)
	for _, path := range named {
		if !names(&x, string(path)) {
			fm, _, _ := memory.ParseFrontmatter(there[path])
			x.Set(memory.EntryFor(path, fm))
		}
	}
	if text := x.Render(); !bytes.Equal(text, now) {
		kind := Edit
		if now == nil {
			kind = Create
		}
		back := Change{Ref: c.Ref, Kind: kind, Reasons: []string{reasonUndone}, Old: now, New: text, OldTime: at}
		if bytes.Equal(text, c.Old) {
			back.NewTime = c.OldTime
		}
		u.indexes = append(u.indexes, back)
	}
	return nil
}

// there returns the memories of a scope that there will be.
func (u *undoing) there(ctx context.Context, scope memory.Scope) (map[memory.Path][]byte, error) {
	out := map[memory.Path][]byte{}
	list, _, err := u.Store.ListAll(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if m.Scope == scope {
			out[m.Path] = append([]byte{}, m.Content...)
		}
	}
	for _, c := range u.files {
		if c.Ref.Scope == scope {
			out[c.Ref.Path] = c.New
		}
	}
	for _, c := range u.deletes {
		if c.Ref.Scope == scope {
			delete(out, c.Ref.Path)
		}
	}
	return out, nil
}

func pathsOf(m map[memory.Path][]byte) func(func(memory.Path) bool) {
	return func(yield func(memory.Path) bool) {
		for p := range m {
			if !yield(p) {
				return
			}
		}
	}
}
