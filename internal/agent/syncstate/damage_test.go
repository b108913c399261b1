package syncstate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// history applies n updates and returns the journal's bytes, the length after each
// and the state after each; index 0 is the fresh state.
func history(t *testing.T, n int, relaxed bool) (journal []byte, ends []int64, states []syncer.LinkState) {
	t.Helper()
	dir := t.TempDir()
	s := mustOpen(t, dir)
	must(t, s.rewrite())
	ends, states = []int64{s.size}, []syncer.LinkState{syncer.NewLinkState()}
	for i := range n {
		u := baseline(path(i), fmt.Sprint("text ", i), memory.Revision(i))
		u.Relaxed = relaxed
		mustApply(t, s, u)
		ends, states = append(ends, s.size), append(states, load(t, s))
	}
	return readJournal(t, dir), ends, states
}

// A tail that was torn at any byte leaves the state before the torn update.
func TestTornTail(t *testing.T) {
	root := t.TempDir()
	journal, ends, states := history(t, 3, false)
	for n := ends[0]; n < int64(len(journal)); n++ {
		k := 0
		for k+1 < len(ends) && ends[k+1] <= n {
			k++
		}
		dir := withJournal(t, root, journal[:n])
		for range 2 { // and the cut itself is sound
			s := quickOpen(t, dir)
			if diff := cmp.Diff(states[k], load(t, s)); diff != "" {
				t.Fatalf("cut at %d: %s", n, diff)
			}
			must(t, s.Close())
		}
		if got := readJournal(t, dir); int64(len(got)) != ends[k] {
			t.Fatalf("cut at %d left %d bytes, want %d", n, len(got), ends[k])
		}
	}
}

// A page of the tail that never reached the disk (zeros, or what was there before) is
// a torn tail too, even if later pages did.
func TestTornTailOutOfOrder(t *testing.T) {
	journal, ends, states := history(t, 4, true)
	for k := range 4 {
		b := slices.Clone(journal)
		for i := ends[k]; i < ends[k+1]; i++ {
			b[i] = 0
		}
		s := mustOpen(t, withJournal(t, t.TempDir(), b))
		if diff := cmp.Diff(states[k], load(t, s)); diff != "" || s.Report().Damage != "" {
			t.Fatalf("record %d lost: %+v %s", k, s.Report(), diff)
		}
		must(t, s.Close())
	}
}

// Any flipped byte is either noticed as damage, or cut where nothing later relied on
// it, or lies in a text, which then is no text. It is never believed.
func TestEveryFlippedByteIsNoticed(t *testing.T) {
	root := t.TempDir()
	journal, ends, states := history(t, 3, false)
	last := ends[len(ends)-2]
	for i := range journal {
		b := slices.Clone(journal)
		b[i] ^= 0x40
		dir := withJournal(t, root, b)
		s := quickOpen(t, dir)
		st, r := load(t, s), s.Report()
		switch {
		case int64(i) < last:
			if r.Damage == "" || !st.Fresh || len(st.Baseline) != 0 || r.Aside == "" || !exists(filepath.Join(r.Aside, journalName)) {
				t.Fatalf("byte %d of %d: %+v", i, len(journal), r)
			}
		default: // the last record: nobody can know that it had been whole
			if diff := cmp.Diff(states[len(states)-2], st); diff != "" || r.CutBytes == 0 {
				t.Fatalf("byte %d of %d: %+v %s", i, len(journal), r, diff)
			}
		}
		// C18: the link goes on.
		mustApply(t, s, baseline("new.md", "new", 1))
		must(t, s.Close())
		again := quickOpen(t, dir)
		if again.Report() != (Report{}) || load(t, again).Baseline["new.md"].Text != etag("new") {
			t.Fatalf("byte %d: after going on: %+v", i, again.Report())
		}
		must(t, again.Close())
	}
}

func TestDamagedTextIsNoText(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	mustApply(t, s, baseline("a.md", "precious text", 1))
	mustApply(t, s, baseline("b.md", "other text", 1))
	must(t, s.rewrite()) // texts of a snapshot are checked when they are read
	must(t, s.Close())
	b := bytes.Replace(readJournal(t, dir), []byte("precious"), []byte("previous"), 1)
	must(t, os.WriteFile(journalPath(dir), b, 0o600))
	s = mustOpen(t, dir)
	if _, err := s.Text(t.Context(), etag("precious text")); !errors.Is(err, syncer.ErrNoText) {
		t.Errorf("a damaged text: %v", err)
	}
	must(t, s.rewrite()) // which leaves it out and keeps the rest
	if got, err := s.Text(t.Context(), etag("other text")); err != nil || string(got) != "other text" {
		t.Errorf("%q, %v", got, err)
	}
	if len(load(t, s).Baseline) != 2 {
		t.Error("the baseline suffered")
	}
}

