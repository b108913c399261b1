package memdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// Put writes a memory that meets want, then its line in the index. It returns what the
// writer of the index should be told at once, such as a cap that is passed. The file gets
// the time at, as Write's does. Where the
// process dies in between, the memory is there and its line is missing, which Mend adds.
// A file that is there although want forbids it is fs.ErrExist, one that differs
// ErrChanged; nothing is changed then.
func (d *Dir) Put(ctx context.Context, path memory.Path, content []byte, want memory.Precondition, entry memory.IndexEntry, at time.Time) ([]memory.Violation, error) {
	if memory.IsIndex(path) {
		return nil, fmt.Errorf("write %s: it is the index; memories get their lines by themselves", path)
	}
	if len(content) > memory.MaxMemoryBytes {
		return nil, fmt.Errorf("write %s: %d bytes are more than the %d of a memory", path, len(content), memory.MaxMemoryBytes)
	}
	var told []memory.Violation
	err := d.locked(ctx, func() error {
		if err := d.replace(string(path), content, want, at); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		var err error
		told, err = d.editIndex(func(x *memory.Index) error { x.Set(entry); return nil })
		return err
	})
	return told, err
}

// Write writes a memory that meets want and leaves the index as it is: for who changes
// several and edits the index once, afterwards. The file gets the time at, so that a
// memory that only looks different stays as old as it is; zero = the present.
func (d *Dir) Write(ctx context.Context, path memory.Path, content []byte, want memory.Precondition, at time.Time) error {
	if memory.IsIndex(path) {
		return fmt.Errorf("write %s: it is the index; memories get their lines by themselves", path)
	}
	if len(content) > memory.MaxMemoryBytes {
		return fmt.Errorf("write %s: %d bytes are more than the %d of a memory", path, len(content), memory.MaxMemoryBytes)
	}
	err := d.locked(ctx, func() error { return d.replace(string(path), content, want, at) })
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Remove deletes the line of a memory from the index, then the memory, if it meets
// want: a line never names a file that is not there. A missing memory is fs.ErrNotExist.
func (d *Dir) Remove(ctx context.Context, path memory.Path, want memory.Precondition) error {
	return d.locked(ctx, func() error {
		if _, _, err := d.read(string(path)); err != nil {
			return fmt.Errorf("delete %s: %w", path, err)
		}
		if _, err := d.meets(string(path), want); err != nil {
			return fmt.Errorf("delete %s: %w", path, err)
		}
		if !memory.IsIndex(path) {
			if _, err := d.editIndex(func(x *memory.Index) error { x.Drop(string(path)); return nil }); err != nil {
				return err
			}
		}
		if err := d.remove(string(path), want); err != nil {
			return fmt.Errorf("delete %s: %w", path, err)
		}
		return nil
	})
}

// EditIndex lets edit change the index, under the lock that all writers share, and
// returns what the writer should be told at once. It makes the index if there is none.
// An error of edit changes nothing. edit runs again when the index changed meanwhile.
func (d *Dir) EditIndex(ctx context.Context, edit func(*memory.Index) error) ([]memory.Violation, error) {
	var told []memory.Violation
	err := d.locked(ctx, func() (err error) {
		told, err = d.editIndex(edit)
		return err
	})
	return told, err
}

// ReplaceIndex makes content the index, if the one that is there meets want, and gives it
// the time at: for who takes an edit back. One that differs is ErrChanged, one that want
// forbids fs.ErrExist; nothing is changed then.
func (d *Dir) ReplaceIndex(ctx context.Context, content []byte, want memory.Precondition, at time.Time) error {
	err := d.locked(ctx, func() error { return d.replace(memory.IndexName, content, want, at) })
	if err != nil {
		return fmt.Errorf("index %s: %w", memory.IndexName, err)
	}
	return nil
}

// indexTries bounds how often an edit is made anew because a program that does not know
// the lock changed the index meanwhile.
const indexTries = 20

func (d *Dir) editIndex(edit func(*memory.Index) error) ([]memory.Violation, error) {
	for try := 1; ; try++ {
		old, want := []byte(nil), memory.IfAbsent()
		content, _, err := d.read(memory.IndexName)
		switch {
		case err == nil:
			old, want = content, memory.IfMatch(memory.ETagOf(content))
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("index %s: %w", memory.IndexName, err)
		}
		x := memory.ParseIndex(old)
		if err := edit(&x); err != nil {
			return nil, err
		}
		text := x.Render()
		if string(text) != string(old) {
			x.DropMarker() // one that gets lines again begins anew
			text = x.Render()
			err = d.replace(memory.IndexName, text, want, time.Time{})
			if (errors.Is(err, ErrChanged) || errors.Is(err, fs.ErrExist)) && try < indexTries {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("index %s: %w", memory.IndexName, err)
			}
		}
		return memory.IndexWarnings(memory.IndexName, text), nil
	}
}
