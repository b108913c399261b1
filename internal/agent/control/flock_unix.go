//go:build unix

package control

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

var errWouldBlock = error(unix.EWOULDBLOCK)

func lockFile(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
