package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// TestStateLost removes the state directory between two runs, with edits on both
// sides meanwhile (C18): no duplicate, no delete, no loss.
func TestStateLost(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	forty(a, b)
	a.stop()
	must(t, os.RemoveAll(a.state))
	a.write("project_00.md", note("0", "edited at A while its state was lost"))
	a.write("project_new.md", note("new", "made at A meanwhile"))
	b.write("project_01.md", note("1", "edited at B meanwhile"))
	b.remove("project_02.md")
	b.settle()
	hist := historyOf(t, h)
	before := hist.head()
	a.start()
	b.has("project_new.md", note("new", "made at A meanwhile"))
	a.has("project_01.md", note("1", "edited at B meanwhile"))
	a.lacks("project_02.md")
	a.settle()
	hubtest.Eventually(t, patience, "B has what A sent", func() bool { return cmp.Equal(a.files(), b.files()) })
	// What A edited without a baseline is either merged in or kept as a conflict.
	if a.read("project_00.md") != note("0", "edited at A while its state was lost") && len(a.status().Conflicts) != 1 {
		t.Errorf("the edit is gone: %q, %+v", a.read("project_00.md"), a.status().Conflicts)
	}
	if got := len(hist.deletes()); got != 1 {
		t.Errorf("deletes %v, want B's alone", hist.deletes())
	}
	if n := len(hist.files()); n != 40 {
		t.Errorf("the hub holds %d files, want 40", n)
	}
	if grown := hist.head() - before; grown > 2 {
		t.Errorf("%d revisions to start over, want at most the two of A's edits", grown)
	}
}

// TestStateDamaged writes rubbish over every file of a link's state.
func TestStateDamaged(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	forty(a, b)
	a.stop()
	files, err := os.ReadDir(a.state + "/links/" + a.link.ID())
	must(t, err)
	for _, f := range files {
		must(t, os.WriteFile(a.state+"/links/"+a.link.ID()+"/"+f.Name(), []byte("rubbish"), 0o600))
	}
	b.write("project_00.md", note("0", "edited at B"))
	b.settle()
	a.start()
	a.has("project_00.md", note("0", "edited at B"))
	inStep(t, a, b)
	same(t, a, b)
	historyOf(t, h).noDeletes()
}

// TestFirstSync brings 30 MB in 3,000 files to the hub and to another machine.
func TestFirstSync(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 30 MB; left out of -short")
	}
	h := hubtest.Start(t, hubtest.Options{SQLite: true})
	file := h.TokenFile("acme", "pay", "writer")
	a, b := newMachine(t, "A", h.GRPCAddr, file), newMachine(t, "B", h.GRPCAddr, file)
	for i := range 3000 {
		body := make([]byte, 0, 10<<10)
		for n := 0; len(body) < 10<<10; n++ {
			body = fmt.Appendf(body, "Line %d of memory %d tells where things are and why.\n", n, i)
		}
		a.write(fmt.Sprintf("d%02d/project_%04d.md", i%30, i), note(fmt.Sprint(i), string(body)))
	}
	start := time.Now()
	a.start()
	hubtest.Eventually(t, 2*time.Minute, "the hub has all", func() bool { s := a.status(); return s.InStep && s.Files == 3000 })
	up := time.Since(start)
	start = time.Now()
	b.start()
	hubtest.Eventually(t, 2*time.Minute, "B has all", func() bool { s := b.status(); return s.InStep && s.Files == 3000 })
	t.Logf("30 MB in 3,000 files: up in %v, down in %v", up.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
	if d := cmp.Diff(a.files(), b.files()); d != "" {
		t.Error("the two machines differ")
	}
}

// TestOneBadLinkStopsNoOther runs a link whose project the token may not see, one
// whose directory is missing, one with a dead hub and one that is well (C11).
func TestOneBadLinkStopsNoOther(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	file := h.TokenFile("acme", "pay", "writer")
	m := newMachine(t, "A", h.GRPCAddr, file)
	b := newMachine(t, "B", h.GRPCAddr, file)
	bad := func(project, hub, dir string) agent.Link {
		l := m.link
		l.Project, l.Hub, l.Dir = project, hub, dir
		return l
	}
	forbidden, dead := t.TempDir(), t.TempDir()
	links := []agent.Link{
		bad("other", h.GRPCAddr, forbidden),
		bad("dead", "127.0.0.1:1", dead),
		m.link,
	}
	must(t, os.WriteFile(forbidden+"/project_x.md", []byte(note("x", "y")), 0o644))
	m.start()
	must(t, m.d.Apply(links))
	b.start()
	m.write("project_x.md", note("x", "goes on"))
	b.has("project_x.md", note("x", "goes on"))
	hubtest.Eventually(t, patience, "each says how it is", func() bool {
		s := m.d.Status()
		return len(s.Links) == 3 && s.Links[0].Phase == agent.PhaseStopped && s.Links[1].Phase == agent.PhaseOffline && s.Links[2].Phase == "in-sync"
	})
	b.write("project_x.md", note("x", "and back"))
	m.has("project_x.md", note("x", "and back"))
}

