//go:build linux

package killtest

import (
	"math/rand/v2"
	"testing"
)

// TestPropagates holds the sanity of everything else here: edits, renames and deletes
// arrive between two processes.
func TestPropagates(t *testing.T) {
	t.Parallel()
	h := newHub(t, "")
	a, b := newMachine(t, h, "anna"), newMachine(t, h, "ben")
	a.start()
	b.start()
	waitInStep(t, h, a, b)
	rnd := rand.New(rand.NewPCG(1, 1))

	text := newText(rnd, "first", 1)
	a.write("project_first.md", text)
	b.waitText(patience, "project_first.md", text)
	edited := newText(rnd, "first", 2)
	b.write("project_first.md", edited)
	a.waitText(patience, "project_first.md", edited)
	deep := newText(rnd, "deep", 1)
	a.write("x/y/z/project_deep.md", deep)
	b.waitText(patience, "x/y/z/project_deep.md", deep)
	b.remove("project_first.md")
	a.waitGone(patience, "project_first.md")
	waitInStep(t, h, a, b)
	if n := len(h.history()); n != 4 {
		t.Errorf("%d revisions for four edits", n)
	}
}
