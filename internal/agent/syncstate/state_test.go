package syncstate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

func TestFreshThenSaved(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	if st := load(t, s); !st.Fresh || st.Baseline == nil || !s.Report().Fresh {
		t.Fatalf("%+v", st)
	}
	u, texts := full()
	mustApply(t, s, u)
	want := syncer.NewLinkState()
	want.Apply(u)
	check(t, s, want, texts)
	must(t, s.Close())

	s = mustOpen(t, dir)
	check(t, s, want, texts)
	if r := s.Report(); r != (Report{}) {
		t.Errorf("%+v", r)
	}
	if _, err := s.Text(t.Context(), etag("never")); !errors.Is(err, syncer.ErrNoText) {
		t.Errorf("an unknown text: %v", err)
	}
	if b, err := s.Text(t.Context(), etag("")); err != nil || len(b) != 0 {
		t.Errorf("the empty text: %q, %v", b, err)
	}
	// The same after a rewrite.
	must(t, s.rewrite())
	must(t, s.Close())
	check(t, mustOpen(t, dir), want, texts)
}

func TestClosedAndReadOnly(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	must(t, s.Close())
	must(t, s.Close())
	if err := s.Apply(t.Context(), syncer.Update{}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	before := tree(t, dir)
	r, err := OpenReadOnly(dir, link, Options{})
	must(t, err)
	defer r.Close()
	if err := r.Apply(t.Context(), syncer.Update{}); !errors.Is(err, ErrReadOnly) {
		t.Error(err)
	}
	if err := r.Forget(t.Context()); !errors.Is(err, ErrReadOnly) {
		t.Error(err)
	}
	if err := r.DropAside(t.Context()); !errors.Is(err, ErrReadOnly) {
		t.Error(err)
	}
	empty := filepath.Join(t.TempDir(), "none")
	q, err := OpenReadOnly(empty, link, Options{})
	must(t, err)
	defer q.Close()
	if !load(t, q).Fresh || exists(empty) {
		t.Error("reading made something")
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("reading wrote: %s", diff)
	}
}

func tree(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	out := map[string]fs.FileMode{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		out[path] = fi.Mode()
		return err
	}))
	return out
}

func TestModesAndNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := mustOpen(t, dir)
	mustApply(t, s, baseline("a.md", "x", 1))
	for path, mode := range tree(t, dir) {
		want := fs.FileMode(0o600)
		if mode.IsDir() {
			want = 0o700 | fs.ModeDir
		}
		if mode != want {
			t.Errorf("%s: %v", path, mode)
		}
	}
	for _, id := range []string{"", ".", "..", "a/b", `a\b`, ".hidden", "a\x00", strings.Repeat("x", 300)} {
		if _, err := Open(dir, id, Options{}); err == nil {
			t.Errorf("link id %q was accepted", id)
		}
	}
	if _, err := Open(dir, link, Options{}); !errors.Is(err, ErrInUse) {
		t.Errorf("a second writer: %v", err)
	}
	ids, err := Links(dir)
	if err != nil || len(ids) != 1 || ids[0] != link {
		t.Errorf("%v, %v", ids, err)
	}
	if ids, err := Links(filepath.Join(dir, "absent")); err != nil || ids != nil {
		t.Errorf("%v, %v", ids, err)
	}
}

// A reader beside a writer sees whole states only, ascending.
func TestReaderBesideWriter(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	mustApply(t, s, baseline("a.md", "0", 0))
	done := make(chan error, 1)
	go func() {
		for i := 1; i <= 400; i++ {
			text := strings.Repeat(fmt.Sprint(i), 2000) // several rewrites
			if err := s.Apply(context.Background(), baseline("a.md", text, memory.Revision(i))); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	last := memory.Revision(0)
	for running := true; running; {
		select {
		case err := <-done:
			must(t, err)
			running = false
		default:
		}
		r, err := OpenReadOnly(dir, link, Options{})
		must(t, err)
		st := load(t, r)
		e := st.Baseline["a.md"]
		if r.Report().Damage != "" || e.HubRevision < last {
			t.Fatalf("%+v, revision %d after %d", r.Report(), e.HubRevision, last)
		}
		if _, err := r.Text(context.Background(), e.Text); err != nil {
			t.Fatal(err)
		}
		last = e.HubRevision
		must(t, r.Close())
	}
	if last != 400 {
		t.Errorf("the last reader saw %d", last)
	}
}

// Against the definition of Update in package syncer, with reopening in between.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "syncstate")
		must(t, err)
		defer os.RemoveAll(dir)
		want := syncer.NewLinkState()
		texts := map[memory.ETag]string{}
		s, err := Open(dir, link, Options{})
		must(t, err)
		defer func() { s.Close() }()
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"apply", "apply", "apply", "apply", "reopen", "rewrite"}).Draw(rt, "step") {
			case "apply":
				u := drawUpdate(rt, texts)
				if err := s.Apply(context.Background(), u); err != nil {
					rt.Fatal(err)
				}
				want.Apply(u)
			case "reopen":
				must(t, s.Close())
				if s, err = Open(dir, link, Options{}); err != nil {
					rt.Fatal(err)
				}
			case "rewrite":
				if s.file != nil {
					must(t, s.rewrite())
				}
			}
			if diff := cmp.Diff(want, load(t, s)); diff != "" {
				rt.Fatal(diff)
			}
			for e := range want.Texts() {
				got, err := s.Text(context.Background(), e)
				if err != nil || string(got) != texts[e] {
					rt.Fatalf("text %q: %q, %v", texts[e], got, err)
				}
			}
		}
	})
}

