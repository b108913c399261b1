package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent"
)

// TestClonedHome copies a machine with its agent's state, as an image of a disk or a copied
// home directory does, right when it has something unsent. Two agents with one identity
// and one baseline are then two machines like others: nothing is lost, doubled or deleted
// that nobody deleted, also when the copy sleeps for a while.
func TestClonedHome(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	forty(a, b)
	a.stop()
	a.write("project_00.md", note("0", "unsent when it was copied"))
	a.write("project_new.md", note("new", "unsent when it was copied"))

	// The path of the directory is part of a link's id; on another machine it is the same.
	c := newMachine(t, "C", h.GRPCAddr, a.link.TokenFile)
	must(t, os.CopyFS(c.dir, os.DirFS(a.dir)))
	must(t, os.MkdirAll(filepath.Join(c.state, "links", c.link.ID()), 0o700))
	must(t, os.CopyFS(filepath.Join(c.state, "links", c.link.ID()), os.DirFS(filepath.Join(a.state, "links", a.link.ID()))))
	id, err := os.ReadFile(filepath.Join(a.state, "agent.id"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(c.state, "agent.id"), id, 0o600))

	a.start()
	b.has("project_new.md", note("new", "unsent when it was copied"))
	a.write("project_01.md", note("1", "edited at A"))
	a.remove("project_02.md")
	b.write("project_03.md", note("3", "edited at B"))
	b.remove("project_04.md")
	inStep(t, a, b)
	c.write("project_05.md", note("5", "edited at C"))
	c.remove("project_06.md")
	c.start()
	inStep(t, a, b, c)
	a.write("project_07.md", note("7", "edited at A"))
	c.write("project_08.md", note("8", "edited at C"))
	c.has("project_07.md", note("7", "edited at A"))
	a.has("project_08.md", note("8", "edited at C"))
	inStep(t, a, b, c)
	same(t, a, b, c)
	hist := historyOf(t, h)
	if d := cmp.Diff(a.files(), hist.files()); d != "" {
		t.Errorf("machine and hub differ:\n%s", d)
	}
	want := map[string]string{
		"project_00.md": "unsent when it was copied", "project_01.md": "edited at A", "project_03.md": "edited at B", "project_05.md": "edited at C",
	}
	for name, text := range want {
		if got := c.read(name); got != note(name[8:9], text) && got != note(name[9:10], text) {
			t.Errorf("%s is %q", name, got)
		}
	}
	if n := len(hist.deletes()); n != 3 {
		t.Errorf("deletes %v, want the three that somebody made", hist.deletes())
	}
	for _, m := range []*machine{a, b, c} {
		if s := m.status(); len(s.Conflicts) > 0 || s.Phase != agent.PhaseInSync {
			t.Errorf("%s: %s %+v", m.name, s.Phase, s.Conflicts)
		}
	}
}
