// Package watcher notices that something below a directory may have changed, and
// says only "look again". It never says what changed: events are hints that get
// lost, doubled and reordered, and the truth is a scan.
//
// A Set shares one connection to the operating system's event queue between all
// roots. Each root has one goroutine, so a root on a file system that hangs stops
// no other. Directories are watched, never files: editors replace files, and a
// watch on a file dies with the inode. Where events cannot be had (network file
// systems, FUSE, an exhausted inotify limit) the root is polled, by stat alone, and
// Mode says so and why.
//
// What works where: inotify on Linux and ReadDirectoryChangesW on Windows cost one
// watch a directory. kqueue on macOS and the BSDs opens every file of a watched
// directory, which may meet the process's limit of open files; the root is then
// polled like on any other exhausted limit.
package watcher
