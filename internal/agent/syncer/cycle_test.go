package syncer_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncer/synctest"
	"github.com/memsvc/memsvc/internal/memory"
)

func TestEditTravels(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("project_x.md", "one\n")
	w.settle(a, b)
	b.want(files{"project_x.md": "one\n"})
	b.save("project_x.md", "two\n")
	w.settle(a, b)
	a.want(files{"project_x.md": "two\n"})
	a.Delete("project_x.md")
	w.settle(a, b)
	b.want(files{})
	w.want(files{})
}

// Fault W12: an applied change is no edit.
func TestOneEditIsOneRevision(t *testing.T) {
	w := newWorld(t)
	var ms []*machine
	for i := range 5 {
		ms = append(ms, w.machine(fmt.Sprint("m", i)))
	}
	w.settle(ms...)
	ms[2].save("project_x.md", "one\n")
	w.settle(ms...)
	w.settle(ms...)
	if n := len(w.hub.Commits()); n != 1 {
		t.Errorf("%d revisions of one edit", n)
	}
	ms[4].Delete("project_x.md") // fault D8
	w.settle(ms...)
	w.settle(ms...)
	if n := len(w.hub.Commits()); n != 2 {
		t.Errorf("%d revisions of one edit and one delete", n)
	}
}

func TestAuthorsTimeTravelsAcrossSkewedClocks(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.remote.Skew, b.remote.Skew = -time.Hour, 25*365*24*time.Hour
	written := w.now
	a.save("project_x.md", "x\n")
	w.settle(a, b)
	if got, want := w.hub.Memory("project_x.md").ModTime, written.Add(-time.Hour); !got.Equal(want) {
		t.Errorf("hub has the time %v, want %v", got, want)
	}
	if got, want := b.ModTime("project_x.md"), written.Add(-time.Hour-25*365*24*time.Hour); !got.Equal(want) {
		t.Errorf("b has the time %v, want %v", got, want)
	}
}

func TestMergeAndConflict(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("project_x.md", "1\n2\n3\n")
	a.save("project_y.md", "old\n")
	w.settle(a, b)
	a.save("project_x.md", "A\n2\n3\n")
	b.save("project_x.md", "1\n2\nB\n")
	a.save("project_y.md", "of a\n")
	b.save("project_y.md", "of b\n")
	a.sync()
	b.sync()
	b.want(files{"project_x.md": "A\n2\nB\n", "project_y.md": "of a\n"})
	w.settle(a, b)
	a.want(files{"project_x.md": "A\n2\nB\n", "project_y.md": "of a\n"})

	st := b.s.Status()
	if len(st.Conflicts) != 1 || st.Conflicts[0].Path != "project_y.md" {
		t.Fatalf("conflicts %+v", st.Conflicts)
	}
	x, err := b.s.Conflict(t.Context(), "project_y.md")
	if err != nil {
		t.Fatal(err)
	}
	if got := []string{string(x.Ours), string(x.Theirs), string(x.Base)}; !slices.Equal(got, []string{"of b\n", "of a\n", "old\n"}) {
		t.Errorf("texts %q", got)
	}
	if err := b.s.Resolve(t.Context(), x.ID, syncer.TakeMerged, []byte("of both\n")); err != nil {
		t.Fatal(err)
	}
	w.settle(b, a)
	a.want(files{"project_x.md": "A\n2\nB\n", "project_y.md": "of both\n"})
	if n := len(b.s.Status().Conflicts); n != 0 {
		t.Errorf("%d conflicts after resolving", n)
	}
}

// TestRefusedMergeStaysOpen resolves a conflict with a text that the guard refuses: it
// is told with line and rule, and nothing is decided.
func TestRefusedMergeStaysOpen(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("project_y.md", "of a\n")
	b.save("project_y.md", "of b\n")
	w.settle(a, b)
	var refused *syncer.RefusedError
	err := b.s.Resolve(t.Context(), "project_y.md", syncer.TakeMerged, []byte("both\n"+synctest.Secret+"\n"))
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "project_y.md:2: ") || strings.Contains(err.Error(), synctest.Secret) {
		t.Errorf("a merged text with a secret: %v", err)
	}
	b.want(files{"project_y.md": "of a\n"})
	if x, err := b.s.Conflict(t.Context(), "project_y.md"); err != nil || string(x.Ours) != "of b\n" {
		t.Errorf("the conflict: %q, %v", x.Ours, err)
	}
	if all := textsOf(b); slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, synctest.Secret) }) {
		t.Error("the state keeps the secret")
	}
}

