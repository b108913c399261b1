package workspace

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identityOf returns the inode number and its time of last change in nanoseconds;
// ctime is 0 where the disk keeps none.
func identityOf(fi fs.FileInfo) (inode uint64, ctime int64) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return st.Ino, st.Ctimespec.Nano()
}

// describe tells directories apart for a person.
func describe(fi fs.FileInfo) string {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return "unknown"
	}
	return fmt.Sprintf("device %d, inode %d", st.Dev, st.Ino)
}
