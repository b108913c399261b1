package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	socketName = "agent.sock"
	// pointerName is a file that holds the socket's path when that is not
	// socketName beside it.
	pointerName = "agent.sock.path"
	// maxSocketPath is what sockaddr_un holds on the narrowest system we run on:
	// 104 bytes with the closing NUL (macOS and the BSDs; Linux has 108).
	maxSocketPath = 103
)

// socketPath returns where the daemon of stateDir listens, or will.
func socketPath(stateDir string) (string, error) {
	dir, err := filepath.Abs(stateDir)
	if err != nil {
		return "", fmt.Errorf("find the daemon's socket: %w", err)
	}
	b, err := os.ReadFile(filepath.Join(dir, pointerName))
	if err == nil {
		if p := strings.TrimSpace(string(b)); filepath.IsAbs(p) && len(p) <= maxSocketPath {
			return p, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("find the daemon's socket: %w", err)
	}
	return filepath.Join(dir, socketName), nil
}

// prepareAddress chooses where to listen for stateDir, whose lock is held, and makes
// room there. A path too long for the system is replaced by one in a fresh private
// directory of the temporary directory, which the pointer file names; undo removes
// both.
func prepareAddress(stateDir string) (path string, undo func(), err error) {
	dir, err := filepath.Abs(stateDir)
	if err != nil {
		return "", nil, err
	}
	pointer := filepath.Join(dir, pointerName)
	// Whoever wrote these is gone: the lock is ours.
	if old, err := socketPath(dir); err == nil && old != filepath.Join(dir, socketName) {
		_ = os.Remove(old)
		_ = os.Remove(filepath.Dir(old))
	}
	for _, stale := range []string{pointer, filepath.Join(dir, socketName)} {
		if err := os.Remove(stale); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", nil, fmt.Errorf("remove a stale socket: %w", err)
		}
	}
	direct := filepath.Join(dir, socketName)
	if len(direct) <= maxSocketPath {
		return direct, func() { _ = os.Remove(direct) }, nil
	}
	short, err := shortDir()
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(short, "s")
	undo = func() {
		_ = os.Remove(pointer)
		_ = os.Remove(path)
		_ = os.Remove(short)
	}
	if err := os.WriteFile(pointer, []byte(path+"\n"), 0o600); err != nil {
		undo()
		return "", nil, err
	}
	return path, undo, nil
}

// shortDir makes a private directory (0700, a name nobody can guess beforehand)
// with a short path.
func shortDir() (string, error) {
	for _, base := range []string{os.TempDir(), "/tmp"} {
		dir, err := os.MkdirTemp(base, "memsync-")
		if err != nil {
			continue
		}
		if len(dir)+2 <= maxSocketPath {
			return dir, nil
		}
		_ = os.Remove(dir)
	}
	return "", errors.New("the state directory's path is too long for a socket and no temporary directory is shorter; give a shorter --state-dir")
}
