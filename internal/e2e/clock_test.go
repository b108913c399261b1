package e2e

import (
	"os"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// wrong sets a machine's clock by an offset: the agent's, and the times that its disk
// gives to files written with writeAt.
func wrong(by time.Duration) func(*agent.DaemonOptions) {
	return func(o *agent.DaemonOptions) { o.Now = func() time.Time { return time.Now().Add(by) } }
}

// writeAt saves a file on a disk whose clock is off. It appears with its time: who looks in
// between would see it with that of this machine.
func (m *machine) writeAt(name, text string, by time.Duration) {
	m.t.Helper()
	aside := m.path(".new")
	must(m.t, os.WriteFile(aside, []byte(text), 0o644))
	at := time.Now().Add(by)
	must(m.t, os.Chtimes(aside, at, at))
	must(m.t, os.Rename(aside, m.path(name)))
}

func (m *machine) mtime(name string) time.Time {
	m.t.Helper()
	fi, err := os.Stat(m.path(name))
	must(m.t, err)
	return fi.ModTime()
}

// TestWrongClocks has machines an hour ahead, an hour behind, and in the year 2001
// (C7): the newest text by the hub's order wins, whatever the clocks say, and a
// memory's age is right on every machine by that machine's own clock.
func TestWrongClocks(t *testing.T) {
	in2001 := time.Until(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC))
	for _, tc := range []struct {
		name string
		a, b time.Duration
	}{
		{"an hour apart each way", time.Hour, -time.Hour},
		{"one in the year 2001", in2001, 0},
		{"the other in the year 2001", 0, in2001},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := hubtest.Start(t, hubtest.Options{})
			file := h.TokenFile("acme", "pay", "writer")
			a, b := newMachine(t, "A", h.GRPCAddr, file, wrong(tc.a)), newMachine(t, "B", h.GRPCAddr, file, wrong(tc.b))
			a.start()
			b.start()
			inStep(t, a, b)
			a.writeAt("project_x.md", note("x", "first, by A"), tc.a)
			b.has("project_x.md", note("x", "first, by A"))
			if got, want := b.mtime("project_x.md"), time.Now().Add(tc.b); want.Sub(got).Abs() > time.Minute {
				t.Errorf("on B the memory is %v old, want just written", want.Sub(got))
			}
			inStep(t, a, b)
			b.writeAt("project_x.md", note("x", "second, by B"), tc.b)
			a.has("project_x.md", note("x", "second, by B"))
			inStep(t, a, b)
			a.writeAt("project_x.md", note("x", "third, by A"), tc.a)
			b.has("project_x.md", note("x", "third, by A"))
			inStep(t, a, b)
			same(t, a, b)
			if got := historyOf(t, h).commits("project_x.md"); len(got) != 3 {
				t.Errorf("%d commits, want 3", len(got))
			}
		})
	}
}

// TestFileFromTheFuture saves a file whose time lies a year ahead: the hub clamps it,
// and it does not win over what is written later.
func TestFileFromTheFuture(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	inStep(t, a, b)
	a.writeAt("project_x.md", note("x", "from the future"), 365*24*time.Hour)
	b.has("project_x.md", note("x", "from the future"))
	inStep(t, a, b)
	if got := b.mtime("project_x.md"); time.Until(got) > time.Minute {
		t.Errorf("on B the file lies %v in the future", time.Until(got))
	}
	b.write("project_x.md", note("x", "from now"))
	a.has("project_x.md", note("x", "from now"))
	inStep(t, a, b)
	if n := len(historyOf(t, h).commits("")); n != 2 {
		t.Errorf("%d commits, want 2", n)
	}
}

// TestOldFilesKeepTheirAge syncs a file that is a year old (SPEC 3.5).
func TestOldFilesKeepTheirAge(t *testing.T) {
	_, ms := team(t, 2)
	a, b := ms[0], ms[1]
	inStep(t, a, b)
	a.writeAt("project_x.md", note("x", "old"), -365*24*time.Hour)
	b.has("project_x.md", note("x", "old"))
	if d := a.mtime("project_x.md").Sub(b.mtime("project_x.md")).Abs(); d > 2*time.Second {
		t.Errorf("the ages differ by %v", d)
	}
}