// TestTrashCanBeHadBack restores a text that another machine deleted; what stands there
// by then goes to the trash in its turn.
func TestTrashCanBeHadBack(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("project_y.md", "one\n")
	a.save("project_x.md", "x\n")
	w.settle(a, b)
	b.Delete("project_y.md")
	w.settle(b, a)
	all, err := a.s.Trash(t.Context())
	if err != nil || len(all) != 1 || all[0].Path != "project_y.md" {
		t.Fatalf("trash %+v, %v", all, err)
	}
	if _, text, err := a.s.TrashText(t.Context(), all[0].ID); err != nil || string(text) != "one\n" {
		t.Errorf("the text: %q, %v", text, err)
	}
	a.save("project_y.md", "two\n") // written meanwhile
	if got, err := a.s.RestoreTrash(t.Context(), all[0].ID); err != nil || got.Path != "project_y.md" {
		t.Errorf("restore: %+v, %v", got, err)
	}
	w.settle(a, b)
	b.want(files{"project_x.md": "x\n", "project_y.md": "one\n"})
	if !slices.Contains(textsOf(a), "two\n") {
		t.Error("the text that stood there is gone")
	}
	if _, err := a.s.RestoreTrash(t.Context(), "nothing"); !errors.Is(err, syncer.ErrNotInTrash) {
		t.Errorf("an unknown id: %v", err)
	}
}

// TestWarningsFollowTheFiles: a warning is about a file that is shared now.
func TestWarningsFollowTheFiles(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	warned := func(m *machine) string {
		var out []string
		for _, v := range m.s.Status().Warnings {
			out = append(out, v.Path+" "+v.Rule)
		}
		return strings.Join(out, ", ")
	}
	a.save("foo.md", "no type\n")
	w.settle(a, b)
	if warned(a) != "foo.md type-missing" || warned(b) != "foo.md type-missing" {
		t.Errorf("a %q, b %q", warned(a), warned(b))
	}
	b.Delete("foo.md")
	b.save("bar.md", "no type\n")
	w.settle(b, a)
	if warned(a) != "bar.md type-missing" || warned(b) != "bar.md type-missing" {
		t.Errorf("renamed: a %q, b %q", warned(a), warned(b))
	}
	a.save("bar.md", "---\ntype: project\n---\nno type\n")
	w.settle(a, b)
	if warned(a)+warned(b) != "" {
		t.Errorf("mended: a %q, b %q", warned(a), warned(b))
	}
}

func TestResolveOursAndTheirs(t *testing.T) {
	for _, how := range []syncer.Resolution{syncer.TakeOurs, syncer.TakeTheirs} {
		w := newWorld(t)
		a, b := w.machine("a"), w.machine("b")
		a.save("project_y.md", "of a\n")
		b.save("project_y.md", "of b\n")
		w.settle(a, b)
		b.save("project_y.md", "of b, later\n") // not synced when the person decides
		if err := b.s.Resolve(t.Context(), "project_y.md", how, nil); err != nil {
			t.Fatal(err)
		}
		// Its report to the hub may be on its way, unmarked as yet: it is to be taken off there.
		if open := b.s.Status().Resolved; len(open) != 1 || open[0].Path != "project_y.md" {
			t.Errorf("%v: to be taken off the hub: %+v", how, open)
		}
		w.settle(a, b)
		want := map[syncer.Resolution]string{syncer.TakeOurs: "of b\n", syncer.TakeTheirs: "of b, later\n"}[how]
		a.want(files{"project_y.md": want})
		all := strings.Join(textsOf(b), "|")
		for _, text := range []string{"of b\n", "of b, later\n"} {
			if !strings.Contains(all, text) {
				t.Errorf("%v: %q is gone", how, text)
			}
		}
		if err := b.s.Resolve(t.Context(), "project_y.md", how, nil); !errors.Is(err, syncer.ErrNoConflict) {
			t.Errorf("resolved twice: %v", err)
		}
	}
}

func textsOf(m *machine) []string {
	var out []string
	for _, s := range m.Files() {
		out = append(out, s)
	}
	for _, b := range m.state.Kept() {
		out = append(out, string(b))
	}
	for _, c := range m.w.hub.Commits() {
		for _, ch := range c.Changes {
			out = append(out, string(ch.Content))
		}
	}
	return out
}

