package syncer_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncer/synctest"
	"github.com/memsvc/memsvc/internal/memory"
)

// TestWhatWaitsForTheHub: while the hub cannot be asked, what waits for it is counted
// against what is known of it, and a file that must stay here is refused at once, in the
// state too. A correction is noticed as well, without the hub.
func TestWhatWaitsForTheHub(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	for _, p := range []memory.Path{"project_a.md", "project_b.md", "project_c.md", "project_d.md", "project_same.md"} {
		a.save(p, string(p)+"\n")
	}
	a.save("MEMORY.md", "- [A](project_a.md) — a\n- [K](project_kept.md) — stays here\n")
	w.settle(a)
	before := w.hub.Files()

	a.remote.Hook = func(string, bool) error { return errors.New("connection refused") }
	for _, p := range []memory.Path{"project_a.md", "project_b.md", "project_new.md"} {
		a.save(p, "edited: "+string(p)+"\n")
	}
	a.Delete("project_c.md")
	waits := func(pending int, refused ...memory.Path) {
		t.Helper()
		_ = a.syncErr()
		st := a.s.Status()
		if st.Phase != syncer.PhaseFailing || st.Pending != pending || len(st.Refused) != len(refused) {
			t.Fatalf("status %+v; want %d pending and %v refused", st, pending, refused)
		}
		for i, p := range refused {
			if h := st.Refused[i]; h.Path != p || h.By != syncer.HeldByGuard || len(h.Violations) == 0 {
				t.Errorf("refused %+v, want %s", h, p)
			}
		}
	}
	waits(4)
	a.save("project_d.md", "a "+synctest.Secret+"\n")
	waits(4, "project_d.md")
	waits(4, "project_d.md")
	a.restart()
	waits(4, "project_d.md")
	a.save("project_d.md", "clean\n")
	waits(5)
	a.save("project_d.md", "project_d.md\n") // as it was
	waits(4)
	w.want(before)

	a.remote.Hook = nil
	w.settle(a)
	if st := a.s.Status(); st.Pending != 0 || st.Phase != syncer.PhaseInSync {
		t.Errorf("status %+v", st)
	}
	got := w.hub.Files()
	if got["project_a.md"] != "edited: project_a.md\n" || got["project_new.md"] == "" || got["project_c.md"] != "" || got["project_d.md"] != "project_d.md\n" {
		t.Errorf("hub %v", got)
	}
}

// TestWhatCouldNotBePushedWaits counts what a push that ends in the middle leaves.
func TestWhatCouldNotBePushedWaits(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	a.save("project_old.md", "old\n")
	w.settle(a)
	a.remote.Hook = func(op string, _ bool) error {
		if op == "push" {
			return &memory.Error{Reason: memory.ReasonPermissionDenied}
		}
		return nil
	}
	a.save("project_x.md", "x\n")
	a.save("project_bad.md", synctest.Secret+"\n")
	a.Delete("project_old.md")
	_ = a.syncErr()
	if st := a.s.Status(); st.Phase != syncer.PhaseStopped || st.Pending != 2 || len(st.Refused) != 1 {
		t.Errorf("status %+v; want 2 pending, 1 refused", st)
	}
}

// TestCountsAreWhatTheySay: commits, not files; files written and removed here.
func TestCountsAreWhatTheySay(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	counts := func(m *machine, commits, applied int64) {
		t.Helper()
		if st := m.s.Status(); st.Commits != commits || st.Applied != applied {
			t.Errorf("%s: %d commits, %d applied; want %d, %d", m.name, st.Commits, st.Applied, commits, applied)
		}
	}
	for i := range 8 {
		a.save(memory.Path(fmt.Sprintf("project_%d.md", i)), fmt.Sprintln("text", i))
	}
	w.settle(a, b)
	counts(a, 1, 0)
	counts(b, 0, 8)
	a.Delete("project_0.md")
	a.Delete("project_1.md")
	w.settle(a, b)
	counts(a, 2, 0)
	counts(b, 0, 10)
	b.save("project_2.md", "of b\n")
	w.settle(a, b)
	counts(a, 2, 1)
	counts(b, 1, 10)
	w.settle(a, b)
	counts(a, 2, 1)
}
