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
	fi, err := dir.Lstat(now.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if statOf(fi) != statOf(now.info) {
		return syncer.ErrLocalChanged
	}
	if err := dir.Remove(now.name); err != nil {
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

// parentOf returns the directory above path; "" is the root.
func parentOf(path string) string {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)]
}