// drawUpdate draws an update. It brings every text it refers to, as the syncer does.
func drawUpdate(rt *rapid.T, texts map[memory.ETag]string) syncer.Update {
	u := syncer.Update{Relaxed: rapid.Bool().Draw(rt, "relaxed")}
	text := func() memory.ETag {
		s := strings.Repeat(rapid.SampledFrom([]string{"a", "b", "c", "d", ""}).Draw(rt, "text"), rapid.SampledFrom([]int{1, 10, 40_000}).Draw(rt, "times"))
		u.Texts = append(u.Texts, []byte(s))
		texts[etag(s)] = s
		return etag(s)
	}
	p := func() memory.Path { return path(rapid.IntRange(0, 5).Draw(rt, "path")) }
	for range rapid.IntRange(0, 3).Draw(rt, "changes") {
		switch rapid.IntRange(0, 9).Draw(rt, "field") {
		case 0, 1:
			author := rapid.SampledFrom([]string{"", "ann", "bob", "安"}).Draw(rt, "author")
			u.PutBaseline = map[memory.Path]syncer.BaseEntry{p(): {Text: text(), Hub: etag("h"), Local: etag("l"), HubRevision: 4, Author: author}}
		case 2:
			u.DropBaseline = append(u.DropBaseline, p())
		case 3:
			u.PutConflicts = append(u.PutConflicts, syncer.Conflict{ID: string(p()), Path: p(), Local: text(), Hub: text()})
		case 4:
			u.DropConflicts = append(u.DropConflicts, string(p()))
		case 5:
			u.PutIntents = append(u.PutIntents, syncer.Intent{Path: p(), Base: text()})
		case 6:
			u.DropIntents = append(u.DropIntents, p())
		case 7:
			u.PutTrash = append(u.PutTrash, syncer.Trashed{ID: string(p()), ETag: text(), Time: time.Now().UTC().Truncate(0)})
		case 8:
			u.Cursor, u.SetHalt = &memory.Cursor{Revision: 3}, &syncer.Halt{Reason: "r"}
			u.PutHeld = append(u.PutHeld, syncer.Held{Path: p(), By: syncer.HeldByHub})
		case 9:
			u.ClearHalt, u.DropHeld, u.DropTrash = true, []memory.Path{p()}, []string{string(p())}
			u.AddNotes = append(u.AddNotes, syncer.Note{Kind: syncer.NoteShrunk})
		}
	}
	return u
}

// The file stays in proportion to what it holds, and old texts go.
func TestRewriteBoundsTheFile(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	for i := range 500 {
		u := baseline("a.md", strings.Repeat(fmt.Sprint(i, " "), 1000), memory.Revision(i))
		u.Relaxed = true
		mustApply(t, s, u)
	}
	if n := len(readJournal(t, dir)); n > 2*rewriteFrom {
		t.Errorf("the journal has %d bytes for one text of 4 KB", n)
	}
	if bytes.Contains(readJournal(t, dir), []byte("10 10 10")) {
		t.Error("a text that nothing refers to is still there")
	}
}

// TestTrashStaysUntilItIsGivenUp: opening gives nothing up, whatever its age; the syncer
// does, and is told how long texts are.
func TestTrashStaysUntilItIsGivenUp(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	opts := Options{Now: func() time.Time { return now }}
	s, err := Open(dir, link, opts)
	must(t, err)
	text := strings.Repeat("x", 1000)
	mustApply(t, s, syncer.Update{Texts: [][]byte{[]byte(text)}, PutTrash: []syncer.Trashed{{ID: "1", ETag: etag(text), Time: now}}})
	must(t, s.Close())
	now = now.Add(365 * 24 * time.Hour)
	s, err = Open(dir, link, opts)
	must(t, err)
	defer s.Close()
	if st := load(t, s); len(st.Trash) != 1 || s.Size(etag(text)) != 1000 || s.Size(etag("other")) != 0 {
		t.Errorf("%+v, %d bytes", st.Trash, s.Size(etag(text)))
	}
	mustApply(t, s, syncer.Update{DropTrash: []string{"1"}})
	if st := load(t, s); len(st.Trash) != 0 {
		t.Errorf("%+v", st.Trash)
	}
}

