package syncer_test

import (
	"context"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncer/synctest"
)

// gate is a syncer.Uploads that a test closes.
type gate struct {
	held   bool
	inside int
	enter  func() // what is done before anything may be sent
}

// Enter is syncer.Uploads's.
func (g *gate) Enter(context.Context) (func(), bool) {
	if g.held {
		return nil, false
	}
	if g.enter != nil {
		g.enter()
	}
	g.inside++
	return func() { g.inside-- }, true
}

// TestHeldBackUploads: while somebody changes files that belong together, what others
// sent arrives and nothing is sent; then all of it goes up in one commit.
func TestHeldBackUploads(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("project_x.md", "one\n")
	a.save("project_y.md", "two\n")
	a.save("project_z.md", synctest.Secret+"\n")
	w.settle(a, b)
	before := len(w.hub.Commits())

	a.gate.held = true
	a.save("project_x.md", "one and two\n")
	b.save("project_new.md", "of b\n")
	b.sync()
	for range 2 {
		r := a.sync()
		if r.Pushed != 0 || r.Phase != syncer.PhasePending || r.Again == 0 || r.Pending == 0 {
			t.Errorf("held back: %+v", r)
		}
	}
	if got := a.Files()["project_new.md"]; got != "of b\n" {
		t.Errorf("what others sent did not arrive: %q", got)
	}
	if n := len(a.s.Status().Refused); n != 1 {
		t.Errorf("%d refusals while uploads wait, want the one there was", n)
	}
	a.Delete("project_y.md")
	w.want(files{"project_x.md": "one\n", "project_y.md": "two\n", "project_new.md": "of b\n"})

	a.gate.held = false
	inside := 0
	a.remote.Hook = func(op string, after bool) error {
		if op == "push" && !after {
			inside = a.gate.inside
		}
		return nil
	}
	w.settle(a, b)
	if n := len(w.hub.Commits()) - before; n != 2 {
		t.Errorf("%d commits, want b's and one with all of a's", n)
	}
	w.want(files{"project_x.md": "one and two\n", "project_new.md": "of b\n"})
	if inside != 1 || a.gate.inside != 0 {
		t.Errorf("entered %d times at the push, %d after the cycle; want 1 and 0", inside, a.gate.inside)
	}
}

// TestMergedWithTheRest: an edit that met another one on the hub is merged and goes up
// with what was saved beside it, so that nobody sees one without the other.
func TestMergedWithTheRest(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("project_keep.md", "1\n2\n3\n")
	a.save("project_twin.md", "of the twin\n")
	w.settle(a, b)
	before := len(w.hub.Commits())
	a.save("project_keep.md", "1\n2\n3\nof the twin\n")
	a.Delete("project_twin.md")
	late := true
	a.remote.Hook = func(op string, after bool) error {
		if op == "push" && !after && late { // b is faster by a hair
			late = false
			b.save("project_keep.md", "one\n2\n3\n")
			b.sync()
		}
		return nil
	}
	w.settle(a, b)
	want := files{"project_keep.md": "one\n2\n3\nof the twin\n"}
	w.want(want)
	b.want(want)
	if n := len(w.hub.Commits()) - before; n != 2 {
		t.Errorf("%d commits, want b's and one with all of a's", n)
	}
}

// TestEndedBeforeUploads: what a dead process left half done is ended by whoever would
// send files next, and its deletes, a moment old then, go up with the rest.
func TestEndedBeforeUploads(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	dirs := a.timed()
	a.save("project_x.md", "one\n")
	a.save("project_y.md", "one\n")
	a.save("MEMORY.md", "- [x](project_x.md)\n- [y](project_y.md)\n")
	a.sync()
	before := len(w.hub.Commits())
	a.gate.enter = func() {
		a.gate.enter = nil
		a.save("MEMORY.md", "- [x](project_x.md)\n")
		a.Delete("project_y.md")
		dirs.root = w.now
		w.now = w.now.Add(300 * time.Millisecond)
	}
	a.sync()
	a.sync()
	if all := w.hub.Commits(); len(all)-before != 1 || len(all[len(all)-1].Changes) != 2 {
		t.Errorf("%d commits, want one of two changes: %+v", len(all)-before, all[before:])
	}
}
