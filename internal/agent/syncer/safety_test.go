package syncer_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncer/synctest"
	"github.com/memsvc/memsvc/internal/memory"
)

// filled returns a machine in step with a hub of n files.
func filled(w *world, n int) (*machine, files) {
	a := w.machine("a")
	all := files{}
	for i := range n {
		p := memory.Path(fmt.Sprintf("project_%02d.md", i))
		all[p] = fmt.Sprintf("text %d\n", i)
		a.save(p, all[p])
	}
	w.settle(a)
	return a, all
}

// Faults D1, D2, and ruling 13.17.
func TestBrakes(t *testing.T) {
	tests := []struct {
		name  string
		do    func(a *machine)
		phase syncer.Phase
	}{
		{"emptied", func(a *machine) { deleteAll(a, 0) }, syncer.PhaseHalted},
		{"three of forty come back", func(a *machine) { deleteAll(a, 3) }, syncer.PhaseHalted},
		{"an empty directory mounted over it", func(a *machine) { deleteAll(a, 0); a.Marker = "" }, syncer.PhaseHalted},
		{"the marker and one file are gone", func(a *machine) { a.Delete("project_00.md"); a.Marker = "" }, syncer.PhaseHalted},
		{"another link's directory", func(a *machine) { a.Marker = "other" }, syncer.PhaseHalted},
		{"missing", func(a *machine) { a.Root = syncer.RootMissing }, syncer.PhaseNoRoot},
		{"another device", func(a *machine) { a.Root = syncer.RootReplaced }, syncer.PhaseNoRoot},
		{"unreadable", func(a *machine) { a.Unreadable = []memory.Path{""} }, syncer.PhaseNoRoot},
		{"another directory, with all of these names", func(a *machine) { a.save("project_00.md", "mine\n"); a.Marker = "" }, syncer.PhaseHalted},
		{"another directory, with more", func(a *machine) { a.save("feedback_z.md", "mine\n"); a.Marker = "" }, syncer.PhaseHalted},
		{"the marker alone", func(a *machine) { a.Marker = "" }, syncer.PhaseInSync},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			a, all := filled(w, 40)
			marker := a.Marker
			tt.do(a)
			r := a.sync()
			if r.Phase != tt.phase || a.s.Status().Phase != tt.phase {
				t.Errorf("phase %s, want %s", r.Phase, tt.phase)
			}
			if (tt.phase == syncer.PhaseHalted) != (a.s.Status().Halt != nil) {
				t.Errorf("halt %+v", a.s.Status().Halt)
			}
			w.want(all)
			a.restart()
			a.sync()
			w.want(all)
			// Everything comes back by itself: the halt is over.
			for p := range a.Files() {
				if _, ours := all[p]; !ours {
					a.Delete(p)
				}
			}
			for p, text := range all {
				if now, there := a.Read(p); !there || now != text {
					a.save(p, text)
				}
			}
			a.Root, a.Unreadable, a.Marker = syncer.RootOK, nil, marker
			if r := a.sync(); r.Phase != syncer.PhaseInSync {
				t.Errorf("phase %s after all came back", r.Phase)
			}
			w.want(all)
		})
	}
}

func deleteAll(a *machine, but int) {
	for i, p := range a.Paths() {
		if i >= but {
			a.Delete(p)
		}
	}
}

func TestResume(t *testing.T) {
	for _, lostMarker := range []bool{false, true} {
		for _, mode := range []syncer.ResumeMode{syncer.AcceptDeletes, syncer.Restore} {
			w := newWorld(t)
			a, all := filled(w, 10)
			kept, _ := a.Read("project_00.md")
			deleteAll(a, 1)
			if lostMarker {
				a.Marker = ""
			}
			a.sync()
			a.restart()
			if err := a.s.Resume(t.Context(), mode); err != nil {
				t.Fatal(err)
			}
			a.restart() // the decision is durable
			a.sync()
			want := all
			if mode == syncer.AcceptDeletes {
				want = files{"project_00.md": kept}
			}
			w.want(want)
			a.want(want)
			if h := a.s.Status().Halt; h != nil {
				t.Errorf("still halted: %+v", h)
			}
			if err := a.s.Resume(t.Context(), mode); !errors.Is(err, syncer.ErrNotHalted) {
				t.Errorf("resumed twice: %v", err)
			}
		}
	}
}

