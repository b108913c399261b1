//go:build unix

package workspace

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// openFlags keep opening from waiting for the other end of a fifo.
const openFlags = unix.O_NONBLOCK

// removeDir removes the empty directory name of dir; anything else is an error and
// stays, also if it was swapped in a moment ago.
func removeDir(dir *os.Root, name string) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	err = unix.Unlinkat(int(d.Fd()), name, unix.AT_REMOVEDIR)
	runtime.KeepAlive(d)
	if err != nil {
		return &os.PathError{Op: "rmdir", Path: name, Err: err}
	}
	return nil
}
