package syncer_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncer/synctest"
	"github.com/memsvc/memsvc/internal/memory"
)

// putBack makes the machines meet an older copy of the hub, silently: it has the same
// epoch, but a lower head or, when it went on, another history (ruling 13.4).
func (w *world) putBack(to *synctest.Hub, ms ...*machine) {
	w.hub = to
	for _, m := range ms {
		m.remote.Hub = to
	}
}

// A volume that was put back lost what came after the snapshot: the newer texts are
// offered again, also where the hub has gone on since, and also past its old head.
func TestHubSnapshotWithoutNewEpoch(t *testing.T) {
	for _, goesOn := range []int{0, 1, 3, 20} {
		t.Run(fmt.Sprint("goes on by ", goesOn), func(t *testing.T) {
			w := newWorld(t)
			a, b := w.machine("a"), w.machine("b")
			for i := range 5 {
				a.save("old.md", fmt.Sprint("old ", i, "\n"))
				w.settle(a, b)
			}
			a.save("edited.md", "one\n")
			a.save("gone.md", "gone\n")
			a.save("same.md", "same\n")
			w.settle(a, b)
			snapshot := w.hub.Clone()
			a.save("new.md", "new\n")
			a.save("old.md", "second\n")
			b.save("edited.md", "two\n")
			b.Delete("gone.md")
			w.settle(a, b)
			w.putBack(snapshot, a, b)
			a.save("edited.md", "three\n")
			want := files{"old.md": "second\n", "edited.md": "three\n", "new.md": "new\n", "same.md": "same\n", "gone.md": "gone\n"}
			w.now = w.now.Add(time.Hour)
			for i := range goesOn {
				w.hub.Put("other.md", fmt.Sprint("other ", i, "\n"))
				want["other.md"] = fmt.Sprint("other ", i, "\n")
			}
			w.settle(b, a) // b offers again what the edit was made on
			w.want(want)
			a.want(want)
			b.want(want)
			if n := len(a.s.Status().Conflicts) + len(b.s.Status().Conflicts); n != 0 {
				t.Errorf("%d conflicts: %+v", n, a.s.Status().Conflicts)
			}
			notes, err := b.s.Notes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var undone []memory.Path
			for _, n := range notes {
				if n.Kind == syncer.NoteDeleteUndone {
					undone = append(undone, n.Path)
				}
			}
			if diff := cmp.Diff([]memory.Path{"gone.md"}, undone); diff != "" {
				t.Errorf("undone deletes (-want +got):\n%s", diff)
			}
		})
	}
}

// What was changed there after the snapshot was put back is merged, or a conflict, and
// never overwritten.
func TestHubSnapshotThenEditThere(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	const text = "first\n1\n2\n3\nlast\n"
	a.save("merge.md", text)
	a.save("clash.md", "clash\n")
	a.sync()
	snapshot := w.hub.Clone()
	a.save("merge.md", "first here\n1\n2\n3\nlast\n")
	a.save("clash.md", "clash here\n")
	a.sync()
	w.putBack(snapshot, a)
	w.hub.Put("merge.md", "first\n1\n2\n3\nlast there\n")
	w.hub.Put("clash.md", "clash there\n")
	w.settle(a)
	if got := w.hub.Files()["clash.md"]; got != "clash there\n" {
		t.Errorf("an edit made after the snapshot was put back was overwritten: %q", got)
	}
	kept := textsOf(a)
	for _, want := range []string{"clash here\n", "first here\n1\n2\n3\nlast\n"} {
		found := false
		for _, got := range kept {
			found = found || got == want
		}
		if !found {
			t.Errorf("%q is gone", want)
		}
	}
}

// The hub's volume is put back to before commits of ours that stand beyond the cursor.
// The cursor fits, and is the point up to which all is shared.
func TestSnapshotLosesCommitsBeyondTheCursor(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	a.save("x.md", "one\n")
	a.sync()
	snapshot := w.hub.Clone()
	a.save("x.md", "two\n")
	a.remote.Hook = func(op string, after bool) error {
		if op == "push" && !after {
			a.remote.Hook = nil
			w.hub.Put("other.md", "other\n") // so that the cursor cannot move over our commit
		}
		return nil
	}
	a.sync()
	if at, base := a.state.Link().Cursor.Revision, a.state.Link().Baseline["x.md"].HubRevision; at >= base {
		t.Fatalf("the cursor %d is not before our commit %d", at, base)
	}
	w.putBack(snapshot, a)
	w.settle(a)
	w.want(files{"x.md": "two\n"})
	if c := a.s.Status().Conflicts; len(c) != 0 {
		t.Errorf("conflicts %+v", c)
	}
}