// A link to the directory is bent to a personal one, which also has an index, and the
// agent starts anew. Nothing leaves that directory and nothing is written into it before
// a person says that it is the team's; then the index meets the team's as an equal.
func TestAnotherDirectoryInPlace(t *testing.T) {
	for _, mode := range []syncer.ResumeMode{syncer.AcceptDeletes, syncer.Restore} {
		w := newWorld(t)
		a := w.machine("a")
		a.save("MEMORY.md", "- [X](project_x.md) — x\n")
		team := a.Files()
		w.settle(a)
		a.restart()
		a.Marker = ""
		a.save("MEMORY.md", "- [Z](feedback_z.md) — z\n")
		a.save("feedback_z.md", "z\n")
		own := a.Files()
		for range 3 {
			if r := a.sync(); r.Phase != syncer.PhaseHalted || !strings.Contains(a.s.Status().Halt.Reason, "may be another directory") {
				t.Fatalf("%+v, %+v", r, a.s.Status().Halt)
			}
			a.restart()
		}
		w.want(team)
		a.want(own)
		if err := a.s.Resume(t.Context(), mode); err != nil {
			t.Fatal(err)
		}
		w.settle(a)
		for _, line := range []string{"project_x.md", "feedback_z.md"} {
			if hub := w.hub.Files()["MEMORY.md"]; !strings.Contains(hub, line) {
				t.Errorf("the team's index has no %s: %q", line, hub)
			}
		}
		if st := a.s.Status(); st.Phase != syncer.PhaseInSync || a.Marker == "" {
			t.Errorf("%+v", st)
		}
	}
}

// An agent that finds an empty directory and begins a new index must not take the
// team's entries away, whoever ends the halt.
func TestIndexWrittenAnewDuringHalt(t *testing.T) {
	for _, resume := range []bool{true, false} {
		w := newWorld(t)
		a, b := w.machine("a"), w.machine("b")
		a.save("MEMORY.md", "- [X](project_x.md) — x\n")
		a.save("project_x.md", "x\n")
		w.settle(a, b)
		deleteAll(a, 0)
		a.sync()
		a.save("MEMORY.md", "- [N](project_n.md) — n\n")
		a.save("project_n.md", "n\n")
		a.sync()
		if resume {
			if err := a.s.Resume(t.Context(), syncer.Restore); err != nil {
				t.Fatal(err)
			}
		} else {
			a.save("project_x.md", "x\n")
		}
		w.settle(a, b)
		want := files{"MEMORY.md": "- [N](project_n.md) — n\n- [X](project_x.md) — x\n", "project_x.md": "x\n", "project_n.md": "n\n"}
		w.want(want)
		a.want(want)
	}
}

// A status command makes no root; the first cycle of a new link does.
func TestFirstCycleMakesTheRoot(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	a.Root = syncer.RootMissing
	if err := a.s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a.Marker != "" {
		t.Error("a look at the status made the root")
	}
	w.hub.Put("project_x.md", "x\n")
	a.sync()
	a.want(files{"project_x.md": "x\n"})
}

// Ruling 13.5, fault C18: no duplicate, no delete, no loss.
func TestStateLost(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	for _, p := range []memory.Path{"same.md", "stale.md", "deleted.md", "edited.md"} {
		a.save(p, "first "+string(p)+"\n")
	}
	w.settle(a, b)
	b.save("stale.md", "second\n")
	b.Delete("deleted.md")
	b.save("new.md", "new\n")
	w.settle(b)
	a.save("edited.md", "edited offline\n")
	a.save("mine.md", "mine\n")
	before := len(w.hub.Commits())
	a.state.Lose()
	a.restart()
	w.settle(a, b)
	want := files{
		"same.md": "first same.md\n", "stale.md": "second\n", "edited.md": "first edited.md\n",
		"new.md": "new\n", "mine.md": "mine\n",
	}
	a.want(want)
	w.want(want)
	if n := len(w.hub.Commits()) - before; n != 1 {
		t.Errorf("%d commits after the state was lost, want one for mine.md", n)
	}
	all := strings.Join(textsOf(a), "|")
	for _, text := range []string{"edited offline\n", "first stale.md\n", "first deleted.md\n"} {
		if !strings.Contains(all, text) {
			t.Errorf("%q is gone", text)
		}
	}
	if n := len(a.s.Status().Conflicts); n != 1 {
		t.Errorf("%d conflicts, want 1", n)
	}
}

