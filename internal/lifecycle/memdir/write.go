package memdir

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// tempPrefix begins the names of files that are being written. They all lie in the
// directory itself, so that the next writer finds what a dead one left.
const (
	tempPrefix = ".memdir-"
	tempBytes  = 8 // in hexadecimal
)

// ErrChanged is what a write answers when the file is not what the caller saw.
var ErrChanged = errors.New("the file was changed meanwhile; look at it again")

// replace makes name hold content, durably and atomically, if it meets want. The caller
// holds the lock. at is the time the file gets; zero = the present.
func (d *Dir) replace(name string, content []byte, want memory.Precondition, at time.Time) error {
	mode, err := d.meets(name, want)
	if err != nil {
		return err
	}
	if err := d.makeParent(name); err != nil {
		return err
	}
	tmp, err := d.writeTemp(content, mode)
	if err != nil {
		return err
	}
	if !at.IsZero() {
		if err := d.root.Chtimes(tmp, at, at); err != nil {
			_ = d.root.Remove(tmp)
			return cause(err)
		}
	}
	// Programs that do not know the lock write here too: the look right before the
	// replacement leaves them the least room.
	if _, err = d.meets(name, want); err == nil {
		err = cause(d.root.Rename(tmp, name))
	}
	if err != nil {
		_ = d.root.Remove(tmp)
		return err
	}
	return d.syncDir(path.Dir(name))
}

// meets compares name with want, and returns the mode that it has, or is to have.
func (d *Dir) meets(name string, want memory.Precondition) (fs.FileMode, error) {
	content, fi, err := d.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !want.Holds("") {
			return 0, ErrChanged
		}
		return d.mode, nil
	case err != nil:
		return 0, err
	case want.Kind == memory.MustNotExist:
		return 0, fs.ErrExist
	case !want.Holds(memory.ETagOf(content)):
		return 0, ErrChanged
	}
	return fi.Mode().Perm(), nil
}

func (d *Dir) writeTemp(content []byte, mode fs.FileMode) (name string, err error) {
	var b [tempBytes]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	name = tempPrefix + hex.EncodeToString(b[:])
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", fmt.Errorf("a temporary file: %w", cause(err))
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode) // past the umask: a file keeps the mode that it has
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = d.root.Remove(name)
		return "", fmt.Errorf("a temporary file: %w", cause(err))
	}
	return name, nil
}

// makeParent makes the directories that name lies in, durably.
func (d *Dir) makeParent(name string) error {
	dir := path.Dir(name)
	if dir == "." {
		return nil
	}
	at := "."
	for seg := range strings.SplitSeq(dir, "/") {
		next := path.Join(at, seg)
		switch err := d.root.Mkdir(next, 0o700); {
		case errors.Is(err, fs.ErrExist):
		case err != nil:
			return cause(err)
		default:
			if err := d.syncDir(at); err != nil {
				return err
			}
		}
		at = next
	}
	return nil
}

// remove deletes name, durably, if it meets want, and the directories that are empty
// then. A missing one is fs.ErrNotExist.
func (d *Dir) remove(name string, want memory.Precondition) error {
	if _, err := d.meets(name, want); err != nil {
		return err
	}
	if err := d.root.Remove(name); err != nil {
		return cause(err)
	}
	dir := path.Dir(name)
	for dir != "." && d.root.Remove(dir) == nil {
		dir = path.Dir(dir)
	}
	return d.syncDir(dir)
}

// syncDir makes the names in a directory durable.
func (d *Dir) syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be fsynced there
	}
	f, err := d.root.Open(dir)
	if err != nil {
		return cause(err)
	}
	defer func() { _ = f.Close() }()
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // some file systems know no such thing; nothing more can be done
	}
	return cause(err)
}
