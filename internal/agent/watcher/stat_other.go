//go:build !linux && !darwin

package watcher

import "io/fs"

// inodeAndCtime knows nothing here; size, time and mode must do.
func inodeAndCtime(fs.FileInfo) (uint64, int64) { return 0, 0 }

// silentFileSystem cannot tell file systems apart here. Network drives want
// Options.AlwaysPoll.
func silentFileSystem(string) string { return "" }
