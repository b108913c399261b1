//go:build linux

package killtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/memory"
)

// damages are ways in which a state directory comes back from a bad night. They get
// the journal of a link.
var damages = map[string]struct {
	do    func(t *testing.T, journal string)
	silly bool // nobody can tell that something was there
}{
	"cut":  {do: func(t *testing.T, j string) { cut(t, j, 7) }, silly: true},
	"half": {do: func(t *testing.T, j string) { cut(t, j, size(t, j)/2) }, silly: true},
	// In what was promised for certain: the last records may be ones that nobody was told of.
	"garbage": {do: func(t *testing.T, j string) { overwrite(t, j, 40, 200) }},
	"header":  {do: func(t *testing.T, j string) { overwrite(t, j, 0, 16) }},
	"empty":   {do: func(t *testing.T, j string) { cut(t, j, size(t, j)) }},
	"gone":    {do: func(t *testing.T, j string) { must(t, os.RemoveAll(filepath.Dir(j))) }, silly: true},
	"nothing": {do: func(t *testing.T, j string) { must(t, os.RemoveAll(filepath.Dir(filepath.Dir(filepath.Dir(j))))) }, silly: true},
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func size(t *testing.T, name string) int64 {
	t.Helper()
	fi, err := os.Stat(name)
	must(t, err)
	return fi.Size()
}

func cut(t *testing.T, name string, n int64) {
	t.Helper()
	must(t, os.Truncate(name, size(t, name)-n))
}

func overwrite(t *testing.T, name string, at, n int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	must(t, err)
	junk := make([]byte, n)
	rnd := rand.New(rand.NewPCG(11, 11))
	for i := range junk {
		junk[i] = byte(rnd.Uint32())
	}
	_, err = f.WriteAt(junk, at)
	must(t, err)
	must(t, f.Close())
}

// TestStateDamaged kills agents, damages their state in every way, lets both sides go
// on meanwhile, and starts them again: they say what they found, delete nothing, send
// nothing twice and lose nothing.
func TestStateDamaged(t *testing.T) {
	t.Parallel()
	h := newHub(t, "")
	rnd := rand.New(rand.NewPCG(12, 12))
	anna := newMachine(t, h, "anna")
	anna.start()
	for _, p := range []string{"same", "stale", "gone"} {
		anna.write("project_"+p+".md", newText(rnd, p, 1))
	}
	var hurt []*machine
	all := []*machine{anna}
	for name := range damages {
		m := newMachine(t, h, name)
		anna.write("project_edited_"+name+".md", newText(rnd, name, 1))
		m.start()
		hurt, all = append(hurt, m), append(all, m)
	}
	waitInStep(t, h, all...)

	for _, m := range hurt {
		m.kill()
	}
	anna.write("project_stale.md", newText(rnd, "stale", 2))
	anna.remove("project_gone.md")
	waitInStep(t, h, anna)
	edits := map[string]string{}
	for _, m := range hurt {
		edited, fresh := "project_edited_"+m.name+".md", "project_fresh_"+m.name+".md"
		edits[edited], edits[fresh] = newText(rnd, m.name, 2), newText(rnd, m.name, 3)
		m.write(edited, edits[edited])
		m.write(fresh, edits[fresh])
		journals, err := filepath.Glob(filepath.Join(m.state, "links", "*", "journal"))
		must(t, err)
		if len(journals) != 1 {
			t.Fatalf("%s: journals %v", m.name, journals)
		}
		damages[m.name].do(t, journals[0])
	}
	for _, m := range hurt {
		m.start()
	}
	waitEqual(t, h, true, all...)
	for _, m := range hurt {
		log := m.process().out.String()
		if says := strings.Contains(log, "damaged"); !says && !damages[m.name].silly {
			t.Errorf("%s: the agent does not say that its state is damaged: %s", m.name, log)
		}
		for _, c := range m.status().Links[0].Conflicts {
			if c.Path != "project_edited_"+m.name+".md" {
				t.Errorf("%s: a conflict at %s, which was not edited here", m.name, c.Path)
			}
			if _, errOut, code := call(t, "memsync-agent", "conflicts", "resolve", c.ID, "--ours", "--state-dir", m.state); code != 0 {
				t.Errorf("%s: resolve %s: %s", m.name, c.Path, errOut)
			}
		}
	}
	got := waitInStep(t, h, all...)
	for p, text := range edits {
		if got[p] != text {
			t.Errorf("%s: the edit is lost; the hub holds %s", p, excerpt(got[p]))
		}
	}
	if want := 2 + 2*len(hurt); len(got) != want {
		t.Errorf("%d files, want %d", len(got), want)
	}
	times := map[string]int{}
	for _, c := range h.history() {
		for _, ch := range c.Changes {
			switch {
			case ch.Kind != memory.Delete:
				times[fmt.Sprintf("%s %.8s", ch.Path, ch.ETag)]++
			case ch.Path != "project_gone.md":
				t.Errorf("revision %d deletes %s, which nobody deleted", c.Revision, ch.Path)
			}
		}
	}
	for what, n := range times {
		if n > 1 {
			t.Errorf("sent %d times: %s", n, what)
		}
	}
}
