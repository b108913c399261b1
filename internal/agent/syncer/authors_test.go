package syncer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncer/synctest"
	"github.com/memsvc/memsvc/internal/memory"
)

// authors returns what a machine knows of who wrote the agreed texts.
func (m *machine) authors() map[memory.Path]string {
	m.w.t.Helper()
	st, err := m.state.Load(m.w.t.Context())
	if err != nil {
		m.w.t.Fatal(err)
	}
	out := map[memory.Path]string{}
	for p, b := range st.Baseline {
		if b.Author != "" {
			out[p] = b.Author
		}
	}
	return out
}

func (m *machine) wantAuthors(why string, want map[memory.Path]string) {
	m.w.t.Helper()
	if diff := cmp.Diff(want, m.authors()); diff != "" {
		m.w.t.Errorf("%s: %s: authors (-want +got):\n%s", m.name, why, diff)
	}
}

// TestAuthorsOfAgreedTexts: each machine knows who put the hub's texts there, whoever it
// was, and however the machine came by them.
func TestAuthorsOfAgreedTexts(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.remote.Principal, b.remote.Principal = "ann", "bob"
	w.hub.PutBy("cem", "listed.md", "there before\n")
	a.save("mine.md", "one\n")
	a.save("both.md", "1\n2\n3\n")
	w.settle(a, b)
	want := map[memory.Path]string{"listed.md": "cem", "mine.md": "ann", "both.md": "ann"}
	a.wantAuthors("first", want)
	b.wantAuthors("first", want)

	// The newest one counts, of several commits in one pull, and of a merge.
	w.hub.PutBy("cem", "mine.md", "two\n")
	w.hub.PutBy("dee", "mine.md", "three\n")
	a.save("both.md", "1 by a\n2\n3\n")
	b.save("both.md", "1\n2\n3 by b\n")
	a.sync()
	w.settle(a, b)
	want["mine.md"], want["both.md"] = "dee", "bob"
	a.wantAuthors("merged", want)
	b.wantAuthors("merged", want)

	// One text, put again by somebody else after another one.
	w.hub.PutBy("cem", "listed.md", "for a moment\n")
	w.hub.PutBy("eve", "listed.md", "there before\n")
	w.settle(a, b)
	want["listed.md"] = "eve"
	a.wantAuthors("the same text", want)

	// A push whose answer is lost.
	lost := true
	a.remote.Hook = func(op string, after bool) error {
		if op == "push" && after && lost {
			lost = false
			return fmt.Errorf("lost")
		}
		return nil
	}
	a.save("mine.md", "four\n")
	if err := a.syncErr(); !strings.Contains(err.Error(), "lost") {
		t.Fatal(err)
	}
	w.settle(a, b)
	want["mine.md"] = "ann"
	a.wantAuthors("a lost answer", want)
	b.wantAuthors("a lost answer", want)

	// What somebody else had put there already, byte for byte.
	w.hub.PutBy("cem", "mine.md", "five\n")
	a.save("mine.md", "five\n")
	w.settle(a, b)
	want["mine.md"] = "cem"
	a.wantAuthors("agreed", want)

	// An edit that has not left yet does not change who wrote the agreed text.
	a.gate.held = true
	a.save("mine.md", "six\n")
	a.sync()
	a.wantAuthors("before a push", want)
	a.gate.held = false
	w.settle(a, b)
	want["mine.md"] = "ann"
	a.wantAuthors("after it", want)

	w.hub.Put("mine.md", "seven\n") // by nobody in particular
	w.settle(a, b)
	delete(want, "mine.md")
	a.wantAuthors("an author that is not told", want)
}

// TestAuthorsAreLearntAgain: a lost state knows them after its first listing; the state of
// an older agent path by path, as things change, and all at once with a listing.
func TestAuthorsAreLearntAgain(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	a.remote.Principal = "ann"
	w.hub.PutBy("cem", "x.md", "one\n")
	a.save("y.md", "one\n")
	w.settle(a)
	want := map[memory.Path]string{"x.md": "cem", "y.md": "ann"}

	old := func() {
		st, err := a.state.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		u := syncer.Update{PutBaseline: map[memory.Path]syncer.BaseEntry{}}
		for p, b := range st.Baseline {
			b.Author = ""
			u.PutBaseline[p] = b
		}
		if err := a.state.Apply(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		a.restart()
	}
	old()
	w.settle(a)
	a.wantAuthors("an older agent's state", map[memory.Path]string{})
	w.hub.PutBy("dee", "x.md", "two\n")
	w.settle(a)
	a.wantAuthors("one change", map[memory.Path]string{"x.md": "dee"})
	old()
	w.hub.Oldest = 100
	w.hub.PutBy("eve", "z.md", "one\n")
	w.settle(a)
	want["x.md"], want["z.md"] = "dee", "eve"
	a.wantAuthors("a listing", want)

	a.state = synctest.NewState()
	a.restart()
	w.settle(a)
	a.wantAuthors("a lost state", want)
	if len(a.Files()) != 3 {
		t.Errorf("files: %v", a.Files())
	}
}

// TestAuthorsAreFit: a name is kept short, in one line, and not at all with a secret in it.
func TestAuthorsAreFit(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	w.hub.PutBy("ann\n\tof  the\u00a0team", "line.md", "x\n")
	w.hub.PutBy(strings.Repeat("é", 1000), "long.md", "x\n")
	w.hub.PutBy("ann "+synctest.Secret, "secret.md", "x\n")
	w.hub.PutBy("a\xffb", "bytes.md", "x\n")
	w.settle(a)
	a.wantAuthors("fit", map[memory.Path]string{"line.md": "ann of the team", "long.md": strings.Repeat("é", 128), "bytes.md": "ab"})
}
