// Package workspace is the local tree of one link: a team/ directory, scanned, read
// and written through os.Root alone, so that no link, however swapped in, leads
// outside. It implements syncer.Local.
//
// A scan tells what is there and what cannot be known; it opens nothing but
// directories and regular files whose name is a memory's, hashes a file only when its
// stat changed, and writes nothing. Writes are a temporary file in the same directory,
// fsync, an atomic step that fails if the file is not the expected one any more, and
// an fsync of the directory.
//
// The tree may hold a .memsyncignore; see Ignore for its language. Names that begin
// with a dot, names that do not end in .md and what editors leave behind are not
// memories and are not looked at.
//
// What works where. Linux: everything. macOS: everything, but between the last look
// at a file and its replacement a few microseconds remain in which an edit can get
// lost (Linux exchanges the two files atomically and looks afterwards), and disks that
// ignore case were tested in part only. Windows: scan, read, write and remove work;
// the disk reports neither inode nor change time, so a tool that restores both size and
// modification time after an edit goes unseen, and directories cannot be fsynced.
package workspace