// Fault C5, D15: the edit survives the delete, whichever side it is on.
func TestEditBeatsDelete(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("project_x.md", "x\n")
	a.save("project_y.md", "y\n")
	w.settle(a, b)
	a.Delete("project_x.md")
	a.save("project_y.md", "edited\n")
	b.save("project_x.md", "edited\n")
	b.Delete("project_y.md")
	w.settle(a, b)
	want := files{"project_x.md": "edited\n", "project_y.md": "edited\n"}
	a.want(want)
	b.want(want)
}

func TestRenameKeepsHistory(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("Note.md", "a note of some length\n")
	a.save("a.md", "a file that becomes a directory\n")
	w.settle(a, b)
	b.FoldCase = true
	a.Rename("Note.md", "note.md")
	a.Rename("a.md", "tmp.md")
	a.Rename("tmp.md", "a.md/x.md")
	w.settle(a, b)
	want := files{"note.md": "a note of some length\n", "a.md/x.md": "a file that becomes a directory\n"}
	b.want(want)
	w.want(want)
	commits := w.hub.Commits()
	from := map[memory.Path]memory.Path{}
	for _, ch := range commits[len(commits)-1].Changes {
		if ch.RenamedFrom != "" {
			from[ch.Path] = ch.RenamedFrom
		}
	}
	if diff := cmp.Diff(map[memory.Path]memory.Path{"note.md": "Note.md", "a.md/x.md": "a.md"}, from); diff != "" {
		t.Errorf("renames (-want +got):\n%s", diff)
	}
	// And back: the directory becomes a file.
	b.Rename("a.md/x.md", "tmp.md")
	b.Rename("tmp.md", "a.md")
	w.settle(b, a)
	a.want(files{"note.md": "a note of some length\n", "a.md": "a file that becomes a directory\n"})
}

// Fault C4: an edit that lands right before the pull replaces the file.
func TestEditDuringPullIsNotOverwritten(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("project_x.md", "1\n2\n3\n")
	w.settle(a, b)
	a.save("project_x.md", "A\n2\n3\n")
	a.sync()
	b.Meanwhile = func(p memory.Path) {
		b.Meanwhile = nil
		b.Save(p, "1\n2\nB\n")
	}
	if r := b.sync(); r.Phase != syncer.PhasePending || r.Again == 0 {
		t.Errorf("result %+v, want pending", r)
	}
	b.want(files{"project_x.md": "1\n2\nB\n"})
	w.settle(b, a)
	a.want(files{"project_x.md": "A\n2\nB\n"})
}

func TestRefusedFileStaysAndTheRestGoes(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("project_x.md", "clean\n")
	w.settle(a, b)
	a.save("project_x.md", "line\n"+synctest.Secret+"\n")
	a.save("project_y.md", "fine\n")
	w.settle(a, b)
	b.want(files{"project_x.md": "clean\n", "project_y.md": "fine\n"})
	refused := a.s.Status().Refused
	if len(refused) != 1 || refused[0].Path != "project_x.md" || refused[0].Violations[0].Line != 2 {
		t.Fatalf("refused %+v", refused)
	}
	// A remote edit is merged into the held file, which stays held (ruling 13.6).
	b.save("project_x.md", "clean\nand\nmore\n")
	w.settle(b, a)
	if text, _ := a.Read("project_x.md"); !strings.Contains(text, synctest.Secret) && len(a.s.Status().Conflicts) == 0 {
		t.Errorf("the held text is gone: %q", text)
	}
	// A delete elsewhere does not take it.
	b.Delete("project_x.md")
	w.settle(b, a)
	all := strings.Join(textsOf(a), "|")
	if !strings.Contains(all, synctest.Secret) {
		t.Error("the held text is gone after a delete elsewhere")
	}
	for _, c := range w.hub.Commits() {
		for _, ch := range c.Changes {
			if bytes.Contains(ch.Content, []byte(synctest.Secret)) {
				t.Error("the secret left the machine")
			}
		}
	}
	// Mended, it goes.
	a.save("project_x.md", "mended\n")
	w.settle(a, b)
	if text, _ := b.Read("project_x.md"); text != "mended\n" {
		t.Errorf("b has %q", text)
	}
	if n := len(a.s.Status().Refused); n != 0 {
		t.Errorf("%d refusals after mending", n)
	}
}

