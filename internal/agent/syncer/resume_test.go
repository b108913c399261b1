package syncer_test

import (
	"errors"
	"testing"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// A pull is written to the disk and the process dies before the baseline knows. What the
// hub did with these paths meanwhile is followed, as if the pull had been saved.
func TestPullKilledBeforeItWasSaved(t *testing.T) {
	paths := []memory.Path{"edited.md", "deleted.md", "new.md", "newgone.md"}
	text := map[memory.Path][3]string{
		"edited.md":  {"one\n", "two\n", "three\n"},
		"deleted.md": {"one\n", "two\n", ""},
		"new.md":     {"", "two\n", "three\n"},
		"newgone.md": {"", "two\n", ""},
	}
	// The first pull may have found the disk busy once, so that the baseline knows
	// already that the hub is ahead.
	for _, behind := range []bool{false, true} {
		testPullKilled(t, paths, text, behind, false)
		testPullKilled(t, paths, text, behind, true)
	}
}

func testPullKilled(t *testing.T, paths []memory.Path, text map[memory.Path][3]string, behind, unreadable bool) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	to := func(n int) {
		for _, p := range paths {
			if s := text[p][n]; s != "" {
				b.save(p, s)
			} else {
				b.Delete(p)
			}
		}
		w.settle(b)
	}
	to(0)
	w.settle(a, b)
	to(1)
	if behind {
		a.Disk.Hook = func(op string, after bool) error {
			if op == "write" && !after {
				return errors.New("disk full")
			}
			return nil
		}
		_ = a.syncErr()
		a.Disk.Hook = nil
	}
	killed := errors.New("killed")
	writes := 0
	a.Disk.Hook = func(op string, after bool) error {
		if op == "write" && after {
			writes++
		}
		return nil
	}
	a.state.Hook = func(op string, after bool) error {
		if op == "apply" && writes > 0 {
			return killed
		}
		return nil
	}
	if err := a.syncErr(); !errors.Is(err, killed) {
		t.Fatal(err)
	}
	a.Disk.Hook, a.state.Hook = nil, nil
	if writes != len(paths) {
		t.Fatalf("%d of %d files were pulled before the kill", writes, len(paths))
	}
	a.state.PowerLoss()
	a.restart()
	to(2)
	if unreadable { // the first look afterwards meets a bad disk
		bad := errors.New("bad disk")
		a.Disk.Hook = func(op string, after bool) error {
			if op == "read" && !after {
				return bad
			}
			return nil
		}
		if err := a.syncErr(); !errors.Is(err, bad) {
			t.Error(err)
		}
		a.Disk.Hook = nil
	}
	w.settle(a, b)
	want := files{"edited.md": "three\n", "new.md": "three\n"}
	w.want(want)
	a.want(want)
	b.want(want)
	if c := a.s.Status().Conflicts; len(c) != 0 {
		t.Errorf("behind %v, unreadable %v: conflicts with what was pulled: %+v", behind, unreadable, c)
	}
	if st := a.s.Status(); st.Phase != syncer.PhaseInSync {
		t.Errorf("behind %v, unreadable %v: %+v", behind, unreadable, st)
	}
}
