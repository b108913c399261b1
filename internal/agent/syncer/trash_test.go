package syncer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// TestTrashIsBounded: a running syncer keeps the trash within its bytes and its time. What
// the hub's history has goes before what nobody else has, however old that is, then the
// oldest; what went is told.
func TestTrashIsBounded(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	b.opts.TrashBytes = 2500
	b.restart()
	big := func(x string) string { return strings.Repeat(x, 1000) + "\n" }

	// A text of b that loses its place and is given up is nowhere but in its trash.
	a.save("project_mine.md", "base\n")
	w.settle(a, b)
	a.save("project_mine.md", "a\n")
	b.save("project_mine.md", big("m"))
	a.sync()
	w.settle(b, a)
	open := b.s.Status().Conflicts
	if len(open) != 1 {
		t.Fatalf("conflicts %+v", open)
	}
	if err := b.s.Resolve(context.Background(), open[0].ID, syncer.TakeTheirs, nil); err != nil {
		t.Fatal(err)
	}
	w.settle(a, b)

	var gone []string
	for i := range 4 {
		p := memory.Path(fmt.Sprintf("project_%d.md", i))
		a.save(p, big(fmt.Sprint(i)))
		w.settle(a, b)
		w.now = w.now.Add(time.Hour)
		a.Delete(p)
		a.sync()
		for _, g := range b.sync().GivenUp {
			gone = append(gone, string(g.Path))
		}
		w.settle(a, b)
	}
	kept := func() (paths []string) {
		for _, x := range trashOf(t, b) {
			paths = append(paths, string(x.Path))
		}
		return paths
	}
	if d := cmp.Diff([]string{"project_3.md", "project_mine.md"}, kept()); d != "" {
		t.Errorf("kept (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"project_0.md", "project_1.md", "project_2.md"}, gone); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
	w.now = w.now.Add(31 * 24 * time.Hour)
	if r := b.sync(); len(r.GivenUp) != 0 || len(kept()) != 0 {
		t.Errorf("after a month: told %v, kept %v", r.GivenUp, kept())
	}
}

// trashOf returns a machine's trash, the newest first.
func trashOf(t *testing.T, m *machine) []syncer.Trashed {
	t.Helper()
	all, err := m.s.Trash(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return all
}
