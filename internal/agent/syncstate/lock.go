package syncstate

import (
	"errors"
	"os"

	"github.com/memsvc/memsvc/internal/filelock"
)

// lockDir makes this process the only writer of dir. Disks that know no locks on
// directories (NFS, Windows) go without; the state directory's own lock guards those.
func lockDir(dir string) (unlock func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := filelock.TryLock(f); errors.Is(err, filelock.ErrHeld) {
		_ = f.Close()
		return nil, ErrInUse
	}
	return func() error { return filelock.Release(f) }, nil
}
