package workspace

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/memsvc/memsvc/internal/agent/syncer"
)

// exchange swaps the temporary file with the one in place in one step and looks at
// what came out. If that is not what was seen, an edit slipped in, and the files are
// swapped back. done is false, and nothing has happened, where the disk cannot
// exchange.
func (w *Workspace) exchange(dir *os.Root, tmp string, seen target) (done bool, err error) {
	d, err := dir.Open(".")
	if err != nil {
		return false, err
	}
	defer d.Close()
	swap := func() error {
		err := unix.Renameat2(int(d.Fd()), tmp, int(d.Fd()), seen.name, unix.RENAME_EXCHANGE)
		runtime.KeepAlive(d)
		return err
	}
	if err := swap(); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return false, syncer.ErrLocalChanged // the file is gone
		}
		return false, nil
	}
	fi, err := dir.Lstat(tmp)
	if err == nil && os.SameFile(fi, seen.info) && fi.Size() == seen.info.Size() {
		// The change time moved with the rename, so the bytes decide.
		if etag, _, err := w.hashFile(dir, tmp, fi); err == nil && etag == seen.etag {
			return true, dir.Remove(tmp)
		}
	}
	if err := swap(); err != nil {
		// Under its temporary name the edit waits for Mend, but not for longer than needed.
		if err := dir.Rename(tmp, seen.name); err != nil {
			return false, fmt.Errorf("%w: %w", errDisplaced, err)
		}
	}
	return false, syncer.ErrLocalChanged
}
