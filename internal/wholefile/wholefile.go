// Package wholefile replaces files: whoever reads one sees the old text or the new one,
// whole, also after a kill or a loss of power.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// tempPattern names the files that are being written: hidden, beside their target.
const tempPattern = ".new-*"

// Replace makes the file hold content with this mode, durably. Its directory must exist.
// On an error the file is what it was, or already the new one.
func Replace(name string, content []byte, mode fs.FileMode) error {
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, tempPattern) // 0600 until it has its own mode
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone after the rename
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode) // past the umask
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return SyncDir(dir)
}

// SyncDir makes the names in a directory durable, as far as its file system can.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be fsynced there
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written through it
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // some file systems know no such thing; nothing more can be done
	}
	return err
}
