package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock locks a byte far behind any content, since Windows locks what it covers
// against reading too.
func tryLock(f *os.File, exclusive bool) error {
	if fi, err := f.Stat(); err == nil && fi.IsDir() {
		return ErrUnsupported
	}
	at := &windows.Overlapped{Offset: 1 << 30}
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if exclusive {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrHeld
	}
	return err
}

// unlock has nothing to do: programs that are started get no open file, and closing unlocks.
func unlock(*os.File) error { return nil }