// A volume is put back silently, goes on, and then gets a new epoch: what the hub says of
// the shared history counts commits that this machine never saw. Its marks know better.
func TestSnapshotThenNewEpoch(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	a.save("x.md", "one\n")
	a.sync()
	snapshot := w.hub.Clone()
	a.save("other.md", "other\n")
	a.sync()
	a.save("x.md", "agreed\n")
	a.sync()
	w.now = w.now.Add(time.Hour)
	w.putBack(snapshot, a)
	w.hub.Put("x.md", "a new edit\n")
	w.hub.NewEpoch("epoch-2")
	w.settle(a)
	if got := w.hub.Files()["x.md"]; got != "a new edit\n" {
		t.Errorf("the hub has %q: an edit of another history was overwritten", got)
	}
	if x, err := a.s.Conflict(t.Context(), "x.md"); err != nil || string(x.Ours) != "agreed\n" {
		t.Errorf("conflict %q, %v", x.Ours, err)
	}
}

// Where nothing is known of the shared history (here the hub has forgotten all that the
// marks know), nothing is overwritten, on neither side.
func TestSnapshotWithNothingKnown(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	a.save("x.md", "one\n")
	a.sync()
	snapshot := w.hub.Clone()
	a.save("x.md", "two\n")
	a.sync()
	w.putBack(snapshot, a)
	w.now = w.now.Add(time.Hour)
	for i := range 3 {
		w.hub.Put("other.md", fmt.Sprint(i, "\n"))
	}
	w.hub.Oldest = memory.Revision(len(w.hub.Commits()))
	w.settle(a)
	w.want(files{"x.md": "one\n", "other.md": "2\n"})
	if x, err := a.s.Conflict(t.Context(), "x.md"); err != nil || string(x.Ours) != "two\n" {
		t.Errorf("conflict %q, %v", x.Ours, err)
	}
}

// A crash in the middle of the comparison, and the lost history back before the next one.
func TestSnapshotTakenBackDuringRecovery(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	a.save("x.md", "one\n")
	a.sync()
	snapshot := w.hub.Clone()
	a.save("x.md", "two\n")
	a.sync()
	full := w.hub
	w.putBack(snapshot, a)
	killed := errors.New("killed")
	a.remote.Hook = func(op string, after bool) error {
		if op == "push" {
			return killed
		}
		return nil
	}
	if err := a.syncErr(); !errors.Is(err, killed) {
		t.Fatal(err)
	}
	a.remote.Hook = nil
	a.restart()
	w.putBack(full, a)
	w.settle(a)
	w.want(files{"x.md": "two\n"})
	if link := a.state.Link(); link.Recovery != nil || len(a.s.Status().Conflicts) != 0 {
		t.Errorf("left over: %+v %+v", link.Recovery, a.s.Status().Conflicts)
	}
}

// TestMarks: the newest commits are marked one by one, older ones ever more thinly, and
// never more than the bound.
func TestMarks(t *testing.T) {
	s := syncer.NewLinkState()
	const n = 10_000
	for r := memory.Revision(1); r <= n; r++ {
		s.Apply(syncer.Update{Cursor: &memory.Cursor{Epoch: "e", Revision: r, CommitID: memory.CommitID(fmt.Sprint(r))}})
	}
	if len(s.Marks) > 256 || s.Marks[0].Revision != 1 {
		t.Fatalf("%d marks from %d on", len(s.Marks), s.Marks[0].Revision)
	}
	for i, m := range s.Marks[1:] {
		last := s.Marks[i].Revision
		if m.Revision <= last || m.ID != memory.CommitID(fmt.Sprint(m.Revision)) {
			t.Fatalf("mark %v after revision %d", m, last)
		}
		if age := n - last; m.Revision-last > 1+age/8 {
			t.Errorf("nothing is marked from %d to %d, %d before the head", last, m.Revision, age)
		}
	}
	keep := memory.Revision(9_000)
	s.Apply(syncer.Update{KeepMarks: &keep})
	if last := s.Marks[len(s.Marks)-1]; last.Revision > keep {
		t.Errorf("%v was kept", last)
	}
}

// A hub that fell back has lost conflicts that it kept. That they are missing there is no
// resolution: they are told to it again.
func TestRestoredHubIsToldOfConflictsAgain(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	a.save("x.md", "one\n")
	a.sync()
	snapshot := w.hub.Clone()
	w.hub.Put("x.md", "theirs\n")
	a.save("x.md", "ours\n")
	a.sync()
	open := a.s.Status().Conflicts
	if len(open) != 1 {
		t.Fatalf("conflicts %+v", open)
	}
	if err := a.s.MarkReported(t.Context(), open[0].ID, syncer.Report{Kept: true}); err != nil {
		t.Fatal(err)
	}
	w.putBack(snapshot, a)
	a.sync()
	if got := a.s.Status().Conflicts; len(got) != 1 || got[0].Reported || got[0].Kept {
		t.Errorf("conflicts %+v", got)
	}

	// One that is ended elsewhere leaves its text in the trash, and a note.
	if err := a.s.EndConflicts(t.Context(), nil, []string{open[0].ID}); err != nil {
		t.Fatal(err)
	}
	trash, err := a.s.Trash(t.Context())
	if err != nil || len(a.s.Status().Conflicts) != 0 {
		t.Errorf("%v, conflicts %+v", err, a.s.Status().Conflicts)
	}
	if len(trash) != 1 || trash[0].ETag != open[0].Local {
		t.Errorf("trash %+v", trash)
	}
}
