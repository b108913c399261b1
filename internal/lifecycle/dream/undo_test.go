package dream_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/lifecycle/dream"
	"github.com/memsvc/memsvc/internal/memory"
)

const statement = "Use pnpm for every package of the monorepo, never npm or yarn.\n"

// messy fills a store that has something to be done of every kind.
func (w *world) messy() {
	w.write("a.md", mem("Package manager", "feedback", statement+"\n- The lockfile is checked in.\n"), 2)
	w.write("b.md", mem("Packages", "feedback", statement+"\n- Node 22 is required.\n"), 5)
	w.write("c.md", mem("Plan", "project", "The release is tomorrow.\n"), 3)
	w.write("d.md", mem("Own", "project", "Nothing to do here, whatever it is.\n"), 3)
	w.write("team/t.md", mem("Freeze", "project", "Merges wait since yesterday.\n"), 4)
	w.write("team/u.md", mem("Review", "feedback", "Two people review each change of the schema.\n"), 4)
	w.write("team/v.md", mem("Review", "feedback", "Two people review each change of the schema.\n"), 6)
	w.write("MEMORY.md", "# Mine\n\n"+line("Package manager", "a.md")+line("Packages", "b.md")+line("Gone", "gone.md"), 1)
	w.write("team/MEMORY.md", line("Freeze", "t.md")+line("Review", "v.md"), 1)
}

func (w *world) times() map[string]time.Time {
	out := map[string]time.Time{}
	for name := range w.files() {
		fi, err := os.Stat(filepath.Join(w.dir, name))
		if err != nil {
			w.Fatal(err)
		}
		out[name] = fi.ModTime().UTC()
	}
	return out
}

