//go:build !unix

package workspace

import (
	"os"
	"syscall"
)

// openFlags: nothing to say here, there are no fifos in directories.
const openFlags = 0

// removeDir removes the empty directory name of dir; anything else is an error.
func removeDir(dir *os.Root, name string) error {
	fi, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return &os.PathError{Op: "rmdir", Path: name, Err: syscall.ENOTDIR}
	}
	return dir.Remove(name)
}
