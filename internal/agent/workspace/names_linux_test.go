package workspace

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestUnnameable asks a disk for names that it does not take, in every step that names
// something; trouble of another kind is none of the name's.
func TestUnnameable(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.WriteFile("x", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("n", 300)
	_, lstat := root.Lstat(long)
	_, open := root.OpenRoot(long)
	for step, err := range map[string]error{
		"link": root.Link("x", long), "rename": root.Rename("x", long), "mkdir": root.Mkdir(long, 0o700), "lstat": lstat, "open": open,
	} {
		if !unnameable(err) {
			t.Errorf("%s: %v", step, err)
		}
	}
	_, absent := root.Lstat("absent")
	for _, err := range []error{nil, absent, &os.PathError{Op: "fsync", Err: syscall.EINVAL}, &os.PathError{Op: "open", Err: syscall.ENOSPC}} {
		if unnameable(err) {
			t.Errorf("%v", err)
		}
	}
}