func (w *world) undo() dream.Report {
	w.Helper()
	r, err := w.d.Undo(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func TestUndoBringsBackEveryByteAndTime(t *testing.T) {
	w := newWorld(t)
	w.messy()
	before, ages := w.files(), w.times()
	r := w.run(dream.Options{Force: true})
	if len(r.Changes) != 7 {
		t.Errorf("%q", said(r))
	}
	after := w.files()
	for name, at := range w.times() {
		if index := strings.HasSuffix(name, memory.IndexName); index == at.Equal(ages[name]) {
			t.Errorf("%s is as old as %s, not %s", name, at, ages[name])
		}
	}
	for _, c := range r.Changes {
		if c.Kind == dream.Delete && len(c.Reasons) != 1 || slices.Contains(c.Reasons, "") {
			t.Errorf("%s is deleted for %q", c.Ref, c.Reasons)
		}
	}
	w.time = w.time.Add(time.Hour)
	lockBody, lockTime := w.lock()
	u := w.undo()
	if diff := cmp.Diff(before, w.files()); diff != "" {
		t.Errorf("(-before +undone):\n%s", diff)
	}
	if diff := cmp.Diff(ages, w.times()); diff != "" {
		t.Errorf("times (-before +undone):\n%s", diff)
	}
	if body, at := w.lock(); body != lockBody || !at.Equal(lockTime) {
		t.Errorf("the lock became %q of %s", body, at)
	}
	if u.ID != r.ID || len(u.Left) > 0 {
		t.Errorf("%+v", u)
	}
	if _, err := w.d.Undo(t.Context()); !errors.Is(err, dream.ErrNoDream) {
		t.Errorf("again: %v", err)
	}
	// What was taken back is not done again by itself, but if somebody asks for it.
	w.time = w.time.Add(48 * time.Hour)
	w.talk(6, w.time)
	if r := w.run(dream.Options{}); r.Skipped != "" || w.read("b.md") == "" || w.read("team/v.md") == "" {
		t.Errorf("done again: %q", said(r))
	}
	w.run(dream.Options{Force: true})
	if w.read("b.md") != "" || w.read("a.md") != after["a.md"] {
		t.Error("asked for, it is not done again")
	}
}

// TestADeletedMemoryHasOneReason: what a dream did to a text before it found that the memory
// can go is no reason why it went.
func TestADeletedMemoryHasOneReason(t *testing.T) {
	w := newWorld(t)
	w.write("a.md", mem("Freeze", "project", "Merges wait since yesterday.\n"), 2)
	w.write("b.md", mem("Freeze", "project", "Merges wait since yesterday.\n"), 2)
	r := w.run(dream.Options{Force: true})
	deleted := 0
	for _, c := range r.Changes {
		if c.Kind != dream.Delete {
			continue
		}
		deleted++
		if diff := cmp.Diff([]string{"another memory says the same"}, c.Reasons); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if deleted != 1 {
		t.Errorf("%q", said(r))
	}
}

func TestUndoGoesBackDreamByDream(t *testing.T) {
	w := newWorld(t)
	w.messy()
	states := []map[string]string{w.files()}
	for i := range 3 {
		w.write("c.md", mem("Plan", "project", strings.Repeat("Decided yesterday.\n", i+1)), 3)
		states = append(states, w.files())
		w.time = w.time.Add(time.Hour)
		w.run(dream.Options{Force: true})
	}
	log, err := w.d.Log(t.Context())
	if err != nil || len(log) != 3 || !log[0].Time.After(log[2].Time) {
		t.Fatalf("%d dreams, %v", len(log), err)
	}
	for i := 3; i >= 1; i-- {
		w.undo()
		if i > 1 {
			// c.md was edited between the dreams; the dream before is taken back in its turn.
			w.write("c.md", mem("Plan", "project", strings.Repeat("Decided 2026-03-08.\n", i-1)), 3)
		}
	}
	got := w.files()
	if want := mem("Plan", "project", "Decided yesterday.\n"); got["c.md"] != want {
		t.Errorf("c.md: %q", got["c.md"])
	}
	got["c.md"] = states[1]["c.md"]
	if diff := cmp.Diff(states[1], got); diff != "" {
		t.Errorf("(-before +undone):\n%s", diff)
	}
}

// lineMerge merges texts of as many lines as their ancestor.
func lineMerge(_ memory.Path, base, ours, theirs []byte) ([]byte, bool) {
	b, o, t := bytes.SplitAfter(base, []byte("\n")), bytes.SplitAfter(ours, []byte("\n")), bytes.SplitAfter(theirs, []byte("\n"))
	if len(b) != len(o) || len(b) != len(t) {
		return nil, false
	}
	var out []byte
	for i := range b {
		switch {
		case bytes.Equal(b[i], o[i]):
			out = append(out, t[i]...)
		case bytes.Equal(b[i], t[i]):
			out = append(out, o[i]...)
		default:
			return nil, false
		}
	}
	return out, true
}

func TestUndoMergesWhatWasEditedSince(t *testing.T) {
	w := newWorld(t)
	w.d.Merge = lineMerge
	w.messy()
	w.run(dream.Options{Force: true})
	w.write("c.md", strings.Replace(w.read("c.md"), "about Plan", "when we ship", 1), 0)
	w.write("a.md", mem("Package manager", "feedback", "Use bun.\n"), 0)
	w.write("b.md", mem("Packages", "feedback", "Another text of this name.\n"), 0)
	w.write("team/t.md", strings.Replace(w.read("team/t.md"), "Merges", "hunter2: merges", 1), 0)
	w.write("MEMORY.md", w.read("MEMORY.md")+"- [New](new.md) — mine\n", 0)
	w.write("new.md", mem("New", "project", "x\n"), 0)
	r := w.undo()
	if got := w.read("c.md"); !strings.Contains(got, "when we ship") || !strings.Contains(got, "tomorrow") {
		t.Errorf("c.md is not merged: %q", got)
	}
	if got := w.read("a.md"); !strings.Contains(got, "Use bun.") || strings.Contains(got, "pnpm") {
		t.Errorf("a.md: %q", got)
	}
	if got := w.read("b.md"); !strings.Contains(got, "Another text") {
		t.Errorf("b.md: %q", got)
	}
	if w.read("team/v.md") == "" {
		t.Error("team/v.md is not back")
	}
	for _, want := range []string{"(a.md)", "(b.md)", "(new.md) — mine", "(gone.md)"} {
		if got := strings.Contains(w.read("MEMORY.md"), want); got != (want != "(gone.md)") {
			t.Errorf("index %q: %s %v", w.read("MEMORY.md"), want, got)
		}
	}
	told := map[string]string{}
	for _, l := range r.Left {
		told[l.Ref] = l.Why
	}
	for ref, want := range map[string]string{"a.md": "pnpm", "b.md": "Node 22", "team/t.md": "yesterday"} {
		_, file, _ := strings.Cut(told[ref], " is in ")
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: told %q, kept %q, %v", ref, told[ref], text, err)
		}
	}
}

// TestStoppedAtEveryStep stops a dream, and then an undo, at each of its steps in turn.
// Recover ends what was begun.
func TestStoppedAtEveryStep(t *testing.T) {
	model := newWorld(t)
	model.messy()
	before := model.files()
	model.run(dream.Options{Force: true})
	after := model.files()
	errStop := errors.New("stopped")
	stopAfter := func(w *world, n int) {
		w.d.StopAt(func(string) error {
			if n--; n < 0 {
				return errStop
			}
			return nil
		})
	}
	steps := 0
	for ; ; steps++ {
		w := newWorld(t)
		w.messy()
		prior := now.Add(-48 * time.Hour)
		w.setLock("", prior)
		stopAfter(w, steps)
		_, err := w.d.Run(t.Context(), dream.Options{Force: true})
		if err == nil {
			break
		}
		if !errors.Is(err, errStop) {
			t.Fatal(err)
		}
		if _, at := w.lock(); !at.Equal(prior) {
			t.Errorf("stopped after %d steps: the lock is of %s", steps, at)
		}
		w.d.StopAt(nil)
		if _, err := w.d.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(after, w.files()); diff != "" {
			t.Errorf("stopped after %d steps (-want +got):\n%s", steps, diff)
		}
		if _, at := w.lock(); !at.Equal(now) {
			t.Errorf("stopped after %d steps and ended: the lock is of %s", steps, at)
		}
		if done, err := w.d.Recover(t.Context()); done || err != nil {
			t.Errorf("recovered twice: %v, %v", done, err)
		}
		w.time = w.time.Add(time.Hour)
		if r := w.run(dream.Options{Force: true}); len(r.Changes) > 0 {
			t.Errorf("stopped after %d steps: %q is left to do", steps, said(r))
		}
		undoStep := steps
		stopAfter(w, undoStep)
		if _, err := w.d.Undo(t.Context()); err != nil && !errors.Is(err, errStop) {
			t.Fatal(err)
		}
		w.d.StopAt(nil)
		if _, err := w.d.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, w.files()); diff != "" {
			t.Errorf("undo stopped after %d steps (-want +got):\n%s", undoStep, diff)
		}
		if _, err := w.d.Undo(t.Context()); !errors.Is(err, dream.ErrNoDream) {
			t.Errorf("the undo stopped after %d steps is not over: %v", undoStep, err)
		}
	}
	if steps < 10 {
		t.Errorf("only %d steps", steps)
	}
}

// TestEditedMeanwhile changes files while a dream applies its change set: what was edited
// stays, and nothing goes whose facts did not arrive.
func TestEditedMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.messy()
	edited := false
	w.d.StopAt(func(step string) error {
		if step == "journal" && !edited {
			edited = true
			w.write("a.md", mem("Package manager", "feedback", "Use bun.\n"), 0)
			w.write("MEMORY.md", w.read("MEMORY.md")+"- [New](d.md) — own\n", 0)
			w.write("team/u.md", "mine now\n", 0)
		}
		return nil
	})
	r := w.run(dream.Options{Force: true})
	if w.read("a.md") != mem("Package manager", "feedback", "Use bun.\n") || w.read("team/u.md") != "mine now\n" {
		t.Error("an edit is lost")
	}
	if !strings.Contains(w.read("b.md"), "Node 22") || w.read("team/v.md") == "" {
		t.Error("a memory is gone whose facts did not arrive")
	}
	index := w.read("MEMORY.md")
	for _, want := range []string{"(a.md)", "(b.md)", "[New](d.md) — own", "(c.md)"} {
		if !strings.Contains(index, want) {
			t.Errorf("the index lacks %s: %q", want, index)
		}
	}
	if strings.Contains(index, "gone.md") {
		t.Errorf("the ghost is still there: %q", index)
	}
	if len(r.Left) != 3 {
		t.Errorf("%+v", r.Left)
	}
	w.d.StopAt(nil)
	w.undo()
	if w.read("a.md") != mem("Package manager", "feedback", "Use bun.\n") || !strings.Contains(w.read("c.md"), "tomorrow") {
		t.Error("undo touched what the dream did not, or not what it did")
	}
}