// Ruling 13.14: nothing of a redacted text stays, anywhere below the directory.
func TestRedactedLeavesTheState(t *testing.T) {
	dir := t.TempDir()
	const secret = "AKIA-not-a-real-key"
	s := mustOpen(t, dir)
	text := "before " + secret + " after"
	mustApply(t, s, baseline("a.md", text, 1))
	mustApply(t, s, baseline("b.md", "harmless", 1))
	must(t, s.Close())
	b := readJournal(t, dir)
	b[len(b)-200]++ // damage it, so that a copy is put aside
	must(t, os.WriteFile(journalPath(dir), b, 0o600))
	s = mustOpen(t, dir)
	if s.Report().Aside == "" && s.Report().CutBytes == 0 {
		t.Fatal("the damage was not noticed")
	}
	mustApply(t, s, baseline("a.md", text, 1))
	mustApply(t, s, baseline("b.md", "harmless", 1))
	mustApply(t, s, syncer.Update{
		PutConflicts: []syncer.Conflict{{ID: "1", Local: etag(text)}, {ID: "2", Local: etag("harmless"), Hub: etag(text), Base: etag(text)}},
		PutTrash:     []syncer.Trashed{{ID: "t", ETag: etag(text), Time: time.Now()}, {ID: "u", ETag: etag("harmless"), Time: time.Now()}},
	})
	mustApply(t, s, syncer.Update{AddNotes: []syncer.Note{
		{Kind: syncer.NoteIndexLine, Path: "MEMORY.md", Text: "- [a](a.md) — " + secret}, {Kind: syncer.NoteIndexLine, Path: "sub/MEMORY.md", Text: "- [b](b.md)"},
	}})
	mustApply(t, s, baseline("c.md", "old "+secret, 1))
	mustApply(t, s, baseline("c.md", "new", 2))
	found := false
	any, err := s.Aside(t.Context(), func(b []byte) error {
		found = found || string(b) == "harmless"
		if !s.mu.TryLock() { // it may take as long as a hub takes to answer
			t.Error("the state is locked while a text is looked at")
			return nil
		}
		s.mu.Unlock()
		return nil
	})
	if err != nil || !any || !found {
		t.Errorf("what was put aside does not tell its texts: %v", err)
	}
	no, yes := false, true
	mustApply(t, s, baseline("a.md", "marker", 2))
	mustApply(t, s, syncer.Update{
		PutConflicts: []syncer.Conflict{{ID: "2", Local: etag("harmless")}}, DropConflicts: []string{"1"}, DropTrash: []string{"t"},
		DropLines: []memory.Path{"MEMORY.md"}, SetRedacting: &yes,
	})
	must(t, s.Close())
	s = mustOpen(t, dir)
	if !load(t, s).Redacting {
		t.Error("that it is at it does not outlive a restart")
	}
	must(t, s.DropAside(t.Context()))
	must(t, s.Forget(t.Context()))
	mustApply(t, s, syncer.Update{SetRedacting: &no})
	model := load(t, s)
	if _, err := s.Text(t.Context(), etag(text)); !errors.Is(err, syncer.ErrNoText) {
		t.Errorf("the text is still there: %v", err)
	}
	if n := model.Notes; len(n) != 2 || n[0].Text != syncer.LineRedacted || n[1].Text != "- [b](b.md)" {
		t.Errorf("notes %+v", n)
	}
	for path, mode := range tree(t, dir) {
		if mode.IsRegular() {
			if b, err := os.ReadFile(path); err != nil || bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s holds it, %v", path, err)
			}
		}
	}
	must(t, s.Close())
	check(t, mustOpen(t, dir), model, map[memory.ETag]string{etag("harmless"): "harmless", etag("new"): "new", etag("marker"): "marker"})
}

// What nothing refers to any more leaves the disk when told, and at the next start.
func TestForget(t *testing.T) {
	dir := t.TempDir()
	const old = "a text that was redacted"
	s := mustOpen(t, dir)
	for _, now := range []bool{true, false} {
		mustApply(t, s, baseline("a.md", old, 1))
		mustApply(t, s, syncer.Update{Texts: [][]byte{[]byte(old + "!")}, PutConflicts: []syncer.Conflict{{ID: "1", Local: etag(old + "!")}}})
		mustApply(t, s, baseline("a.md", "new", 2))
		mustApply(t, s, syncer.Update{DropConflicts: []string{"1"}})
		if !bytes.Contains(readJournal(t, dir), []byte(old)) {
			t.Fatal("the test tests nothing")
		}
		if now {
			must(t, s.Forget(t.Context()))
		} else {
			must(t, s.Close())
			s = mustOpen(t, dir)
		}
		if bytes.Contains(readJournal(t, dir), []byte(old)) {
			t.Errorf("now=%v: the text is still there", now)
		}
		if got, err := s.Text(t.Context(), etag("new")); err != nil || string(got) != "new" {
			t.Errorf("%q, %v", got, err)
		}
	}
}

func TestNotesAreBounded(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	for i := range syncer.MaxNotes + 10 {
		mustApply(t, s, syncer.Update{Relaxed: true, AddNotes: []syncer.Note{{Text: fmt.Sprint(i)}}})
	}
	if n := load(t, s).Notes; len(n) != syncer.MaxNotes || n[0].Text != "10" {
		t.Errorf("%d notes, the first %q", len(n), n[0].Text)
	}
}