// What exists nowhere else is carried over from damaged state, if it is whole; nothing
// that decides about files is.
func TestConflictsAreSalvaged(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	u, texts := full()
	mustApply(t, s, u)
	lost := syncer.Conflict{ID: "lost", Local: etag("damaged text")}
	mustApply(t, s, syncer.Update{Texts: [][]byte{[]byte("damaged text")}, PutConflicts: []syncer.Conflict{lost}})
	mustApply(t, s, syncer.Update{Texts: [][]byte{[]byte("late")}, PutConflicts: []syncer.Conflict{{ID: "late", Local: etag("late")}}})
	must(t, s.Close())
	b := bytes.Replace(readJournal(t, dir), []byte("damaged text"), []byte("damaged test"), 1)
	must(t, os.WriteFile(journalPath(dir), b, 0o600))

	want := syncer.NewLinkState()
	want.Apply(syncer.Update{PutConflicts: append(u.PutConflicts, syncer.Conflict{ID: "late", Local: etag("late")}), PutTrash: u.PutTrash, AddNotes: u.AddNotes})
	want.Fresh = true
	texts[etag("late")] = "late"
	ro, err := OpenReadOnly(dir, link, Options{})
	must(t, err)
	check(t, ro, want, texts)
	must(t, ro.Close())
	s = mustOpen(t, dir)
	if r := s.Report(); r.Salvaged != 3 || r.Aside == "" {
		t.Errorf("%+v", r)
	}
	check(t, s, want, texts)
	must(t, s.Close())
	s = mustOpen(t, dir)
	check(t, s, want, texts)
	if r := s.Report(); r.Damage != "" {
		t.Errorf("%+v", r)
	}
}

// One link's damage stops no other, and only so many damaged copies are kept.
func TestDamageIsContained(t *testing.T) {
	dir := t.TempDir()
	good, err := Open(dir, "good", Options{})
	must(t, err)
	defer good.Close()
	mustApply(t, good, baseline("a.md", "x", 1))
	for range keepAside + 2 {
		must(t, os.MkdirAll(filepath.Dir(journalPath(dir)), 0o700))
		must(t, os.WriteFile(journalPath(dir), []byte("garbage"), 0o600))
		ro, err := OpenReadOnly(dir, link, Options{})
		must(t, err)
		if ro.Report().Damage == "" || ro.Report().Aside != "" || !load(t, ro).Fresh {
			t.Errorf("read-only: %+v", ro.Report())
		}
		must(t, ro.Close())
		s := mustOpen(t, dir)
		if s.Report().Damage == "" {
			t.Error("garbage was accepted")
		}
		must(t, s.Close())
	}
	aside, err := filepath.Glob(filepath.Join(dir, linksDir, link, asidePrefix+"*"))
	if err != nil || len(aside) != keepAside {
		t.Errorf("%v, %v", aside, err)
	}
	if _, err := good.Text(context.Background(), etag("x")); err != nil {
		t.Error(err)
	}
}

func FuzzReplay(f *testing.F) {
	f.Add([]byte{})
	f.Add(header{kind: kindSnapshot}.append(nil))
	dir := f.TempDir()
	s, err := Open(dir, link, Options{})
	if err != nil {
		f.Fatal(err)
	}
	u, _ := full()
	if err := s.Apply(context.Background(), u); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(journalPath(dir))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, data []byte) {
		j, err := replay(memFile{bytes.NewReader(data)})
		var bad *damage
		if err != nil && !errors.As(err, &bad) {
			t.Fatalf("not reported as damage: %v", err)
		}
		if err == nil && j.size+j.cut != int64(len(data)) {
			t.Fatalf("%d whole and %d torn of %d bytes", j.size, j.cut, len(data))
		}
	})
}

// FuzzDecode skips the checksums, which a fuzzer cannot guess.
func FuzzDecode(f *testing.F) {
	u, texts := full()
	var refs []textRef
	for e, s := range texts {
		refs = append(refs, textRef{e, int64(len(s))})
	}
	b, err := encode(u, false, refs)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{codecVersion, 255, 255, 255, 255, 15})
	f.Fuzz(func(t *testing.T, data []byte) {
		u, fresh, texts, err := newDecoder().decode(data)
		if err != nil {
			return
		}
		b, err := encode(u, fresh, texts)
		if err != nil {
			t.Skip("time out of JSON's range")
		}
		v, fresh2, texts2, err := newDecoder().decode(b)
		if err != nil || fresh2 != fresh || len(texts2) != len(texts) || len(v.PutBaseline) != len(u.PutBaseline) {
			t.Fatalf("decoded, encoded and decoded again: %v", err)
		}
	})
}

type memFile struct{ *bytes.Reader }

func (m memFile) Size() (int64, error)               { return m.Reader.Size(), nil }
func (m memFile) WriteAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }
func (m memFile) Truncate(int64) error               { return errors.ErrUnsupported }
func (m memFile) Sync() error                        { return nil }
func (m memFile) Close() error                       { return nil }