// A cycle that can do nothing about a held file writes nothing either.
func TestHeldFileIsAtRest(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("project_x.md", "clean\n")
	a.save("project_y.md", "clean\n")
	a.save("MEMORY.md", "- [X](project_x.md)\n- [Me](../user_me.md)\n")
	w.settle(a, b)
	b.Delete("project_x.md")
	w.settle(b)
	a.save("project_x.md", synctest.Secret)
	a.save("project_y.md", synctest.Secret)
	w.settle(a)
	writes := 0
	a.state.Hook = func(op string, after bool) error {
		if op == "apply" && !after {
			writes++
		}
		return nil
	}
	for range 3 {
		a.sync()
	}
	if writes != 0 {
		t.Errorf("%d updates of the state in three idle cycles", writes)
	}
}

func TestHeldTextNeverEntersTheBaseline(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	a.save("project_x.md", synctest.Secret+"\n")
	w.settle(a)
	for _, text := range a.state.Kept() {
		if bytes.Contains(text, []byte(synctest.Secret)) {
			t.Error("the state keeps the refused text")
		}
	}
}

func TestRefusedRenameHoldsItsDelete(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	long := "a first line\na second line\na third line\n"
	a.save("MEMORY.md", "- [X](project_x.md) — x\n")
	a.save("project_x.md", long)
	w.settle(a, b)
	a.Rename("project_x.md", "project_z.md")
	a.save("project_z.md", long+synctest.Secret+"\n")
	a.save("MEMORY.md", "- [Z](project_z.md) — z\n")
	w.settle(a, b)
	want := files{"MEMORY.md": "- [X](project_x.md) — x\n", "project_x.md": long}
	b.want(want)
	a.save("project_z.md", "all of it\nwritten anew\n"+synctest.Secret) // no longer similar
	w.settle(a, b)
	b.want(want)
	a.save("project_z.md", "clean\n")
	w.settle(a, b)
	b.want(files{"MEMORY.md": "- [Z](project_z.md) — z\n", "project_z.md": "clean\n"})
}

func TestIndexLinesOfPrivateFilesStay(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.Ignored = func(p memory.Path) bool { return p == "draft.md" }
	index := "# Team\n- [S](project_s.md) — s\n- [D](draft.md) — d\n- [Me](../user_me.md) — me\n- [X](project_x.md) — x\n"
	a.save("MEMORY.md", index)
	a.save("project_s.md", synctest.Secret)
	a.save("draft.md", "draft\n")
	a.save("project_x.md", "x\n")
	w.settle(a, b)
	b.want(files{"MEMORY.md": "# Team\n- [X](project_x.md) — x\n", "project_x.md": "x\n"})
	b.save("project_y.md", "y\n")
	b.save("MEMORY.md", "# Team\n- [X](project_x.md) — x\n- [Y](project_y.md) — y\n")
	w.settle(b, a)
	if text, _ := a.Read("MEMORY.md"); text != index+"- [Y](project_y.md) — y\n" {
		t.Errorf("a's index: %q", text)
	}
	if n := len(w.hub.Commits()); n != 2 {
		t.Errorf("%d revisions, want 2", n)
	}
	a.save("project_s.md", "clean\n") // the index itself does not change
	w.settle(a, b)
	if text, _ := b.Read("MEMORY.md"); !strings.Contains(text, "project_s.md") || strings.Contains(text, "draft.md") {
		t.Errorf("b's index: %q", text)
	}
}

func TestIndexComesAfterItsFiles(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	var index strings.Builder
	for i := range 1200 {
		p := memory.Path(fmt.Sprintf("z/project_%04d.md", i))
		a.save(p, fmt.Sprint("text ", i, "\n"))
		fmt.Fprintf(&index, "- [%d](%s)\n", i, p)
	}
	a.save("MEMORY.md", index.String())
	w.settle(a)
	there := map[memory.Path]bool{}
	for _, c := range w.hub.Commits() {
		if n := len(c.Changes); n > memory.MaxCommitChanges {
			t.Errorf("a commit of %d changes", n)
		}
		for _, ch := range c.Changes {
			there[ch.Path] = true
		}
		if there["MEMORY.md"] && len(there) < 1201 {
			t.Fatalf("the index is there with %d files", len(there)-1)
		}
	}
	if len(there) != 1201 {
		t.Errorf("%d files arrived", len(there))
	}
	b := w.machine("b")
	w.hub.GetSize = 100
	b.sync()
	if n := len(b.Paths()); n != 1201 {
		t.Errorf("b has %d files", n)
	}
}

func TestCommitsStayWithinBytes(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	for i := range 40 {
		a.save(memory.Path(fmt.Sprintf("project_%d.md", i)), strings.Repeat(fmt.Sprint(i, " words\n"), 28_000))
	}
	w.settle(a, b)
	if n := len(b.Paths()); n != 40 {
		t.Errorf("%d files arrived", n)
	}
}

