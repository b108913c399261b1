package control

import (
	"os"

	"golang.org/x/sys/windows"
)

var errWouldBlock = error(windows.ERROR_LOCK_VIOLATION)

// lockFile locks a byte far behind the process id, since Windows locks what it
// covers against reading too.
func lockFile(f *os.File) error {
	at := &windows.Overlapped{Offset: 1 << 30}
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
}
