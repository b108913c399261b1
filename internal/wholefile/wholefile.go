// Package wholefile replaces files: whoever reads one sees the old text or the new one,
// whole, also after a kill or a loss of power.
package wholefile

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// tempPattern names the files that are being written: hidden, beside their target.
const (
	tempPrefix  = ".new-"
	tempPattern = tempPrefix + "*"
)

// tempAge is how old a file that is being written must be to be a dead writer's.
const tempAge = time.Hour

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

// Sweep removes from a directory of our own what a Replace that was killed left there over
// an hour ago. What cannot be removed stays: it is hidden and harmless.
func Sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		id, ok := strings.CutPrefix(e.Name(), tempPrefix)
		if !ok || id == "" || strings.Trim(id, "0123456789") != "" || !e.Type().IsRegular() {
			continue
		}
		if fi, err := e.Info(); err == nil && time.Since(fi.ModTime()) >= tempAge {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// MakeRoom removes from a directory of our own the oldest files whose names end in suffix,
// until fewer than most are left: there is room for one more. Equal times go by name. What
// cannot be removed stays.
func MakeRoom(dir, suffix string, most int) {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < most {
		return
	}
	type old struct {
		name string
		last time.Time
	}
	var all []old
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && fi.Mode().IsRegular() && strings.HasSuffix(e.Name(), suffix) {
			all = append(all, old{e.Name(), fi.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b old) int { return cmp.Or(a.last.Compare(b.last), cmp.Compare(a.name, b.name)) })
	for _, o := range all[:max(len(all)-most+1, 0)] {
		_ = os.Remove(filepath.Join(dir, o.name))
	}
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
