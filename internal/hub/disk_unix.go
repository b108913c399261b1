//go:build linux || darwin

package hub

import "golang.org/x/sys/unix"

// diskSpace returns the size of the file system below dir and what a user other than
// root may still write to it, in bytes; ok is false if the system does not say.
func diskSpace(dir string) (size, free float64, ok bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, false
	}
	block := float64(s.Bsize)
	return float64(s.Blocks) * block, float64(s.Bavail) * block, true
}
