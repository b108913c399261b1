package syncer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// timedDirs is a Local that knows when a name in its root last came or went.
type timedDirs struct {
	syncer.Local
	root time.Time
}

func (l *timedDirs) Scan(ctx context.Context) (syncer.Snapshot, error) {
	snap, err := l.Local.Scan(ctx)
	snap.Dirs = map[memory.Path]time.Time{"": l.root}
	return snap, err
}

// timed gives the machine a Local with directory times.
func (m *machine) timed() *timedDirs {
	l := &timedDirs{Local: m.Disk.Local(), root: m.w.now}
	m.s = syncer.New(syncer.Ports{
		Local: l, State: m.state, Remote: m.remote, Guard: m.guard, Uploads: m.gate, Clock: m.w.clock,
		NewID: func() string { m.w.ids++; return fmt.Sprintf("id-%d", m.w.ids) },
	}, syncer.Options{})
	return l
}

// TestGapOfASave looks between an editor's removal of the old file and its writing of
// the new one: no delete is sent, and a delete that lasts is.
func TestGapOfASave(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	dirs := a.timed()
	a.Save("x.md", "one\n")
	a.sync()

	a.Delete("x.md")
	dirs.root = w.now.Add(5 * time.Second) // the very moment of the next cycle
	if r := a.sync(); r.Pending != 1 || r.Again <= 0 || r.Again > time.Second {
		t.Errorf("in the gap: %+v, want one change left for a moment later", r)
	}
	a.Save("x.md", "two\n")
	a.sync()
	if got := len(w.hub.Commits()); got != 2 {
		t.Errorf("%d revisions, want 2: the two texts and no delete", got)
	}

	a.Delete("x.md")
	dirs.root = w.now.Add(4 * time.Second) // a second before the next cycle
	if r := a.sync(); r.Deleted != 1 || r.Pending != 0 {
		t.Errorf("a delete that lasts: %+v, want it sent", r)
	}
}

// TestGapOfASaveMeetsAnEdit looks into the gap when the other side has edited the
// file: the hub's text is not put where the editor is about to write, which would
// then count as seen.
func TestGapOfASaveMeetsAnEdit(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	dirs := a.timed()
	a.Save("x.md", "one\n\ntwo\n\nthree\n")
	a.sync()
	b.sync()
	b.Save("x.md", "one\n\ntwo\n\nthree, from b\n")
	b.sync()

	a.Delete("x.md")
	dirs.root = w.now.Add(5 * time.Second)
	a.sync()
	a.Save("x.md", "one, from a\n\ntwo\n\nthree\n")
	a.sync()
	want := "one, from a\n\ntwo\n\nthree, from b\n"
	if got, _ := a.Read("x.md"); got != want {
		t.Errorf("got %q, want both edits: %q", got, want)
	}
}

// TestSupplantedFileDoesNotWait: a file gave way to a directory or to another
// spelling, so nobody is saving it.
func TestSupplantedFileDoesNotWait(t *testing.T) {
	for _, next := range []memory.Path{"a.md/x.md", "A.md"} {
		w := newWorld(t)
		a := w.machine("a")
		dirs := a.timed()
		a.Save("a.md", "one\n")
		a.sync()

		a.Delete("a.md")
		a.Save(next, "another text, long enough to be no rename of the old one\n")
		dirs.root = w.now.Add(5 * time.Second)
		if r := a.sync(); r.Deleted != 1 || r.Pushed != 1 || r.Pending != 0 {
			t.Errorf("%s: %+v, want the delete and the new file sent", next, r)
		}
	}
}
