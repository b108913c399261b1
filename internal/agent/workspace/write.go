package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// Write makes path hold content, durably and atomically, if it still is expect; see
// syncer.Local. A file that exists keeps its mode.
func (w *Workspace) Write(_ context.Context, path memory.Path, content []byte, modTime time.Time, expect memory.ETag) error {
	root, err := w.enterToWrite("write", path)
	if err != nil {
		return err
	}
	defer root.Close()
	w.clean(root)
	var mk made
	if err := w.write(root, path, content, modTime, expect, &mk); err != nil {
		mk.undo(root)
		if unnameable(err) {
			err = fmt.Errorf("%w: %w", syncer.ErrLocalName, err)
		}
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func (w *Workspace) write(root *os.Root, path memory.Path, content []byte, modTime time.Time, expect memory.ETag, mk *made) error {
	if expect != "" {
		mk = nil // what must exist already needs no directories made
	}
	dir, _, name, err := w.openParent(root, path, mk)
	if errors.Is(err, syncer.ErrLocalAbsent) {
		return syncer.ErrLocalChanged
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	now, err := w.look(dir, name)
	if err != nil {
		return err
	}
	if now.isDir {
		if expect != "" {
			return syncer.ErrLocalChanged
		}
		if err := removeEmptyTree(dir, now.name, now.info); err != nil {
			return err
		}
		now = target{name: name}
	}
	want := memory.ETagOf(content)
	if now.etag == want {
		return setModTime(dir, now, modTime)
	}
	if now.etag != expect {
		return syncer.ErrLocalChanged
	}
	mode := fs.FileMode(0o666) // less the umask, like anybody's new file
	if now.info != nil {
		mode = now.info.Mode().Perm()
	}
	tmp, err := writeTemp(dir, content, modTime, mode)
	if err != nil {
		return err
	}
	if now.info != nil {
		// Past the umask: the file keeps the mode that it has.
		if err = dir.Chmod(tmp, mode); err == nil {
			moving := newDisplacedName(want, now.etag, now.name)
			if err = dir.Rename(tmp, moving); err == nil {
				tmp = moving
			}
		}
	}
	if err == nil {
		err = w.put(dir, tmp, now)
	}
	if err != nil {
		if !errors.Is(err, errDisplaced) {
			_ = dir.Remove(tmp)
		}
		return err
	}
	return syncDir(dir)
}

// target is what stands at a path.
type target struct {
	name  string // on disk
	info  fs.FileInfo
	etag  memory.ETag // of a regular file; "" when there is none
	isDir bool
}

// look finds out what stands under name.
func (w *Workspace) look(dir *os.Root, name string) (target, error) {
	found, fi, err := w.find(dir, name)
	if errors.Is(err, syncer.ErrLocalAbsent) {
		return target{name: name}, nil
	}
	if err != nil {
		return target{}, err
	}
	switch {
	case fi.IsDir():
		return target{name: found, info: fi, isDir: true}, nil
	case !fi.Mode().IsRegular():
		return target{}, fmt.Errorf("%s is no regular file: %w", found, syncer.ErrLocalBlocked)
	}
	etag, fi, err := w.hashFile(dir, found, fi)
	if errors.Is(err, errUnsettled) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
		return target{}, syncer.ErrLocalChanged
	}
	if err != nil {
		return target{}, err
	}
	return target{name: found, info: fi, etag: etag}, nil
}

// put moves the temporary file to its place, if that still is as it was seen.
func (w *Workspace) put(dir *os.Root, tmp string, seen target) error {
	if seen.info == nil {
		return putNew(dir, tmp, seen.name)
	}
	done, err := w.exchange(dir, tmp, seen)
	if done || err != nil {
		return err
	}
	fi, err := dir.Lstat(seen.name)
	if err != nil || statOf(fi) != statOf(seen.info) {
		return syncer.ErrLocalChanged
	}
	return dir.Rename(tmp, seen.name)
}

// putNew gives tmp the name that must not exist. A hard link refuses an existing
// name in the same step that makes the new one, which a rename does not.
func putNew(dir *os.Root, tmp, name string) error {
	err := dir.Link(tmp, name)
	switch {
	case err == nil:
		return dir.Remove(tmp)
	case errors.Is(err, fs.ErrExist):
		return syncer.ErrLocalChanged
	}
	// The disk knows no hard links.
	if _, err := dir.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return syncer.ErrLocalChanged
	}
	return dir.Rename(tmp, name)
}

// writeTemp writes a durable temporary file into dir and returns its name. Its errors
// do not tell that name, which is another one each time: the same trouble reads the same.
func writeTemp(dir *os.Root, content []byte, modTime time.Time, mode fs.FileMode) (_ string, err error) {
	name := newTempName()
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", besideError(err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = dir.Remove(name)
			err = besideError(err)
		}
	}()
	if _, err = f.Write(content); err != nil {
		return "", err
	}
	if !modTime.IsZero() {
		if err = dir.Chtimes(name, time.Time{}, modTime); err != nil {
			return "", err
		}
	}
	if err = f.Sync(); err != nil {
		return "", err
	}
	if err = f.Close(); err != nil {
		return "", err
	}
	return name, nil
}

// besideError is the cause of err without the name of a temporary file.
func besideError(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("a temporary file beside it: %w", err)
}

// setModTime gives a file that already holds the text the author's time.
func setModTime(dir *os.Root, t target, modTime time.Time) error {
	if modTime.IsZero() || t.info.ModTime().Equal(modTime) {
		return nil
	}
	return dir.Chtimes(t.name, time.Time{}, modTime)
}

// syncDir makes the names in dir durable.
func syncDir(dir *os.Root) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be fsynced there
	}
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // some file systems know no such thing; nothing more can be done
	}
	return err
}

// undo removes the directories again that a failed write made, the last first.
func (m *made) undo(root *os.Root) {
	for i := len(m.dirs) - 1; i >= 0; i-- {
		_ = removeDirAt(root, m.dirs[i])
	}
}

// removeDirAt removes the empty directory at path below root.
func removeDirAt(root *os.Root, path string) error {
	parent, name := ".", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		parent, name = path[:i], path[i+1:]
	}
	dir, err := root.OpenRoot(parent)
	if err != nil {
		return err
	}
	defer dir.Close()
	return removeDir(dir, name)
}

// removeEmptyTree removes the directory name of dir, which fi describes, if nothing
// but directories lies below it.
func removeEmptyTree(dir *os.Root, name string, fi fs.FileInfo) error {
	sub, err := openDir(dir, name, fi)
	if err != nil {
		return err
	}
	defer sub.Close()
	infos, err := list(sub)
	if err != nil {
		return err
	}
	for _, in := range infos {
		if !in.IsDir() {
			return fmt.Errorf("the directory %s is not empty: %w", name, syncer.ErrLocalBlocked)
		}
	}
	for _, in := range infos {
		if err := removeEmptyTree(sub, in.Name(), in); err != nil {
			return err
		}
	}
	err = removeDir(dir, name)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the directory %s is not empty: %w", name, syncer.ErrLocalBlocked)
	}
	return err
}

// clean removes temporary files that a crash left behind, as the last scan saw them.
func (w *Workspace) clean(root *os.Root) {
	for _, path := range w.leftover {
		if fi, err := root.Lstat(path); err == nil && fi.Mode().IsRegular() {
			_ = root.Remove(path) // what stays is hidden and harmless
		}
	}
	w.leftover = nil
}
