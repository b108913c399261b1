package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/memsvc/memsvc/internal/filelock"
)

// ErrRootLocked means that another agent keeps this directory in step.
var ErrRootLocked = errors.New("another memsync-agent keeps this directory in step")

// RootLock is the right to be the only agent of a root, whatever path, link or state
// directory it is reached by (ruling 13.1). The operating system releases it when the
// process ends, however it ends.
type RootLock struct{ file *os.File }

// lockFileName is used where a directory itself cannot be locked.
const lockFileName = ".memsync-lock"

// LockRoot locks the existing directory dir without waiting. The error matches
// ErrRootLocked, and names the process where the system tells it, when another holder
// is there. It locks the directory itself; only where the system or the disk cannot
// do that (Windows, NFS) a hidden file in it. A held lock keeps a file system from
// being unmounted in the usual way.
func LockRoot(dir string) (*RootLock, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	fi, err := f.Stat()
	if err == nil && !fi.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	err = filelock.TryLock(f)
	if errors.Is(err, filelock.ErrUnsupported) {
		_ = f.Close()
		f, err = os.OpenFile(filepath.Join(dir, lockFileName), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		err = filelock.TryLock(f)
	}
	if err == nil {
		return &RootLock{file: f}, nil
	}
	holder := ""
	if errors.Is(err, filelock.ErrHeld) {
		if pid := lockHolder(f); pid > 0 {
			holder = fmt.Sprintf(" (process %d)", pid)
		}
		err = ErrRootLocked
	}
	_ = f.Close()
	return nil, fmt.Errorf("lock %s: %w%s", dir, err, holder)
}

// Release gives the root up.
func (l *RootLock) Release() error { return filelock.Release(l.file) }
