package control

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/memsvc/memsvc/internal/filelock"
)

const lockName = "lock"

// ErrLocked means that another process holds the state directory.
var ErrLocked = errors.New("another memsync-agent uses this state directory")

// Lock is the right to be the only user of a state directory. The operating system
// releases it when the process ends, however it ends.
type Lock struct {
	dir  string
	file *os.File
}

// Acquire locks stateDir, making it (0700) if need be. It never waits: if another
// process holds the lock, the error matches ErrLocked and names its process id.
func Acquire(stateDir string) (*Lock, error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	path := filepath.Join(stateDir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	if err := filelock.TryLock(f); err != nil {
		defer f.Close()
		if !errors.Is(err, filelock.ErrHeld) {
			return nil, fmt.Errorf("lock state directory: %s: %w", path, err)
		}
		if pid := readPID(f); pid > 0 {
			return nil, fmt.Errorf("%s: %w (process %d); stop it or give another --state-dir", stateDir, ErrLocked, pid)
		}
		return nil, fmt.Errorf("%s: %w; stop it or give another --state-dir", stateDir, ErrLocked)
	}
	// For people and for the message above; the lock itself does not depend on it.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &Lock{dir: stateDir, file: f}, nil
}

// Dir returns the locked state directory.
func (l *Lock) Dir() string { return l.dir }

// Release gives the state directory up. The lock file stays: removing it would let
// two processes lock two files of one name.
func (l *Lock) Release() error { return filelock.Release(l.file) }

func readPID(f *os.File) int {
	b, err := io.ReadAll(io.LimitReader(io.NewSectionReader(f, 0, 32), 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return pid
}
