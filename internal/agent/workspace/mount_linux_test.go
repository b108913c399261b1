package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/memsvc/memsvc/internal/agent/syncer"
)

// mount puts a small disk of its own at dir until the test ends or the returned
// function is called.
func mount(t *testing.T, dir, options string) (unmount func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("this system lets no test mount a tmpfs: %v", err)
	}
	done := false
	unmount = func() {
		if done {
			return
		}
		done = true
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
			_ = unix.Unmount(dir, unix.MNT_DETACH)
		}
	}
	t.Cleanup(unmount)
	return unmount
}

// D1: an empty disk is mounted over team/, and later gone again.
func TestRootIsMountedOver(t *testing.T) {
	w := open(t)
	put(t, w, "a.md", "x")
	must(t, w.PutMarker(t.Context(), "link-1"))
	scanOf(t, w)
	unmount := mount(t, w.dir, "size=1m")
	if s := scanOf(t, w); s.Root != syncer.RootReplaced || len(s.Files) != 0 || s.Marker != "" {
		t.Errorf("mounted: %+v", s)
	}
	if err := w.Write(t.Context(), "b.md", []byte("x"), authored, ""); !errors.Is(err, syncer.ErrLocalChanged) {
		t.Errorf("write: %v", err)
	}
	unmount() // which shows that no file is kept open
	if s := scanOf(t, w); s.Root != syncer.RootOK || len(s.Files) != 1 {
		t.Errorf("unmounted: %+v", s)
	}
}

// A full disk: the old text stays, nothing is left, and it works again with space.
func TestFullDisk(t *testing.T) {
	w := open(t)
	mount(t, w.dir, "size=64k")
	must(t, w.Write(t.Context(), "sub/a.md", []byte("old"), authored, ""))
	filler := filepath.Join(w.dir, ".filler")
	f, err := os.Create(filler)
	must(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	before := tree(t, w.dir)
	big := []byte(strings.Repeat("x", 20<<10))
	if err := w.Write(t.Context(), "sub/a.md", big, authored, etag("old")); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("replace: %v", err)
	}
	if err := w.Write(t.Context(), "new/dir/b.md", big, authored, ""); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("create: %v", err)
	}
	if diff := cmp.Diff(before, tree(t, w.dir)); diff != "" {
		t.Error(diff)
	}
	must(t, os.Remove(filler))
	must(t, w.Write(t.Context(), "sub/a.md", big, authored, etag("old")))
}
