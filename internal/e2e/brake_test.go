package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/agent"
)

// run runs one command in this process and returns what it printed and its exit code.
func run(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	var buf bytes.Buffer
	code = agent.Main(context.Background(), agent.App{Args: args, Stdin: strings.NewReader(""), Stdout: &buf, Stderr: &buf})
	return buf.String(), code
}

// forty gives a machine forty small memories and waits until the other has them.
func forty(a, b *machine) {
	for i := range 40 {
		a.write(fmt.Sprintf("project_%02d.md", i), note(fmt.Sprint(i), "text"))
	}
	inStep(a.t, a, b)
	same(a.t, a, b)
}

// TestRootVanishes moves the directory away and back (D1, D2): nothing is deleted, and
// the edit made meanwhile elsewhere arrives.
func TestRootVanishes(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	forty(a, b)
	must(t, os.Rename(a.dir, a.dir+".away"))
	s := a.eventually("says that the directory is missing", func(s agent.LinkStatus) bool { return s.Phase == "no-root" })
	if s.Todo == "" || s.RootDetail == "" {
		t.Errorf("status does not say what is wrong and what to do: %+v", s)
	}
	b.write("project_00.md", note("0", "edited meanwhile"))
	b.settle()
	must(t, os.Rename(a.dir+".away", a.dir))
	a.has("project_00.md", note("0", "edited meanwhile"))
	inStep(t, a, b)
	same(t, a, b)
	historyOf(t, h).noDeletes()
}

// TestRootIsAnEmptyDirectory replaces the directory by an empty one, as an unplugged
// disk does with its mount point (D1).
func TestRootIsAnEmptyDirectory(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	forty(a, b)
	must(t, os.Rename(a.dir, a.dir+".away"))
	must(t, os.Mkdir(a.dir, 0o755))
	a.eventually("does not believe the empty directory", func(s agent.LinkStatus) bool { return s.Phase == "no-root" || s.Phase == "halted" })
	b.write("project_00.md", note("0", "edited meanwhile"))
	b.settle()
	must(t, os.RemoveAll(a.dir))
	must(t, os.Rename(a.dir+".away", a.dir))
	a.has("project_00.md", note("0", "edited meanwhile"))
	inStep(t, a, b)
	same(t, a, b)
	historyOf(t, h).noDeletes()
}

// TestRootIsEmptied deletes every file but not the directory (13.17), and decides both
// ways.
func TestRootIsEmptied(t *testing.T) {
	for _, decision := range []string{"restore", "accept-deletes"} {
		t.Run(decision, func(t *testing.T) {
			t.Parallel()
			h, ms := team(t, 2)
			a, b := ms[0], ms[1]
			forty(a, b)
			a.stop() // a cycle in the middle of it would see a few deletes, and send them
			for name := range a.files() {
				a.remove(name)
			}
			a.start()
			s := a.eventually("halts", func(s agent.LinkStatus) bool { return s.Halt != nil })
			if len(s.Halt.Missing) != 40 || !strings.Contains(s.Todo, "resume") {
				t.Errorf("halt names %d files; todo %q", len(s.Halt.Missing), s.Todo)
			}
			historyOf(t, h).noDeletes()
			a.stop() // the decision is made while no daemon runs
			out, code := run(t, "resume", "--"+decision, "--state-dir", a.state)
			if code != 0 {
				t.Fatalf("resume: exit %d: %s", code, out)
			}
			a.start()
			if decision == "restore" {
				a.has("project_39.md", note("39", "text"))
			} else {
				b.lacks("project_39.md")
			}
			inStep(t, a, b)
			same(t, a, b)
			if n := len(a.files()); decision == "restore" && n != 40 || decision != "restore" && n != 0 {
				t.Errorf("%d files after %s", n, decision)
			}
		})
	}
}

// TestRootComesBackHalfFull brings the directory back with 3 of 40 files (D2).
func TestRootComesBackHalfFull(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	forty(a, b)
	a.stop()
	for name := range a.files() {
		if name > "project_02.md" {
			a.remove(name)
		}
	}
	a.start()
	s := a.eventually("halts", func(s agent.LinkStatus) bool { return s.Halt != nil })
	if s.Halt.Of != 40 || len(s.Halt.Missing) != 37 {
		t.Errorf("halt: %d of %d", len(s.Halt.Missing), s.Halt.Of)
	}
	// What is not deleted goes on working, from the other side too.
	historyOf(t, h).noDeletes()
	if n := len(b.files()); n != 40 {
		t.Errorf("the other machine has %d files", n)
	}
}

// TestDirectoryUnderAnotherName replaces the directory by that of another link.
func TestDirectoryUnderAnotherName(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	forty(a, b)
	a.stop()
	b.stop()
	must(t, os.Rename(a.dir, a.dir+".away"))
	must(t, os.Rename(b.dir, a.dir)) // with b's marker
	a.remove("project_00.md")
	a.start()
	a.eventually("does not believe another link's directory", func(s agent.LinkStatus) bool { return s.Phase == "no-root" || s.Phase == "halted" })
	historyOf(t, h).noDeletes()
}
