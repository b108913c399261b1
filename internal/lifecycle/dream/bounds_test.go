package dream_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/dream"
	"github.com/memsvc/memsvc/internal/memory"
)

func TestDeletesAreCapped(t *testing.T) {
	for memories, want := range map[int]int{8: 5, 40: 8} {
		w := newWorld(t)
		for i := range memories {
			w.write(fmt.Sprintf("m%02d.md", i), mem("Same", "project", statement), i)
		}
		r := w.run(dream.Options{Force: true})
		if got := memories - len(w.files()) + 1; got != want || len(r.Left) != 1 || !strings.Contains(r.Left[0].Why, "next") {
			t.Errorf("of %d memories %d are deleted, want %d; left %+v", memories, got, want, r.Left)
		}
		for range memories {
			if r = w.run(dream.Options{Force: true}); len(r.Changes) == 0 {
				break
			}
		}
		if got := w.files(); len(got) != 2 || got["m00.md"] == "" {
			t.Errorf("in the end there are %d files", len(got))
		}
	}
}

func TestOneCommitHoldsADream(t *testing.T) {
	w := newWorld(t)
	const n = memory.MaxCommitChanges + 60
	var index strings.Builder
	for i := range n {
		name := fmt.Sprintf("t%03d.md", i)
		w.write("team/"+name, mem(fmt.Sprintf("N%d", i), "project", fmt.Sprintf("Item%d was seen yesterday.\n", i)), 2)
		index.WriteString(line(fmt.Sprintf("N%d", i), name))
	}
	w.write("team/MEMORY.md", index.String(), 1)
	r := w.run(dream.Options{Force: true})
	if len(r.Changes) > memory.MaxCommitChanges || len(r.Changes) < memory.MaxCommitChanges-1 || len(r.Left) == 0 {
		t.Errorf("%d changes, left %+v", len(r.Changes), r.Left)
	}
	r = w.run(dream.Options{Force: true})
	if len(r.Changes) < 60 {
		t.Errorf("then %d changes", len(r.Changes))
	}
	for name, text := range w.files() {
		if strings.Contains(text, "yesterday") {
			t.Fatalf("%s is as it was", name)
		}
	}
}

func TestWhatTheGuardRefusesIsLeftOut(t *testing.T) {
	w := newWorld(t)
	w.write("team/a.md", mem("A", "project", "Seen yesterday, hunter2.\n"), 2)
	w.write("team/b.md", mem("Review", "feedback", statement), 2)
	w.write("team/c.md", mem("Reviews of all", "feedback", statement), 3)
	w.write("team/d.md", mem("hunter2", "feedback", statement), 4)
	w.write("team/e.md", mem("E", "project", "Seen yesterday.\n"), 2)
	w.write("team/user_f.md", mem("F", "user", "Seen yesterday.\n"), 2)
	before := w.files()
	r := w.run(dream.Options{Force: true})
	for _, name := range []string{"team/a.md", "team/user_f.md"} {
		if w.read(name) != before[name] {
			t.Errorf("%s became %q", name, w.read(name))
		}
	}
	if !strings.Contains(w.read("team/e.md"), "2026-03-09") {
		t.Error("the rest is held up")
	}
	var refs []string
	for _, l := range r.Left {
		refs = append(refs, l.Ref)
		if strings.Contains(l.Why, "hunter2") {
			t.Errorf("told: %q", l.Why)
		}
	}
	for _, want := range []string{"team/a.md", "team/user_f.md"} {
		if !slices.Contains(refs, want) {
			t.Errorf("%s is not said to be left: %+v", want, r.Left)
		}
	}
	for name, text := range w.files() {
		if before[name] != text && strings.Contains(text, "hunter2") {
			t.Errorf("%s: %q", name, text)
		}
	}
	if w.read("team/d.md") == "" {
		t.Error("d.md is gone, though its name can be kept nowhere")
	}
}

