package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// asNobody runs f with file permissions that count: as root, f's thread gives up
// root's file access and owns dir as another user.
func asNobody(t *testing.T, dir string, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	const nobody = 65534
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	}))
	// The way there must be open, too; it is the test's own directory.
	for up := filepath.Dir(dir); up != "/" && up != os.TempDir(); up = filepath.Dir(up) {
		must(t, os.Chmod(up, 0o755))
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Setfsuid(nobody)
	defer func() { _ = unix.Setfsuid(0) }()
	f()
}
