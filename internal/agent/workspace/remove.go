package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// Remove deletes path, durably, if its bytes are still expect; see syncer.Local.
// Directories that become empty by it go too, unless they are not ours to remove.
func (w *Workspace) Remove(_ context.Context, path memory.Path, expect memory.ETag) error {
	root, err := w.enterToWrite("remove", path)
	if err != nil {
		return err
	}
	defer root.Close()
	w.clean(root)
	if err := w.remove(root, path, expect); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

func (w *Workspace) remove(root *os.Root, path memory.Path, expect memory.ETag) error {
	dir, at, name, err := w.openParent(root, path, nil)
	if errors.Is(err, syncer.ErrLocalAbsent) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	now, err := w.look(dir, name)
	switch {
	case err != nil:
		return err
	case now.info == nil:
		return nil
	case now.isDir:
		return fmt.Errorf("%s is a directory: %w", now.name, syncer.ErrLocalBlocked)
	case now.etag != expect:
		return syncer.ErrLocalChanged
	}
	if err := w.takeAway(dir, now); err != nil {
		return err
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	delete(w.names, path)
	for at = strings.TrimSuffix(at, "/"); at != ""; at = parentOf(at) {
		if removeDirAt(root, at) != nil {
			return nil // not empty, or not to be removed: either way it stays
		}
	}
	return nil
}

// takeAway removes a file if it still is as it was seen. It is given a temporary name
// first: what is found under that is looked at, and nothing can slip in any more.
func (w *Workspace) takeAway(dir *os.Root, seen target) error {
	temp := newDisplacedName("", seen.etag, seen.name)
	if err := dir.Rename(seen.name, temp); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return besideError(err)
	}
	fi, err := dir.Lstat(temp)
	if err == nil && os.SameFile(fi, seen.info) && fi.Size() == seen.info.Size() {
		if etag, _, err := w.hashFile(dir, temp, fi); err == nil && etag == seen.etag {
			return dir.Remove(temp)
		}
	}
	if err := putNew(dir, temp, seen.name); err != nil && !errors.Is(err, syncer.ErrLocalChanged) {
		return err
	}
	return syncer.ErrLocalChanged // and what could not be put back is Mend's
}

// parentOf returns the directory above path; "" is the root.
func parentOf(path string) string {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)]
}