func TestIndexCaps(t *testing.T) {
	w := newWorld(t)
	var index strings.Builder
	index.WriteString("# Mine\n\n")
	const n = memory.MaxIndexLines + 20
	for i := range n {
		name := fmt.Sprintf("m%03d.md", i)
		w.write(name, mem(fmt.Sprintf("N%d", i), "project", fmt.Sprintf("Item%d, unlike the others.\n", i)), n-i)
		index.WriteString(fmt.Sprintf("- [N%d](%s) — about N%d%s\n\n", i, name, i, strings.Repeat(" item", 40)))
	}
	w.write("MEMORY.md", index.String(), 1)
	r := w.dreams()
	got := []byte(w.read("MEMORY.md"))
	loaded, cut := memory.CutIndex(got)
	if len(memory.ParseIndex(got).Entries()) != n {
		t.Error("a line is lost")
	}
	if !strings.Contains(string(loaded), "(m219.md)") || strings.Contains(string(loaded), "(m000.md)") || cut != n-memory.MaxIndexLines+2 {
		t.Errorf("%d entries are cut; the newest is loaded: %v", cut, strings.Contains(string(loaded), "(m219.md)"))
	}
	if len(r.Left) == 0 || r.Left[0].Ref != "MEMORY.md" {
		t.Errorf("left %+v", r.Left)
	}
	w.undo()
	if w.read("MEMORY.md") != index.String() {
		t.Error("undo does not bring the index back")
	}
}

func TestALongIndexLineKeepsWhatItSays(t *testing.T) {
	w := newWorld(t)
	hook := strings.Repeat("the service restarts by itself whenever the queue is longer than expected and ", 3) + "port 5433 is taken"
	w.write("a.md", mem("A", "project", "Short.\n"), 2)
	w.write("team/t.md", mem("T", "project", "Short.\n"), 2)
	w.write("MEMORY.md", "- [A](a.md) — "+hook+"\n", 1)
	w.write("team/MEMORY.md", "- [T](t.md) — "+hook+"\n", 1)
	w.dreams()
	if got := w.read("MEMORY.md"); len(memory.IndexWarnings("MEMORY.md", []byte(got))) > 0 || !strings.Contains(w.read("a.md"), hook) {
		t.Errorf("index %q, memory %q", got, w.read("a.md"))
	}
	if !strings.Contains(w.read("team/MEMORY.md"), hook) || w.read("team/t.md") != mem("T", "project", "Short.\n") {
		t.Error("the team's line or memory was changed")
	}
}

