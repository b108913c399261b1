package memdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

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
	defer func() { _ = f.Close() }()
	if err := filelock.Lock(ctx, f); err != nil && !errors.Is(err, filelock.ErrUnsupported) {
		return fmt.Errorf("lock %s: %w", d.path, err)
	}
	d.sweep()
	return do()
}

// sweep removes what writers that died left behind. Whoever holds the lock knows that
// no such file is in use.
func (d *Dir) sweep() {
	f, err := d.root.Open(".")
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	names, _ := f.Readdirnames(-1)
	for _, name := range names {
		if strings.HasPrefix(name, tempPrefix) {
			_ = d.root.Remove(name) // what stays is hidden and harmless
		}
	}
}
