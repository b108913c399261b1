package syncer_test

import (
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