func TestCompactedCursor(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("kept.md", "kept\n")
	a.save("gone.md", "gone\n")
	w.settle(a, b)
	b.Delete("gone.md")
	b.save("new.md", "new\n")
	w.settle(b)
	a.save("mine.md", "mine\n")
	w.hub.Oldest = memory.Revision(len(w.hub.Commits()))
	for range 3 {
		w.hub.Put("kept.md", fmt.Sprint("kept ", len(w.hub.Commits()), "\n"))
	}
	w.hub.Oldest = memory.Revision(len(w.hub.Commits()))
	a.sync()
	want := files{"kept.md": "kept 4\n", "new.md": "new\n", "mine.md": "mine\n"}
	a.want(want)
	w.want(want)
	calls := a.remote.Calls["list"]
	a.sync()
	if a.remote.Calls["list"] != calls {
		t.Error("compared in full once more")
	}
}

// Ruling 13.4, fault D6: yesterday's backup.
func TestHubRestored(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	for _, p := range []memory.Path{"old.md", "changed.md", "deleted.md"} {
		a.save(p, "first "+string(p)+"\n")
	}
	w.settle(a, b)
	backup := w.hub.Clone()
	a.save("changed.md", "second\n")
	a.save("new.md", "new\n")
	a.Delete("deleted.md")
	w.settle(a, b)
	backup.NewEpoch("epoch-2")
	w.hub = backup
	a.remote.Hub, b.remote.Hub = backup, backup
	b.save("offline.md", "offline\n")
	from := a.s.Status().Cursor
	got := a.sync().Replaced
	if got == nil || got.From != from || got.To.Epoch != "epoch-2" || got.Shared != 1 || !slices.Equal(got.Offered, []memory.Path{"changed.md", "new.md"}) || !slices.Equal(got.Undone, []memory.Path{"deleted.md"}) {
		t.Errorf("told of the replacement: %+v; it stood at %+v", got, from)
	}
	if again := a.sync().Replaced; again != nil {
		t.Errorf("told once more: %+v", again)
	}
	w.settle(a, b)
	want := files{
		"old.md": "first old.md\n", "changed.md": "second\n", "new.md": "new\n", "offline.md": "offline\n",
		"deleted.md": "first deleted.md\n", // undone, and listed
	}
	w.want(want)
	a.want(want)
	b.want(want)
	notes, _ := a.s.Notes(t.Context())
	kinds := map[string][]memory.Path{}
	for _, n := range notes {
		kinds[n.Kind] = append(kinds[n.Kind], n.Path)
	}
	if diff := cmp.Diff([]memory.Path{"deleted.md"}, kinds[syncer.NoteDeleteUndone]); diff != "" {
		t.Errorf("undone deletes (-want +got):\n%s", diff)
	}
	if n := len(a.s.Status().Conflicts) + len(b.s.Status().Conflicts); n != 0 {
		t.Errorf("%d conflicts", n)
	}
}

