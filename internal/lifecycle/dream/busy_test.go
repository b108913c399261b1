package dream_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/memsvc/memsvc/internal/filelock"
	"github.com/memsvc/memsvc/internal/lifecycle/dream"
)

// TestRecoverBesideADream: what another dream left open cannot be called ended, or its
// half would be shared. A dream is skipped then.
func TestRecoverBesideADream(t *testing.T) {
	w := newWorld(t)
	w.write("project_a.md", "---\nname: A\ntype: project\n---\n\nA fact.\n", 3)
	w.write("../state/lock.json", "{}", 0)
	f, err := os.OpenFile(filepath.Join(w.d.Dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := filelock.TryLock(f); err != nil {
		t.Fatal(err)
	}
	if _, err := w.d.Recover(t.Context()); !errors.Is(err, dream.ErrBusy) {
		t.Errorf("recover beside a dream: %v, want ErrBusy", err)
	}
	if r, err := w.d.Run(t.Context(), dream.Options{Force: true}); err != nil || r.Skipped != dream.GateLock {
		t.Errorf("run beside a dream: skipped %q, %v", r.Skipped, err)
	}
	_ = f.Close()
	if _, err := w.d.Recover(t.Context()); err != nil {
		t.Errorf("after the other one: %v", err)
	}
}
