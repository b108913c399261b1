package watcher

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// D1: a disk is mounted over the root and taken away again. No event tells of it, and
// the watches must not keep the disk from going.
func TestRootIsMountedOver(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	root := realDir(t)
	w := start(t, root, fast())
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("this system lets no test mount a tmpfs: %v", err)
	}
	mounted := true
	t.Cleanup(func() {
		if mounted {
			_ = unix.Unmount(root, unix.MNT_DETACH)
		}
	})
	await(t, w, "the mount")
	drain(w, 200*time.Millisecond)
	write(t, filepath.Join(root, "a.md"), "x")
	await(t, w, "a file on the mounted disk")
	drain(w, 100*time.Millisecond)
	// It is busy while a look is under way, and not for good.
	for deadline := time.Now().Add(patience); mounted; {
		switch err := unix.Unmount(root, 0); {
		case err == nil:
			mounted = false
		case !errors.Is(err, unix.EBUSY) || time.Now().After(deadline):
			t.Fatalf("the watcher keeps the disk busy: %v", err)
		default:
			drain(w, 20*time.Millisecond)
		}
	}
	await(t, w, "the unmount")
	drain(w, 200*time.Millisecond)
	write(t, filepath.Join(root, "b.md"), "x")
	await(t, w, "a file in the directory below")
}