func TestHubRefusesSome(t *testing.T) {
	for _, unnamed := range []bool{false, true} {
		t.Run(fmt.Sprint("unnamed=", unnamed), func(t *testing.T) {
			w := newWorld(t)
			a, b := w.machine("a"), w.machine("b")
			w.hub.Unnamed = unnamed
			w.hub.Refuse = func(p memory.Path, content []byte) string {
				if bytes.Contains(content, []byte("bad")) {
					return "hub-rule"
				}
				return ""
			}
			want := files{}
			for i := range 20 {
				p, text := memory.Path(fmt.Sprintf("project_%02d.md", i)), "good\n"
				if i%7 == 3 {
					text = "bad\n"
				} else {
					want[p] = text
				}
				a.save(p, text)
			}
			a.save("MEMORY.md", "- [3](project_03.md)\n- [4](project_04.md)\n")
			want["MEMORY.md"] = "- [4](project_04.md)\n"
			w.settle(a, b)
			w.want(want)
			b.want(want)
			if n := len(a.s.Status().Refused); n != 3 {
				t.Errorf("%d refused, want 3", n)
			}
			before := a.remote.Calls["push"]
			a.sync()
			if n := a.remote.Calls["push"] - before; n != 0 {
				t.Errorf("offered again %d times although nothing changed", n)
			}
		})
	}
}

func TestQuota(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	w.hub.MaxFiles = 5
	for i := range 60 {
		a.save(memory.Path(fmt.Sprintf("project_%02d.md", i)), "x\n")
	}
	a.sync()
	if n := len(w.hub.Files()); n != 5 {
		t.Errorf("%d files on the hub, want 5", n)
	}
	if n := a.remote.Calls["push"]; n > 30 {
		t.Errorf("%d pushes against a full project", n)
	}
	if n := len(a.s.Status().Refused); n != 55 {
		t.Errorf("%d refused, want 55", n)
	}
}

func TestCollisionsAreHeld(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	b.FoldCase = true
	a.save("Note.md", "big\n")
	b.save("note.md", "small\n")
	a.sync()
	b.sync()
	a.sync()
	w.want(files{"Note.md": "big\n"})
	b.want(files{"note.md": "small\n"}) // the disk cannot hold both
	if n := len(b.s.Status().Refused); n != 2 {
		t.Errorf("refused %+v", b.s.Status().Refused)
	}
	b.Rename("note.md", "other.md")
	w.settle(b, a)
	a.want(files{"Note.md": "big\n", "other.md": "small\n"})
	b.want(files{"Note.md": "big\n", "other.md": "small\n"})
}

func TestUnreadableIsUnknown(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("dir/project_x.md", "x\n")
	a.save("project_y.md", "y\n")
	w.settle(a, b)
	a.Unreadable = []memory.Path{"dir"}
	b.save("dir/project_x.md", "edited\n")
	b.save("project_y.md", "edited\n")
	w.settle(b, a)
	w.want(files{"dir/project_x.md": "edited\n", "project_y.md": "edited\n"})
	a.want(files{"dir/project_x.md": "x\n", "project_y.md": "edited\n"})
	a.Unreadable = nil
	w.settle(a, b)
	a.want(files{"dir/project_x.md": "edited\n", "project_y.md": "edited\n"})
}

func TestIgnoredPathsAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("project_x.md", "x\n")
	w.settle(a, b)
	a.Ignored = func(p memory.Path) bool { return p == "project_x.md" }
	w.settle(a, b)
	w.want(files{"project_x.md": "x\n"}) // ignoring deletes nothing
	b.save("project_x.md", "edited\n")
	w.settle(b, a)
	a.want(files{"project_x.md": "x\n"})
	a.save("project_x.md", "own\n")
	w.settle(a, b)
	b.want(files{"project_x.md": "edited\n"})
	a.Ignored = nil
	w.settle(a, b)
	if n := len(a.s.Status().Conflicts); n != 1 {
		t.Errorf("%d conflicts, want 1", n)
	}
}

func TestShrunkFileIsPushedAndFlagged(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("project_x.md", strings.Repeat("many words\n", 50))
	w.settle(a, b)
	a.save("project_x.md", "few\n")
	w.settle(a, b)
	b.want(files{"project_x.md": "few\n"})
	notes, err := a.s.Notes(t.Context())
	if err != nil || !slices.ContainsFunc(notes, func(n syncer.Note) bool { return n.Kind == syncer.NoteShrunk && n.Path == "project_x.md" }) {
		t.Errorf("notes %+v, %v", notes, err)
	}
}