// The request reaches the hub, its answer is lost, the user edits on: no conflict.
func TestLostAnswerAndEdit(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("project_x.md", "one\n")
	a.save("MEMORY.md", "- [X](project_x.md) — one\n- [Me](../user_me.md)\n")
	w.settle(a, b)
	lost := errors.New("connection reset")
	a.remote.Hook = func(op string, after bool) error {
		if op == "push" && after {
			return lost
		}
		return nil
	}
	a.save("project_x.md", "two\n")
	a.save("MEMORY.md", "- [X](project_x.md) — two\n- [Me](../user_me.md)\n")
	if err := a.syncErr(); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	a.remote.Hook = nil
	a.state.PowerLoss()
	a.restart()
	a.save("project_x.md", "three\n")
	w.hub.Put("project_x.md", "two\nand b\n") // upon ours
	a.sync()
	if c := a.s.Status().Conflicts; len(c) != 1 { // "three" against "two and b" touches
		t.Errorf("conflicts %+v", c)
	}
	if got, _ := a.Read("MEMORY.md"); got != "- [X](project_x.md) — two\n- [Me](../user_me.md)\n" {
		t.Errorf("index %q", got)
	}

	w = newWorld(t)
	a = w.machine("a")
	a.save("project_x.md", "one\n")
	a.sync()
	a.remote.Hook = func(op string, after bool) error {
		if op == "push" && after {
			return lost
		}
		return nil
	}
	a.save("project_x.md", "two\n")
	_ = a.syncErr()
	a.remote.Hook = nil
	a.restart()
	a.save("project_x.md", "three\n")
	a.sync()
	w.want(files{"project_x.md": "three\n"})
	if c := a.s.Status().Conflicts; len(c) != 0 {
		t.Errorf("conflicts with ourselves: %+v", c)
	}
}

// The delete reaches the hub, its answer is lost, the user brings the file back with the
// very same bytes: that is a new file, not one that the hub's side deleted.
func TestLostAnswerOfDelete(t *testing.T) {
	for _, rename := range []bool{false, true} {
		w := newWorld(t)
		a, b := w.machine("a"), w.machine("b")
		const text = "a text of some length\n"
		a.save("project_x.md", text)
		a.save("project_y.md", "y\n")
		a.save("project_z.md", "z\n")
		w.settle(a, b)
		a.remote.Hook = func(op string, after bool) error {
			if op == "push" && after {
				return errors.New("connection reset")
			}
			return nil
		}
		if rename {
			a.Rename("project_x.md", "moved.md")
		} else {
			a.Delete("project_x.md")
		}
		_ = a.syncErr()
		a.remote.Hook = nil
		a.restart()
		if rename {
			a.Rename("moved.md", "project_x.md")
		} else {
			a.save("project_x.md", text)
		}
		w.settle(a, b)
		want := files{"project_x.md": text, "project_y.md": "y\n", "project_z.md": "z\n"}
		w.want(want)
		a.want(want)
		b.want(want)
	}
}

// A delete was pulled and the process died before it was saved; meanwhile the file was
// made anew, with the same bytes. It must not be deleted once more.
func TestPulledDeleteKilledAndFileMadeAnew(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	w.hub.Put("project_x.md", "x\n")
	w.hub.Put("project_y.md", "y\n")
	a.sync()
	w.hub.Put("project_x.md", "")
	removed := false
	a.Disk.Hook = func(op string, after bool) error {
		removed = removed || op == "remove" && after
		return nil
	}
	a.state.Hook = func(op string, after bool) error {
		if removed && op == "apply" {
			return errors.New("killed")
		}
		return nil
	}
	_ = a.syncErr()
	a.Disk.Hook, a.state.Hook = nil, nil
	a.restart()
	w.hub.Put("project_x.md", "x\n")
	w.settle(a)
	want := files{"project_x.md": "x\n", "project_y.md": "y\n"}
	w.want(want)
	a.want(want)
}

