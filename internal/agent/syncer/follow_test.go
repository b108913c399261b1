package syncer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/memsvc/memsvc/internal/agent/syncer"
)

// countedLocal counts scans.
type countedLocal struct {
	syncer.Local
	scans *int
}

func (l countedLocal) Scan(ctx context.Context) (syncer.Snapshot, error) {
	*l.scans++
	return l.Local.Scan(ctx)
}

func (l countedLocal) Same(ctx context.Context, seen syncer.Snapshot) bool {
	return l.Local.(syncer.Glancer).Same(ctx, seen)
}

// TestFollowScansNothingAndOverwritesNothing lets the hub move while files are edited
// here that no cycle has seen: what was not touched is brought up to date without a
// scan, an edit at the same path stays and is merged by the next cycle, and after
// anything that was left open the disk is looked at again.
func TestFollowScansNothingAndOverwritesNothing(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	scans := 0
	b.s = syncer.New(syncer.Ports{
		Local: countedLocal{b.Disk.Local(), &scans}, State: b.state, Remote: b.remote, Guard: b.guard, Clock: w.clock,
		NewID: func() string { w.ids++; return fmt.Sprintf("id-%d", w.ids) },
	}, syncer.Options{})
	follow := func() syncer.Result {
		t.Helper()
		r, err := b.s.Follow(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a.save("project_x.md", "1\n2\n3\n")
	a.save("project_y.md", "1\n2\n3\n")
	a.save("project_z.md", "z\n")
	follow() // the first look is one, whatever is asked for
	w.settle(a, b)

	before := scans
	a.save("project_x.md", "A\n2\n3\n")
	a.Delete("project_z.md")
	a.save("project_new.md", "new\n")
	a.sync()
	if r := follow(); scans != before || r.Phase != syncer.PhaseInSync {
		t.Errorf("%d scans, %+v", scans-before, r)
	}
	b.want(files{"project_x.md": "A\n2\n3\n", "project_y.md": "1\n2\n3\n", "project_new.md": "new\n"})
	// What it wrote itself it knows.
	a.save("project_x.md", "A\n2\nB\n")
	a.sync()
	if r := follow(); scans != before || r.Pulled != 1 || r.Phase != syncer.PhaseInSync {
		t.Errorf("again: %d scans, %+v", scans-before, r)
	}

	b.save("project_y.md", "1\n2\nof b\n") // nobody has seen it
	a.save("project_y.md", "of a\n2\n3\n")
	a.save("project_new.md", "new, edited\n")
	a.sync()
	if r := follow(); scans != before || r.Phase != syncer.PhasePending {
		t.Errorf("with unseen edits: %d scans, %+v", scans-before, r)
	}
	b.want(files{"project_x.md": "A\n2\nB\n", "project_y.md": "1\n2\nof b\n", "project_new.md": "new, edited\n"})
	follow() // something was left open
	if scans == before {
		t.Error("no scan after a cycle that left something open")
	}
	w.settle(b, a)
	want := files{"project_x.md": "A\n2\nB\n", "project_y.md": "of a\n2\nof b\n", "project_new.md": "new, edited\n"}
	a.want(want)
	b.want(want)

	// Files that came or went are seen, above all when all of them went.
	for p := range b.Files() {
		b.Delete(p)
	}
	a.save("project_new.md", "new, edited again\n")
	a.sync()
	if r := follow(); r.Phase != syncer.PhaseHalted {
		t.Errorf("emptied: %+v", r)
	}
	if err := b.s.Resume(t.Context(), syncer.Restore); err != nil {
		t.Fatal(err)
	}
	w.settle(b, a)

	// A text that a person brings back is an edit that must be seen.
	trash, err := b.s.Trash(t.Context())
	if err != nil || len(trash) == 0 {
		t.Fatalf("trash %v, %v", trash, err)
	}
	if _, err := b.s.RestoreTrash(t.Context(), trash[0].ID); err != nil {
		t.Fatal(err)
	}
	if r := follow(); r.Pushed == 0 {
		t.Errorf("after a restore: %+v", r)
	}
}