func TestRedactedTextsLeaveTheRecords(t *testing.T) {
	w := newWorld(t)
	w.messy()
	secret := []byte(w.read("team/t.md"))
	w.run(dream.Options{Force: true})
	// Another text at the path stays: the hub is asked about each.
	kept := func(texts [][]byte) ([]bool, error) { return make([]bool, len(texts)), nil }
	if err := w.d.Scrub(t.Context(), []memory.Path{"t.md"}, kept); err != nil {
		t.Fatal(err)
	}
	if log, err := w.d.Log(t.Context()); err != nil || !slices.ContainsFunc(log[0].Changes, func(c dream.Change) bool { return bytes.Equal(c.Old, secret) }) {
		t.Fatalf("a text that was not redacted is gone (%v)", err)
	}
	judge := func(texts [][]byte) (out []bool, err error) {
		for _, text := range texts {
			out = append(out, bytes.Equal(text, secret))
		}
		return out, nil
	}
	if err := w.d.Scrub(t.Context(), nil, judge); err != nil {
		t.Fatal(err)
	}
	log, err := w.d.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range log[0].Changes {
		if bytes.Equal(c.Old, secret) {
			t.Error("the text is still there")
		}
	}
	w.undo()
	if strings.Contains(w.read("team/t.md"), "yesterday") || !strings.Contains(w.read("c.md"), "tomorrow") {
		t.Error("undone where it must not be, or not where it can be")
	}
}

