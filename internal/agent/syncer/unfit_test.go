package syncer_test

import (
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// A hub that took what it should have refused does not get it onto the disk; the rest
// arrives, and so does the file once it is mended there.
func TestUnfitTextOfTheHub(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	a.save("known.md", "one\n")
	w.settle(a)
	bad := files{
		"bidi.md": "x \u202e y\n", "tag.md": "x \U000E0041\n", "zero.md": "x\x00\n", "utf8.md": "x\xff\n",
		"who.md": "---\nname: who\ntype: user\n---\nx\n", "known.md": "two \u202e\n",
	}
	for p, text := range bad {
		w.hub.Put(p, text)
	}
	w.hub.Put("good.md", "good\n")
	for range 3 {
		if r := a.sync(); r.Again != 0 || r.Pending != 0 {
			t.Errorf("%+v", r)
		}
		a.want(files{"good.md": "good\n", "known.md": "one\n"})
		refused := map[memory.Path]bool{}
		for _, h := range a.s.Status().Refused {
			refused[h.Path] = h.By == syncer.HeldByDisk && len(h.Violations) > 0
		}
		for p := range bad {
			if !refused[p] {
				t.Errorf("%s is not reported", p)
			}
		}
		a.restart()
	}
	for p := range bad {
		w.hub.Put(p, "mended\n")
	}
	w.settle(a)
	a.want(w.hub.Files())
	if st := a.s.Status(); len(st.Refused) != 0 || st.Phase != syncer.PhaseInSync {
		t.Errorf("%+v", st)
	}
}

// An agent that does not take a path of the hub pulls past it, by commits and by a listing,
// says so, and takes the file in once it is updated.
func TestPathThatThisAgentCannotHold(t *testing.T) {
	for _, name := range []string{"by commits", "by a listing"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.machine("a")
			a.remote.Older = func(p memory.Path) bool { return strings.HasPrefix(string(p), "new/") }
			if name == "by commits" {
				a.save("first.md", "one\n")
				w.settle(a)
			}
			w.hub.Put("new/kind.md", "of tomorrow\n")
			w.hub.Put("new/other.md", "of tomorrow\n")
			w.hub.Put("good.md", "good\n")
			for range 3 {
				a.sync()
				want := w.hub.Files()
				delete(want, "new/kind.md")
				delete(want, "new/other.md")
				a.want(want)
				refused := a.s.Status().Refused
				if len(refused) != 2 || refused[0].Path != `"new/kind.md"` || refused[0].By != syncer.HeldByAgent ||
					!strings.Contains(refused[0].Violations[0].Message, "this agent cannot hold a file of this name") {
					t.Fatalf("refused %+v", refused)
				}
				a.restart()
			}
			a.save("mine.md", "goes up\n") // and everything else goes on
			a.sync()
			if w.hub.Files()["mine.md"] != "goes up\n" {
				t.Error("an edit waits for a path that cannot be held")
			}
			w.hub.Put("new/other.md", "") // deleted there
			a.sync()
			if refused := a.s.Status().Refused; len(refused) != 1 {
				t.Errorf("what is gone is still told: %+v", refused)
			}
			a.remote.Older = nil // updated
			a.restart()
			w.settle(a)
			a.want(w.hub.Files())
			if st := a.s.Status(); len(st.Refused) != 0 || st.Phase != syncer.PhaseInSync {
				t.Errorf("%+v", st)
			}
		})
	}
}

// What no agent takes as a path is never written anywhere, and stays told, whatever it is.
func TestHostilePathOfTheHub(t *testing.T) {
	w := newWorld(t)
	a := w.machine("a")
	a.save("known.md", "one\n")
	w.settle(a)
	hostile := []memory.Path{"../up.md", "/etc/x.md", `a\\b.md`, ".hidden.md", "a//b.md", memory.Path(strings.Repeat("x", 5000) + ".md")}
	for range 2 { // by commits, and then in full
		for _, p := range hostile {
			w.hub.Put(p, "x\n")
		}
		w.hub.Put("good.md", "good\n")
		for range 2 {
			a.sync()
			a.want(files{"known.md": "one\n", "good.md": "good\n"})
			if n := len(a.s.Status().Refused); n != len(hostile) {
				t.Errorf("%d are told, want %d", n, len(hostile))
			}
			a.restart()
		}
		a.state.Lose()
		a.restart()
	}
}
