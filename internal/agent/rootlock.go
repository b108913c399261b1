package agent

import (
	"errors"
	"os"

	"github.com/memsvc/memsvc/internal/agent/workspace"
)

// rootLock keeps a link's directory this process's alone (ruling 13.1), also after
// the directory was replaced by another one of its name.
type rootLock struct {
	dir  string
	lock *workspace.RootLock
	info os.FileInfo
}

func newRootLock(dir string) *rootLock { return &rootLock{dir: dir} }

// hold takes the lock, or keeps it when it is held on the directory that is there. A
// directory that is missing or cannot be looked at is no error: there is nothing to
// lock yet, and the scan says what is wrong.
func (l *rootLock) hold() error {
	info, err := os.Stat(l.dir)
	if err != nil || !info.IsDir() || l.lock != nil && os.SameFile(info, l.info) {
		return nil
	}
	l.release()
	lock, err := workspace.LockRoot(l.dir)
	if errors.Is(err, workspace.ErrRootLocked) {
		return err
	}
	if err == nil {
		l.lock, l.info = lock, info
	}
	return nil
}

// release gives the directory up.
func (l *rootLock) release() {
	if l.lock != nil {
		_ = l.lock.Release()
		l.lock = nil
	}
}