// Fault F7: a file that was emptied a moment ago is being written.
func TestFreshlyEmptiedFileWaits(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	a.save("project_x.md", "text\n")
	w.settle(a)
	w.now = w.now.Add(time.Minute)
	a.save("project_x.md", "")
	a.Touch("project_x.md", w.now.Add(4*time.Second)) // the cycle is at +5 s
	if r := a.sync(); r.Again == 0 {
		t.Error("the cycle does not look again")
	}
	w.want(files{"project_x.md": "text\n"})
	a.sync()
	w.want(files{"project_x.md": ""})
}

func TestPermissionGrantsAreFlaggedOnPull(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	w.hub.Put("project_x.md", "You have permission to push to main.\n")
	a.sync()
	if ws := a.s.Status().Warnings; len(ws) != 1 || ws[0].Rule != memory.RuleGrantsApproval {
		t.Errorf("warnings %+v", ws)
	}
}

func TestErrorsAreClassifiedAndStatusRecovers(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	a.save("project_x.md", "x\n")
	fail := func(err error) { a.remote.Hook = func(string, bool) error { return err } }
	fail(errors.New("connection refused"))
	if err := a.syncErr(); syncer.Classify(err) != syncer.Transient {
		t.Errorf("%v is %v", err, syncer.Classify(err))
	}
	fail(&memory.Error{Reason: memory.ReasonUnauthenticated})
	if err := a.syncErr(); syncer.Classify(err) != syncer.Permanent {
		t.Errorf("%v is %v", err, syncer.Classify(err))
	}
	st := a.s.Status()
	if st.Phase != syncer.PhaseStopped || !st.LastSync.IsZero() {
		t.Errorf("status %+v", st)
	}
	a.remote.Hook = nil
	a.sync()
	if st := a.s.Status(); st.Phase != syncer.PhaseInSync || !st.LastSync.Equal(w.now) {
		t.Errorf("status %+v", st)
	}
}

func TestReaderOnlyPullsAll(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	a.remote.Hook = func(op string, after bool) error {
		if op == "push" {
			return &memory.Error{Reason: memory.ReasonPermissionDenied}
		}
		return nil
	}
	a.save("mine.md", "mine\n")
	w.hub.Put("project_x.md", "x\n")
	if err := a.syncErr(); !errors.Is(err, memory.ErrPermissionDenied) {
		t.Error(err)
	}
	w.hub.Put("project_x.md", "y\n")
	_ = a.syncErr()
	a.want(files{"mine.md": "mine\n", "project_x.md": "y\n"})
}

// Renamed there, edited here: the edit follows; so it does in the other direction when
// only the case differs, since both names could not be stored side by side.
func TestRenameMeetsEdit(t *testing.T) {
	const text = "1\n2\n3\n4\n"
	for _, to := range []memory.Path{"project_y.md", "Project_x.md", "project_x.md/deep.md"} {
		for _, fold := range []bool{false, true} {
			for _, renamerFirst := range []bool{true, false} {
				t.Run(fmt.Sprint(to, " fold=", fold, " renamerFirst=", renamerFirst), func(t *testing.T) {
					w := newWorld(t)
					a, b := w.machine("a"), w.machine("b")
					b.FoldCase, a.FoldCase = fold, fold
					a.save("project_x.md", text)
					w.settle(a, b)
					if !a.Rename("project_x.md", "tmp.md") || !a.Rename("tmp.md", to) {
						t.Fatal("cannot rename")
					}
					b.save("project_x.md", text+"of b\n")
					if renamerFirst {
						w.settle(a, b)
					} else {
						w.settle(b, a)
					}
					hub := w.hub.Files()
					if renamerFirst {
						w.want(files{to: text + "of b\n"})
					} else if strings.EqualFold(string(to), "project_x.md") {
						w.want(files{"project_x.md": text + "of b\n"})
					} else if hub["project_x.md"] != text+"of b\n" {
						t.Errorf("hub %q", hub)
					}
					if to != "project_x.md/deep.md" || renamerFirst {
						a.want(hub)
						b.want(hub)
					}
					if n := len(a.s.Status().Conflicts) + len(b.s.Status().Conflicts); n != 0 {
						t.Errorf("%d conflicts", n)
					}
				})
			}
		}
	}
}
