//go:build unix

package agent

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// rootLock makes a directory this process's alone, whatever the state directory and
// whatever path leads there: it is on the directory itself, by its inode, and leaves
// nothing behind.
type rootLock struct {
	dir  string
	file *os.File
	info os.FileInfo
}

func newRootLock(dir string) *rootLock { return &rootLock{dir: dir} }

// errDirTaken says that another agent has the directory.
var errDirTaken = errors.New("another memsync-agent keeps this directory in step; stop one of the two")

// hold takes the lock, or keeps it when it is held on the directory that is there. A
// directory that is missing is no error: there is nothing to lock yet.
func (l *rootLock) hold() error {
	info, err := os.Stat(l.dir)
	if err != nil {
		return nil // the scan says what is wrong
	}
	if l.file != nil && os.SameFile(info, l.info) {
		return nil
	}
	f, err := os.Open(l.dir)
	if err != nil {
		return nil
	}
	if info, err = f.Stat(); err != nil || !info.IsDir() {
		_ = f.Close()
		return nil
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("%s: %w", l.dir, errDirTaken)
		}
		return nil // a file system without locks, such as some network ones
	}
	l.release()
	l.file, l.info = f, info
	return nil
}

// release gives the directory up.
func (l *rootLock) release() {
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}
