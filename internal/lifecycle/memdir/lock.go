package memdir

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/filelock"
)

// lockName is the file whose lock serializes the writers of a directory: hidden, so
// that neither clients nor the sync agent take it for a memory.
const lockName = ".memdir.lock"

// locked runs do while no other process of the machine that uses this package writes
// into the directory. Where the file system knows no locks it runs without: the
// comparison right before each replacement is then the only guard.
func (d *Dir) locked(ctx context.Context, do func() error) error {
	f, err := d.root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock %s: %w", d.path, cause(err))
	}
	defer func() { _ = filelock.Release(f) }()
	err = filelock.Lock(ctx, f)
	if err != nil && !errors.Is(err, filelock.ErrUnsupported) {
		return fmt.Errorf("lock %s: %w", d.path, err)
	}
	age := time.Duration(0) // whoever holds the lock knows that no such file is in use
	if err != nil {
		age = tempAge
	}
	d.sweep(age)
	return do()
}

// tempAge is how old a file that is being written must be to be a dead writer's where no
// lock says so.
const tempAge = time.Hour

// Sweep removes what writers that died left behind; whoever writes does so by itself. Where
// nothing was left, nothing is written either.
func (d *Dir) Sweep(ctx context.Context) error {
	if len(d.temps()) == 0 {
		return nil
	}
	return d.locked(ctx, func() error { return nil })
}

// sweep removes the files that are being written and are of such an age.
func (d *Dir) sweep(age time.Duration) {
	for _, name := range d.temps() {
		if fi, err := d.root.Lstat(name); err == nil && fi.Mode().IsRegular() && (age == 0 || time.Since(fi.ModTime()) >= age) {
			_ = d.root.Remove(name) // what stays is hidden and harmless
		}
	}
}

// temps returns the names of the directory that writeTemp gives, and nobody else.
func (d *Dir) temps() []string {
	f, err := d.root.Open(".")
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	names, _ := f.Readdirnames(-1)
	return slices.DeleteFunc(names, func(name string) bool {
		id, ok := strings.CutPrefix(name, tempPrefix)
		raw, err := hex.DecodeString(id)
		return !ok || err != nil || len(raw) != tempBytes
	})
}
