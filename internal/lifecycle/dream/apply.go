package dream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

// Why a change is not made after all.
const (
	whyEdited = "it was edited meanwhile"
	whyThere  = "another memory has its name now"
	whyNeeds  = "the memory that was to take its place is not there as it should be"
	whyUnread = "it, or the index that lists it, cannot be read any more"
	whyNoDir  = "its directory is not there any more"
)

// disk is the directories that a change set is applied to.
type disk struct {
	store *memories.Store
	open  map[memory.Scope]*memdir.Dir
}

func (k *disk) dir(scope memory.Scope) (*memdir.Dir, error) {
	if d := k.open[scope]; d != nil {
		return d, nil
	}
	if k.store.Dir(scope) == "" {
		return nil, fs.ErrNotExist
	}
	d, err := memdir.Open(k.store.Dir(scope))
	if err == nil {
		k.open[scope] = d
	}
	return d, err
}

func (k *disk) close() {
	for _, d := range k.open {
		_ = d.Close() // every write was synced by itself
	}
}

// unread is the etag of what is there and cannot be read; no text has it.
const unread memory.ETag = "-"

// etag is that of a memory as it is now; "" = it is not there.
func (k *disk) etag(r memories.Ref) (memory.ETag, error) {
	d, err := k.dir(r.Scope)
	if err == nil {
		var content []byte
		if content, _, err = d.Read(r.Path); err == nil {
			return memory.ETagOf(content), nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if errors.Is(err, memdir.ErrUnreadable) {
		return unread, nil
	}
	return "", err
}

// apply makes the changes that are not made yet: files, then indexes, then deletes (SPEC
// 2.5, ruling 13.7). A file that is not what the change was made for is left alone, and
// Skipped says so. Done again, it comes to the same end.
func (d *Dreamer) apply(ctx context.Context, changes []Change) error {
	k := &disk{store: d.Store, open: map[memory.Scope]*memdir.Dir{}}
	defer k.close()
	for i := range changes {
		c := &changes[i]
		if memory.IsIndex(c.Ref.Path) || c.Kind == Delete || c.Skipped != "" {
			continue
		}
		if err := d.at("file"); err != nil {
			return err
		}
		if err := c.unread(k.put(ctx, c)); err != nil {
			return fmt.Errorf("dream: %w", err)
		}
	}
	for i := range changes {
		c := &changes[i]
		if !memory.IsIndex(c.Ref.Path) || c.Skipped != "" {
			continue
		}
		if err := d.at("index"); err != nil {
			return err
		}
		if err := c.unread(k.index(ctx, c)); err != nil {
			return fmt.Errorf("dream: %w", err)
		}
	}
	for i := range changes {
		c := &changes[i]
		if c.Kind != Delete || c.Skipped != "" {
			continue
		}
		if err := d.at("delete"); err != nil {
			return err
		}
		if err := c.unread(k.remove(ctx, c)); err != nil {
			return fmt.Errorf("dream: %w", err)
		}
	}
	if err := d.at("lines"); err != nil {
		return err
	}
	return k.lines(ctx, changes)
}

// unread lets a change be that cannot be made because of what somebody put there: the
// journal must not wait for it for ever, and everybody for the journal.
func (c *Change) unread(err error) error {
	if errors.Is(err, memdir.ErrUnreadable) {
		c.Skipped = whyUnread
		return nil
	}
	return err
}

func want(c *Change) memory.Precondition {
	if c.Old == nil {
		return memory.IfAbsent()
	}
	return memory.IfMatch(memory.ETagOf(c.Old))
}

func (k *disk) put(ctx context.Context, c *Change) error {
	d, err := k.dir(c.Ref.Scope)
	if errors.Is(err, fs.ErrNotExist) {
		c.Skipped = whyNoDir
		return nil
	}
	if err != nil {
		return err
	}
	err = d.Write(ctx, c.Ref.Path, c.New, want(c), c.NewTime)
	if !errors.Is(err, memdir.ErrChanged) && !errors.Is(err, fs.ErrExist) {
		return err
	}
	now, err := k.etag(c.Ref)
	switch {
	case err != nil:
		return err
	case now == memory.ETagOf(c.New): // done before
	case c.Old == nil:
		c.Skipped = whyThere
	default:
		c.Skipped = whyEdited
	}
	return nil
}

func (k *disk) index(ctx context.Context, c *Change) error {
	d, err := k.dir(c.Ref.Scope)
	if errors.Is(err, fs.ErrNotExist) {
		c.Skipped = whyNoDir
		return nil
	}
	if err != nil {
		return err
	}
	if !c.NewTime.IsZero() {
		// It becomes what it was, and as old. If it was edited meanwhile it is as new as that.
		err := d.ReplaceIndex(ctx, c.New, want(c), c.NewTime)
		if !errors.Is(err, memdir.ErrChanged) && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	_, err = d.EditIndex(ctx, func(x *memory.Index) error {
		switch now := x.Render(); {
		case bytes.Equal(now, c.New): // done before
		case bytes.Equal(now, c.Old):
			*x = memory.ParseIndex(c.New)
		default:
			editEntries(x, c.Old, c.New)
		}
		return nil
	})
	return err
}

// editEntries does to an index that was edited meanwhile what leads from one text to
// another: entry by entry, leaving those that somebody else changed.
func editEntries(x *memory.Index, from, to []byte) {
	was, will, is := entries(from), entries(to), entries(x.Render())
	for key, e := range was {
		if now, ok := is[key]; !ok || now != e {
			continue
		}
		if next, ok := will[key]; !ok {
			x.Drop(key)
		} else if next != e {
			x.Set(next)
		}
	}
	for _, e := range memory.ParseIndex(to).Entries() { // in their order
		key := e.Key()
		if _, had := was[key]; !had && is[key] == (memory.IndexEntry{}) {
			x.Set(e)
		}
	}
}

func entries(index []byte) map[string]memory.IndexEntry {
	out := map[string]memory.IndexEntry{}
	for _, e := range memory.ParseIndex(index).Entries() {
		if _, ok := out[e.Key()]; !ok {
			out[e.Key()] = e
		}
	}
	return out
}

func (k *disk) remove(ctx context.Context, c *Change) error {
	for _, n := range c.Needs {
		now, err := k.etag(n.Ref)
		if err != nil {
			return err
		}
		if now != n.ETag {
			if now, err = k.etag(c.Ref); err == nil && now != "" {
				c.Skipped = whyNeeds
			}
			return err
		}
	}
	d, err := k.dir(c.Ref.Scope)
	if err == nil {
		err = d.Remove(ctx, c.Ref.Path, want(c))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // done before
		return nil
	case errors.Is(err, memdir.ErrChanged):
		c.Skipped = whyEdited
		return nil
	}
	return err
}

// lines lets the indexes say what came of the changes that were not made: a memory that
// stays has its line, and one that did not come has none.
func (k *disk) lines(ctx context.Context, changes []Change) error {
	lines := map[memory.Scope]map[string]memory.IndexEntry{}
	for _, c := range changes {
		if memory.IsIndex(c.Ref.Path) {
			lines[c.Ref.Scope] = entries(c.Old)
		}
	}
	for _, c := range changes {
		if c.Skipped == "" || c.Skipped == whyNoDir || c.Kind == Edit || memory.IsIndex(c.Ref.Path) {
			continue
		}
		now, err := k.etag(c.Ref)
		if err != nil {
			return fmt.Errorf("dream: %w", err)
		}
		d, err := k.dir(c.Ref.Scope)
		if err != nil {
			return fmt.Errorf("dream: %w", err)
		}
		_, err = d.EditIndex(ctx, func(x *memory.Index) error {
			key := string(c.Ref.Path)
			switch {
			case now == "":
				x.Drop(key)
			case !names(x, key):
				e, ok := lines[c.Ref.Scope][key]
				if !ok {
					fm, _, _ := memory.ParseFrontmatter(c.Old)
					e = memory.EntryFor(c.Ref.Path, fm)
				}
				x.Set(e)
			}
			return nil
		})
		if err != nil && !errors.Is(err, memdir.ErrUnreadable) { // what Skipped says of it is enough
			return fmt.Errorf("dream: %w", err)
		}
	}
	return nil
}