// TestPurgedProjectStaysPurged purges a project under running agents: they stop, say
// so, keep their files and do not make it again.
func TestPurgedProjectStaysPurged(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	token := h.TokenFile("acme", "", "writer") // may make projects
	a := newMachine(t, "A", h.GRPCAddr, token)
	a.start()
	a.write("project_x.md", note("x", "old"))
	inStep(t, a)
	hist := historyOf(t, h)
	must(t, hist.c.PurgeProject(t.Context(), project))
	a.write("project_x.md", note("x", "edited"))
	s := a.eventually("stops", func(s agent.LinkStatus) bool { return s.Phase == agent.PhaseStopped })
	if !strings.Contains(s.LastError.Message, "does not know project") {
		t.Errorf("error %q", s.LastError.Message)
	}
	projects, err := hist.c.Projects(t.Context(), project.Team)
	must(t, err)
	if len(projects) != 0 {
		t.Errorf("the project is back: %v", projects)
	}
	if got := a.read("project_x.md"); got != note("x", "edited") {
		t.Errorf("the file is %q", got)
	}
	// A person makes it again, and the files are offered to it.
	_, err = hist.c.CreateProject(t.Context(), project)
	must(t, err)
	a.stop()
	a.start()
	inStep(t, a)
	if got := hist.files()["project_x.md"]; got != note("x", "edited") {
		t.Errorf("the hub has %q", got)
	}
}

// TestManyLinksOnOneStream runs three projects of one hub in one daemon.
func TestManyLinksOnOneStream(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	file := h.TokenFile("acme", "", "writer")
	var daemons [2]*machine
	var dirs [2][3]string
	for i := range daemons {
		daemons[i] = newMachine(t, fmt.Sprint(i), h.GRPCAddr, file)
		daemons[i].start()
		var links []agent.Link
		for j := range 3 {
			dirs[i][j] = t.TempDir()
			l := daemons[i].link
			l.Project, l.Dir = fmt.Sprintf("p%d", j), dirs[i][j]
			links = append(links, l)
		}
		h.Token("acme", "p0", "reader") // makes the projects, as an admin would
		h.Token("acme", "p1", "reader")
		h.Token("acme", "p2", "reader")
		must(t, daemons[i].d.Apply(links))
	}
	for j := range 3 {
		must(t, os.WriteFile(dirs[0][j]+"/project_x.md", []byte(note("x", fmt.Sprint(j))), 0o644))
	}
	for j := range 3 {
		hubtest.Eventually(t, patience, "each project's file arrives in its directory", func() bool {
			b, _ := os.ReadFile(dirs[1][j] + "/project_x.md")
			return string(b) == note("x", fmt.Sprint(j))
		})
	}
	if n := len(daemons[1].d.Status().Hubs); n != 1 {
		t.Errorf("%d connections, want one for all links", n)
	}
}

// TestTwoDirectoriesOfOneProject links two directories of one machine to one project.
func TestTwoDirectoriesOfOneProject(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	m := newMachine(t, "A", h.GRPCAddr, h.TokenFile("acme", "pay", "writer"))
	m.start()
	second := m.link
	second.Dir = t.TempDir()
	must(t, m.d.Apply([]agent.Link{m.link, second}))
	for i := range 5 {
		text := note("x", fmt.Sprint(i))
		from, to := m.dir, second.Dir
		if i%2 == 1 {
			from, to = to, from
		}
		if i == 0 {
			m.write("project_x.md", text) // one that is new appears whole
		} else {
			must(t, os.WriteFile(from+"/project_x.md", []byte(text), 0o644))
		}
		hubtest.Eventually(t, patience, "the other directory follows", func() bool {
			b, _ := os.ReadFile(to + "/project_x.md")
			return string(b) == text
		})
		m.settle2()
	}
	if n := historyOf(t, h).head(); n != 5 {
		t.Errorf("%d revisions for 5 edits", n)
	}
}

// settle2 settles a machine that runs several links.
func (m *machine) settle2() {
	m.t.Helper()
	hubtest.Eventually(m.t, patience, "all links in step", func() bool {
		m.d.Settle(m.t.Context())
		return m.d.Status().InStep
	})
}
