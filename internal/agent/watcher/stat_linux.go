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
	return st.Ino, st.Ctim.Nano()
}

// magicLustre is LL_SUPER_MAGIC of Lustre's own headers; the others stand in the
// kernel's magic.h, or, for the shared folders of VirtualBox, in its driver.
const (
	magicLustre = 0x0BD00BD3
	magicVBox   = 0x786F4256
	magicCeph   = 0x00C36400
)

// silentFileSystem says why the file system of dir does not tell of changes made
// elsewhere, or "".
func silentFileSystem(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return ""
	}
	kind := ""
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC:
		kind = "NFS"
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		kind = "SMB"
	case unix.FUSE_SUPER_MAGIC:
		kind = "FUSE"
	case unix.V9FS_MAGIC:
		kind = "9P"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		kind = "AFS"
	case unix.CODA_SUPER_MAGIC:
		kind = "Coda"
	case magicCeph:
		kind = "Ceph"
	case magicLustre:
		kind = "Lustre"
	case magicVBox:
		kind = "a VirtualBox shared folder"
	default:
		return ""
	}
	return "the file system is " + kind + ", which sends no events of changes made elsewhere"
}
