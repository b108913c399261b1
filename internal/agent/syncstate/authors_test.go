package syncstate

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// locals are the texts on the disk as the baseline has them, and who wrote each.
func locals(s syncer.LinkState) (texts map[memory.Path]memory.ETag, authors map[memory.Path]string) {
	texts, authors = map[memory.Path]memory.ETag{}, map[memory.Path]string{}
	for p, e := range s.Baseline {
		texts[p] = e.Local
		if e.Author != "" {
			authors[p] = e.Author
		}
	}
	return texts, authors
}

// TestAuthorsAreThoseOfTheState: what is read at a glance is what the whole state says,
// before and after it is written anew, while it is open.
func TestAuthorsAreThoseOfTheState(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		must(t, err)
		s := quickOpen(t, dir)
		defer func() { must(t, s.Close()) }()
		for range rapid.IntRange(1, 6).Draw(rt, "updates") {
			mustApply(t, s, drawUpdate(rt, map[memory.ETag]string{}))
			if rapid.IntRange(0, 4).Draw(rt, "rewrite") == 0 {
				must(t, s.rewrite())
			}
			texts, want := locals(load(t, s))
			texts["none.md"] = etag("none")
			got, err := Authors(dir, link, texts)
			must(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("authors (-state +glance): %s", diff)
			}
			if got, err := Authors(dir, link, map[memory.Path]memory.ETag{path(1): etag("edited")}); err != nil || len(got) > 0 {
				rt.Fatalf("of a text that was edited since: %v, %v", got, err)
			}
		}
	})
}

// TestAuthorsOfAJournalThatIsCut: wherever a journal ends, what is read is some earlier
// state, or nothing, and never an error; so is it where a byte of it is another one.
func TestAuthorsOfAJournalThatIsCut(t *testing.T) {
	dir := t.TempDir()
	s := quickOpen(t, dir)
	earlier := map[string]bool{fmt.Sprint(map[memory.Path]string{}): true}
	ask := map[memory.Path]memory.ETag{}
	for i := range 6 {
		u := baseline(path(i%2), fmt.Sprint("text ", i%2), memory.Revision(i))
		for p, e := range u.PutBaseline {
			e.Author = fmt.Sprint("author ", i)
			u.PutBaseline[p] = e
		}
		if i == 3 {
			u = syncer.Update{DropBaseline: []memory.Path{path(0)}}
		}
		mustApply(t, s, u)
		texts, now := locals(load(t, s))
		maps.Copy(ask, texts)
		earlier[fmt.Sprint(now)] = true
	}
	must(t, s.Close())
	whole := readJournal(t, dir)
	try := func(what string, b []byte) {
		file := filepath.Join(t.TempDir(), "journal")
		must(t, os.WriteFile(file, b, 0o600))
		f, err := osDisk{}.Open(file, false)
		must(t, err)
		defer f.Close()
		if got, err := authors(f, ask); err != nil || !earlier[fmt.Sprint(got)] {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	for n := range whole {
		try(fmt.Sprintf("cut at %d of %d", n, len(whole)), whole[:n])
	}
	for n := 0; n < len(whole); n += 3 {
		b := append([]byte(nil), whole...)
		b[n] ^= 0x40
		try(fmt.Sprintf("another byte at %d", n), b)
	}
}

// A state of before authors were kept has none, and there need be no state.
func TestAuthorsOfOlderStates(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "journal-v1"))
	must(t, err)
	ask := map[memory.Path]memory.ETag{"a.md": etag("a")}
	for _, dir := range []string{withJournal(t, t.TempDir(), b), t.TempDir()} {
		if got, err := Authors(dir, link, ask); err != nil || len(got) > 0 {
			t.Errorf("%v, %v", got, err)
		}
	}
	if _, err := Authors(t.TempDir(), "../x", ask); err == nil {
		t.Error("a link id may lead out of the directory")
	}
}

// Numbers that name nobody are nobody's, and nothing goes wrong over them.
func TestAuthorsThatAreNone(t *testing.T) {
	c := credits{Authors: []string{"ann"}, AuthorOf: []byte{9, 1, 0x80}}
	if got := [4]string{c.next(), c.next(), c.next(), c.next()}; got != [4]string{"", "ann", "", ""} {
		t.Errorf("got %q", got)
	}
}
