//go:build linux

package killtest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// mountTrouble handles a mount that failed: where mounts cannot be had the test is
// skipped, but never in CI as root, where they can.
func mountTrouble(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("CI") == "true" && os.Geteuid() == 0 {
		t.Fatalf("mount: %v; CI as root must be able to (CAP_SYS_ADMIN)", err)
	}
	t.Skipf("mounts are not permitted here (%v); run as root with CAP_SYS_ADMIN", err)
}

// smallDisk mounts a disk of so many bytes and returns its directory. It goes with
// the test, after the programs that use it.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := filepath.Join(tempDir(t), "disk")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+",mode=755"); err != nil {
		mountTrouble(t, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// fill takes all the space of the disk that dir is on, and returns what gives it back.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	name := filepath.Join(dir, "ballast")
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for _, chunk := range []int{1 << 16, 1 << 10, 1} { // down to the last byte
		for {
			if _, err := f.Write(make([]byte, chunk)); err != nil {
				if !errors.Is(err, syscall.ENOSPC) {
					t.Fatal(err)
				}
				break
			}
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// readOnly makes what lies below dir unwritable, also for root, and returns what
// makes it writable again. Nobody may have a file open for writing there.
func readOnly(t *testing.T, dir string) (writable func()) {
	t.Helper()
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		mountTrouble(t, err)
	}
	remount := func(flags uintptr) {
		t.Helper()
		if err := unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|flags, ""); err != nil {
			t.Fatalf("remount %s: %v", dir, err)
		}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	remount(unix.MS_RDONLY)
	return func() { t.Helper(); remount(0) }
}