// TestRecordsAreAskedAboutTogether: one question for each record, however many changes it
// has, also where what a dream removed is kept.
func TestRecordsAreAskedAboutTogether(t *testing.T) {
	w := newWorld(t)
	w.messy()
	for i := range 20 {
		w.write(fmt.Sprintf("team/z%d.md", i), mem(fmt.Sprintf("Z%d", i), "project", fmt.Sprintf("part %d is done tomorrow.\n", i)), 1)
	}
	w.run(dream.Options{Force: true})
	log, err := w.d.Log(t.Context())
	if err != nil || len(log) != 1 || len(log[0].Changes) < 20 {
		t.Fatalf("%d records (%v)", len(log), err)
	}
	questions, texts := 0, 0
	judge := func(all [][]byte) ([]bool, error) {
		questions++
		texts += len(all)
		return make([]bool, len(all)), nil
	}
	if err := w.d.Scrub(t.Context(), nil, judge); err != nil {
		t.Fatal(err)
	}
	if questions != 1 || texts < 20 {
		t.Errorf("%d questions about %d texts, want one about all", questions, texts)
	}
}

// TestKilledWhenAllWasDone is left by a process that died between a dream's last step and
// its word on the lock: the dream counts.
func TestKilledWhenAllWasDone(t *testing.T) {
	w := newWorld(t)
	w.messy()
	prior := now.Add(-48 * time.Hour)
	w.setLock("", prior)
	if r := w.run(dream.Options{Force: true}); len(r.Changes) == 0 {
		t.Fatal("nothing was done")
	}
	const gone = 1 << 30 // no process has this id
	w.setLock(strconv.Itoa(gone), now)
	left, err := json.Marshal(map[string]any{"PID": gone, "Had": true, "Prior": prior, "Started": now})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.d.Dir, "lock.json"), left, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.d.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if body, at := w.lock(); body != "" || !at.Equal(now) {
		t.Errorf("the lock is %q of %s, want the dream's time", body, at)
	}
}
