package syncer_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// Much is deleted on the hub, and the process is killed when the files are gone and the
// baseline does not know yet. That is no accident of this machine: no brake holds it.
func TestPulledDeletesAndAKillAreNoHalt(t *testing.T) {
	for _, n := range []int{2, 10} {
		w := newWorld(t)
		a, b := w.machine("a"), w.machine("b")
		var all []memory.Path
		for i := range n {
			p := memory.Path(fmt.Sprintf("m%d.md", i))
			all = append(all, p)
			a.save(p, string(p)+"\n")
		}
		w.settle(a, b)
		for _, p := range all {
			w.hub.Put(p, "")
		}
		killed, applies := errors.New("killed"), 0
		a.state.Hook = func(op string, after bool) error {
			if op == "apply" && !after {
				if applies++; applies > 1 { // the first one is the trash's
					return killed
				}
			}
			return nil
		}
		if err := a.syncErr(); !errors.Is(err, killed) || len(a.Files()) != 0 {
			t.Fatalf("%v, %d files", err, len(a.Files()))
		}
		a.state.Hook = nil
		a.restart()
		if r := a.sync(); r.Phase != syncer.PhaseInSync {
			t.Errorf("%d deletes: %s, %+v", n, r.Phase, a.s.Status().Halt)
		}

		// The same texts live again, and then really vanish here: that is an accident.
		for _, p := range all {
			w.hub.Put(p, string(p)+"\n")
		}
		w.settle(a)
		for _, p := range all {
			a.Delete(p)
		}
		if r := a.sync(); r.Phase != syncer.PhaseHalted {
			t.Errorf("%d files vanished: %s", n, r.Phase)
		}
	}
}

// A name that this disk cannot hold is named in status and holds nothing else back, and
// the link does not count as failing for it.
func TestNameThatTheDiskCannotHold(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	a.sync()
	w.hub.Put("what?.md", "x\n")
	a.Hook = func(op string, after bool) error {
		if _, there := a.Read("fine.md"); op == "write" && !after && !there && a.w.hub.Memory("fine.md").ETag == "" {
			return fmt.Errorf("write: %w", syncer.ErrLocalName)
		}
		return nil
	}
	a.sync()
	held := a.state.Link().Held["what?.md"]
	if held.By != syncer.HeldByDisk || held.Violations[0].Rule != "local-name" {
		t.Errorf("held %+v", held)
	}
	w.hub.Put("fine.md", "fine\n")
	a.sync()
	if got, _ := a.Read("fine.md"); got != "fine\n" {
		t.Errorf("another file is %q", got)
	}
}
