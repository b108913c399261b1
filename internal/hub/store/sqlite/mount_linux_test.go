package sqlite

import "syscall"

// mount mounts a tmpfs; unmount takes it away.
func mount(dir, options string) (unmount func() error, err error) {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		return nil, err
	}
	return func() error { return syscall.Unmount(dir, 0) }, nil
}
