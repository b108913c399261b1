package watcher

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// inodeAndCtime returns the inode number and the time of the last change of the
// inode in nanoseconds.
func inodeAndCtime(fi fs.FileInfo) (uint64, int64) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return st.Ino, st.Ctimespec.Nano()
}

// silentFileSystem says why the file system of dir does not tell of changes made
// elsewhere, or "".
func silentFileSystem(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return ""
	}
	switch kind := unix.ByteSliceToString(st.Fstypename[:]); kind {
	case "nfs", "smbfs", "afpfs", "webdav", "macfuse", "osxfuse", "fusefs", "fuse-t":
		return "the file system is " + kind + ", which sends no events of changes made elsewhere"
	}
	return ""
}