func TestCitations(t *testing.T) {
	w := newWorld(t)
	w.d.Project = t.TempDir()
	for _, name := range []string{"internal/hub/server.go", "internal/hub/wire.go"} {
		file := filepath.Join(w.d.Project, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("package hub\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}} {
		cmd := exec.Command("git", append([]string{"-C", w.d.Project}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.d.Project, "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	text := mem("A", "project", "See `internal/hub/server.go` and `internal/hub/old.go`.\n\n| `internal/hub/past.go` |\n")
	w.write("a.md", text, 2)
	w.write("team/t.md", text, 2)
	w.write("MEMORY.md", line("A", "a.md"), 1)
	w.write("team/MEMORY.md", line("A", "t.md"), 1)
	// The personal one restates the team's, so give it something of its own.
	w.write("a.md", text+"\nMine.\n", 2)
	w.dreams()
	got := w.read("a.md")
	if !strings.Contains(got, "old.go`. (no longer there: internal/hub/old.go)\n") || !strings.Contains(got, "| `internal/hub/past.go` (no longer there: internal/hub/past.go) |\n") || strings.Count(got, "no longer") != 2 {
		t.Errorf("%q", got)
	}
	if w.read("team/t.md") != text {
		t.Error("the team's is marked")
	}
	if err := os.WriteFile(filepath.Join(w.d.Project, "internal/hub/old.go"), []byte("package hub\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.dreams()
	if got := w.read("a.md"); strings.Count(got, "no longer") != 1 || !strings.Contains(got, "old.go`.\n") {
		t.Errorf("it is there again: %q", got)
	}
}

func TestRecordsAreForTheirOwnerAndFew(t *testing.T) {
	w := newWorld(t)
	w.write("MEMORY.md", line("A", "a.md"), 1)
	for i := range 23 {
		w.write("a.md", mem("A", "project", strings.Repeat("Seen yesterday.\n", i+1)), 2)
		w.time = w.time.Add(time.Hour)
		w.run(dream.Options{Force: true})
	}
	log, err := w.d.Log(t.Context())
	if err != nil || len(log) != 20 || !log[0].Time.Equal(w.time) {
		t.Errorf("%d dreams, %v", len(log), err)
	}
	err = filepath.WalkDir(w.d.Dir, func(file string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err == nil && fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", file, fi.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// The clock stands: ids still ascend.
	w.write("a.md", mem("A", "project", "Seen yesterday.\n"), 2)
	first := w.run(dream.Options{Force: true})
	w.write("a.md", mem("A", "project", "Seen yesterday by me.\n"), 2)
	second := w.run(dream.Options{Force: true})
	if second.ID <= first.ID || w.undo().ID != second.ID {
		t.Errorf("%q, then %q", first.ID, second.ID)
	}
}

func TestAForeignJournalIsNotFollowed(t *testing.T) {
	w := newWorld(t)
	w.write("a.md", mem("A", "project", "Seen yesterday.\n"), 2)
	if err := os.MkdirAll(w.d.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.d.Dir, "journal.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.d.Run(t.Context(), dream.Options{Force: true}); err == nil || !strings.Contains(err.Error(), "journal.json") {
		t.Errorf("got %v, want an error that names the file", err)
	}
	if !strings.Contains(w.read("a.md"), "yesterday") {
		t.Error("something was changed")
	}
	if _, err := w.d.Undo(t.Context()); err == nil || errors.Is(err, dream.ErrNoDream) {
		t.Errorf("undo: %v", err)
	}
}

// TestLongMemoriesOfOneNameStayApart: each line differs; comparing every one with every
// other one would never end.
func TestLongMemoriesOfOneNameStayApart(t *testing.T) {
	w := newWorld(t)
	for j := range 2 {
		var b strings.Builder
		for i := range 12_000 {
			fmt.Fprintf(&b, "w%d %d a%d\n", i*7%1009, i+j, i)
		}
		w.write(fmt.Sprintf("q%d.md", j), mem("Q", "project", b.String()), j+1)
	}
	w.write("a.md", mem("Short one", "project", statement), 3)
	w.write("b.md", mem("Short one", "project", statement), 4)
	before := w.files()
	r := w.dreams() // and a second one finds nothing
	if w.read("q0.md") != before["q0.md"] || w.read("q1.md") != before["q1.md"] {
		t.Error("they were changed")
	}
	if w.read("b.md") != "" {
		t.Error("the rest is held up")
	}
	if len(r.Left) != 1 || r.Left[0].Ref != "q1.md" || !strings.Contains(r.Left[0].Why, "q0.md") || !strings.Contains(r.Left[0].Why, "too long") {
		t.Errorf("left %+v", r.Left)
	}
}

func TestLongMemoriesThatAreMostlyTheSameAreMerged(t *testing.T) {
	w := newWorld(t)
	var b strings.Builder
	for i := range 3_000 {
		fmt.Fprintf(&b, "- host h%d has rack r%d\n", i, i*7%1009)
	}
	w.write("q0.md", mem("Q", "project", b.String()+"- the newer one has a tail\n"), 1)
	w.write("q1.md", mem("Q", "project", b.String()+"- whereas the older listed fans\n"), 2)
	w.dreams()
	got := w.read("q0.md")
	if w.read("q1.md") != "" || strings.Count(got, "host h1234 ") != 1 || !strings.Contains(got, "newer one has a tail") || !strings.Contains(got, "the older listed fans") {
		t.Errorf("not merged: %d bytes, the older one %d", len(got), len(w.read("q1.md")))
	}
}

// TestAnIndexThatCannotBeRead is left alone, and what its lines lead to stays; all else is
// tidied.
func TestAnIndexThatCannotBeRead(t *testing.T) {
	for name, put := range map[string]func(file string) error{
		"long": func(file string) error {
			return os.WriteFile(file, []byte(strings.Repeat("- [A](a.md) - x\n", 100_000)), 0o600)
		},
		"directory": func(file string) error { return os.Mkdir(file, 0o700) },
	} {
		w := newWorld(t)
		w.write("a.md", mem("A", "project", statement), 1)
		w.write("b.md", mem("A", "project", statement), 2)
		w.write("c.md", mem("C", "project", "Seen yesterday.\n"), 2)
		w.write("team/d.md", mem("Review", "feedback", statement), 2)
		w.write("team/e.md", mem("Review", "feedback", statement), 3)
		if err := put(filepath.Join(w.dir, "MEMORY.md")); err != nil {
			t.Fatal(err)
		}
		before := w.files()
		r := w.dreams()
		if len(r.Left) != 1 || r.Left[0].Ref != "MEMORY.md" || !strings.Contains(r.Left[0].Why, "left as it is") {
			t.Errorf("%s: left %+v", name, r.Left)
		}
		after := w.files()
		if after["MEMORY.md"] != before["MEMORY.md"] || after["b.md"] == "" {
			t.Errorf("%s: the index was changed, or a memory that it lists went", name)
		}
		if strings.Contains(after["c.md"], "yesterday") || after["team/e.md"] != "" || !strings.Contains(after["team/MEMORY.md"], "d.md") {
			t.Errorf("%s: the rest is not tidied: %v", name, said(r))
		}
		w.undo()
		for file, text := range before {
			if w.read(file) != text {
				t.Errorf("%s: after the undo %s differs", name, file)
			}
		}
	}
}

// TestAnIndexThatGrewMeanwhile holds up nothing: no journal waits for it.
func TestAnIndexThatGrewMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.write("a.md", mem("A", "project", statement), 1)
	w.write("b.md", mem("A", "project", statement), 2)
	w.write("MEMORY.md", line("A", "a.md")+line("B", "b.md"), 1)
	long := strings.Repeat("- [A](a.md) - x\n", 100_000)
	w.d.StopAt(func(step string) error {
		if step == "journal" {
			return os.WriteFile(filepath.Join(w.dir, "MEMORY.md"), []byte(long), 0o600)
		}
		return nil
	})
	r := w.run(dream.Options{Force: true})
	if w.read("MEMORY.md") != long || w.read("b.md") == "" || len(r.Left) == 0 {
		t.Errorf("left %+v; changes %v", r.Left, said(r))
	}
	w.d.StopAt(nil)
	w.dreams()
}

func TestADreamSweepsWhatDeadWritersLeft(t *testing.T) {
	w := newWorld(t)
	w.write("a.md", mem("A", "project", "x\n"), 1)
	w.run(dream.Options{Force: true})
	old := time.Now().Add(-2 * time.Hour)
	left := []string{
		filepath.Join(w.dir, ".memdir-767070050fbb7489"), filepath.Join(w.dir, "team", ".memdir-767070050fbb7489"),
		filepath.Join(w.d.Dir, ".new-123"), filepath.Join(w.d.Dir, "dreams", ".new-123"),
	}
	for _, file := range left {
		if err := errors.Join(os.WriteFile(file, []byte("half"), 0o600), os.Chtimes(file, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	w.run(dream.Options{DryRun: true, Force: true})
	for _, file := range left {
		if _, err := os.Lstat(file); err != nil {
			t.Errorf("a dry run: %v", err)
		}
	}
	w.run(dream.Options{Force: true})
	for _, file := range left {
		if _, err := os.Lstat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", file, err)
		}
	}
}
