package workspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent/workspace"
)

func TestUploadsWaitForAHolder(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "other-name")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip("no links here:", err)
	}
	who := workspace.Holder{PID: 7, Since: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), StateDir: "/state", Personal: "/memory"}

	leave, _, _, err := workspace.EnterUploads(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := workspace.HoldUploads(ctx, link, who); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("held while files are sent: %v", err)
	}
	leave()
	h, left, err := workspace.HoldUploads(t.Context(), link, who)
	if err != nil || left != nil {
		t.Fatalf("hold: %v, %v", left, err)
	}
	_, holder, isLeft, err := workspace.EnterUploads(dir)
	if !errors.Is(err, workspace.ErrHeldBack) || isLeft {
		t.Fatalf("entered while held: left %v, %v", isLeft, err)
	}
	if d := cmp.Diff(&who, holder); d != "" {
		t.Error(d)
	}

	// As after a kill: the lock is gone, the text is not.
	if err := h.Release(false); err != nil {
		t.Fatal(err)
	}
	if _, holder, isLeft, err = workspace.EnterUploads(dir); !errors.Is(err, workspace.ErrHeldBack) || !isLeft || holder == nil || *holder != who {
		t.Fatalf("entered over a leftover: %v %v %v", holder, isLeft, err)
	}
	h, left, err = workspace.HoldUploads(t.Context(), dir, workspace.Holder{PID: 8, StateDir: "/other"})
	if err != nil || left == nil || *left != who {
		t.Fatalf("hold over a leftover: %v, %v", left, err)
	}
	if err := h.Release(true); err != nil {
		t.Fatal(err)
	}
	leave, _, _, err = workspace.EnterUploads(dir)
	if err != nil {
		t.Fatal(err)
	}
	leave()
}

func TestUploadsFileThatIsNone(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, ".memsync-uploads")
	memory := filepath.Join(dir, "project_x.md")
	if err := os.WriteFile(memory, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("project_x.md", name); err != nil {
		t.Skip("no links here:", err)
	}
	_, _, err := workspace.HoldUploads(t.Context(), dir, workspace.Holder{StateDir: "/state"})
	if err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("held through a link: %v", err)
	}
	if _, _, _, err := workspace.EnterUploads(dir); err == nil {
		t.Error("entered through a link")
	}
	if text, _ := os.ReadFile(memory); string(text) != "kept" {
		t.Errorf("the memory is %q", text)
	}
	// Half of a text was never followed by a change: it holds nobody.
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(`{"pid":7,"since":"2026`), 0o644); err != nil {
		t.Fatal(err)
	}
	leave, _, _, err := workspace.EnterUploads(dir)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	if _, _, _, err := workspace.EnterUploads(filepath.Join(dir, "missing")); err != nil {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// TestUploadsOfADirectoryThatCannotBeWritten: where the file cannot be made nobody holds
// anything, and files are sent as before.
func TestUploadsOfADirectoryThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere; killtest has a disk that is full and one that is read-only")
	}
	leave, _, _, err := workspace.EnterUploads(dir)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	if _, _, err := workspace.HoldUploads(t.Context(), dir, workspace.Holder{StateDir: "/s"}); err == nil {
		t.Error("held what cannot be written")
	}
}
