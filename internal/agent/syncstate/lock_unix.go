//go:build unix

package syncstate

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockDir makes this process the only writer of dir. Disks that know no locks on
// directories (NFS) go without; the state directory's own lock guards those.
func lockDir(dir string) (unlock func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		_ = f.Close()
		return nil, ErrInUse
	}
	return f.Close, nil
}