// A cycle may stop before or after any call of any port; run again, it ends the same.
func TestCrashAnywhere(t *testing.T) {
	type crash struct{}
	scenario := func(t *testing.T, at int) (calls int) {
		w := newWorld(t)
		a, b := w.machine("a"), w.machine("b")
		for _, p := range []memory.Path{"pulled.md", "gone.md", "merged.md", "index/MEMORY.md", "conflict.md", "mine.md", "moved.md", "dropped.md"} {
			a.save(p, "1\n1\n3\n"+string(p)+"\n")
		}
		a.save("MEMORY.md", "# T\n- [M](mine.md) — m\n- [Me](../user_me.md) — me\n")
		w.settle(a, b)
		b.save("pulled.md", "pulled\n")
		b.Delete("gone.md")
		b.save("merged.md", "1\n1\n3\nB\n")
		b.save("conflict.md", "of b\n")
		b.save("MEMORY.md", "# T\n- [M](mine.md) — m\n- [P](pulled.md) — p\n")
		b.save("arrives.md", "arrives\n")
		w.settle(b)
		a.save("merged.md", "A\n1\n1\n3\nmerged.md\n")
		a.save("conflict.md", "of a\n")
		a.save("mine.md", "mine\n")
		a.save("MEMORY.md", "# T\n- [M](mine.md) — mine\n- [Me](../user_me.md) — me\n- [S](secret.md)\n")
		a.save("secret.md", synctest.Secret)
		a.Rename("moved.md", "sub/moved.md")
		a.Delete("dropped.md")
		hook := func(string, bool) error {
			if calls++; calls == at {
				panic(crash{})
			}
			return nil
		}
		a.Disk.Hook, a.state.Hook, a.remote.Hook, a.guard.Hook = hook, hook, hook, hook
		func() {
			defer func() {
				if r := recover(); r != nil {
					if _, ours := r.(crash); !ours {
						panic(r)
					}
				}
			}()
			a.sync()
		}()
		a.Disk.Hook, a.state.Hook, a.remote.Hook, a.guard.Hook = nil, nil, nil, nil
		if at > 0 {
			a.state.PowerLoss()
			a.restart()
		}
		w.settle(a, b)
		want := files{
			"pulled.md": "pulled\n", "merged.md": "A\n1\n1\n3\nB\n", "conflict.md": "of b\n", "mine.md": "mine\n",
			"sub/moved.md": "1\n1\n3\nmoved.md\n", "arrives.md": "arrives\n", "index/MEMORY.md": "1\n1\n3\nindex/MEMORY.md\n",
			"MEMORY.md": "# T\n- [M](mine.md) — mine\n- [P](pulled.md) — p\n",
		}
		w.want(want)
		b.want(want)
		want = maps.Clone(want)
		want["secret.md"] = synctest.Secret
		want["MEMORY.md"] = "# T\n- [M](mine.md) — mine\n- [P](pulled.md) — p\n- [Me](../user_me.md) — me\n- [S](secret.md)\n"
		got := a.Files()
		if s := strings.Split(got["MEMORY.md"], "\n"); !slices.Equal(sorted(s), sorted(strings.Split(want["MEMORY.md"], "\n"))) {
			t.Errorf("index %q", got["MEMORY.md"])
		}
		got["MEMORY.md"] = want["MEMORY.md"]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("a (-want +got):\n%s", diff)
		}
		if c := a.s.Status().Conflicts; len(c) != 1 || c[0].Path != "conflict.md" {
			t.Errorf("conflicts %+v", c)
		}
		if ours, err := a.s.Conflict(t.Context(), "conflict.md"); err != nil || string(ours.Ours) != "of a\n" {
			t.Errorf("conflict %q, %v", ours.Ours, err)
		}
		link := a.state.Link()
		if len(link.Intents)+len(link.Ahead) != 0 || link.Recovery != nil {
			t.Errorf("left over: %+v %+v %+v", link.Intents, link.Ahead, link.Recovery)
		}
		return calls
	}
	n := scenario(t, 0)
	t.Logf("%d places to stop", n)
	for at := 1; at <= n; at++ {
		if !t.Run(fmt.Sprint(at), func(t *testing.T) { scenario(t, at) }) {
			return
		}
	}
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// Deletes that a person accepted wait while the directory looks as if files were just
// being saved; the brake does not hold them anew.
func TestAcceptedDeletesWait(t *testing.T) {
	w := newWorld(t)
	a, _ := filled(w, 10)
	dirs := a.timed()
	deleteAll(a, 0)
	a.sync()
	if err := a.s.Resume(t.Context(), syncer.AcceptDeletes); err != nil {
		t.Fatal(err)
	}
	dirs.root = w.now.Add(5 * time.Second) // the very moment of the next cycle
	if r := a.sync(); r.Phase != syncer.PhasePending {
		t.Errorf("in the gap: %+v", r)
	}
	w.settle(a)
	w.want(files{})
	if st := a.s.Status(); st.Phase != syncer.PhaseInSync || st.Halt != nil {
		t.Errorf("%+v", st)
	}
}
