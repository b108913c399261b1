package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// apart stops the hub, lets both sides do something, and brings them together again.
func apart(t *testing.T, h *hubtest.Hub, do func(), ms ...*machine) {
	t.Helper()
	inStep(t, ms...)
	h.Stop()
	do()
	h.StartAgain()
}

// TestDeleteMeetsEdit deletes here what is edited there (C5): the edit stays, whoever
// was first.
func TestDeleteMeetsEdit(t *testing.T) {
	for _, first := range []string{"delete", "edit"} {
		t.Run(first+" first", func(t *testing.T) {
			t.Parallel()
			h, ms := team(t, 2)
			a, b := ms[0], ms[1]
			a.write("project_x.md", note("x", "old"))
			b.has("project_x.md", note("x", "old"))
			inStep(t, a, b)
			late := b
			if first == "edit" {
				late = a
			}
			late.stop()
			if late == b {
				a.remove("project_x.md")
				a.settle()
				b.write("project_x.md", note("x", "edited"))
			} else {
				b.write("project_x.md", note("x", "edited"))
				b.settle()
				a.remove("project_x.md")
			}
			late.start()
			a.has("project_x.md", note("x", "edited"))
			b.has("project_x.md", note("x", "edited"))
			inStep(t, a, b)
			same(t, a, b)
			if got := historyOf(t, h).files()["project_x.md"]; got != note("x", "edited") {
				t.Errorf("the hub has %q", got)
			}
		})
	}
}

// TestOfflineEditsOfBothSides edits the same lines while the hub is away (C3): a
// conflict that keeps both texts, and different places: a merge.
func TestOfflineEditsOfBothSides(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	a.write("project_same.md", note("same", "one\ntwo\nthree"))
	a.write("project_apart.md", note("apart", "one\ntwo\nthree\nfour\nfive"))
	inStep(t, a, b)
	apart(t, h, func() {
		a.write("project_same.md", note("same", "one\nA\nthree"))
		b.write("project_same.md", note("same", "one\nB\nthree"))
		a.write("project_apart.md", note("apart", "A\ntwo\nthree\nfour\nfive"))
		b.write("project_apart.md", note("apart", "one\ntwo\nthree\nfour\nB"))
	}, a, b)
	merged := note("apart", "A\ntwo\nthree\nfour\nB")
	a.has("project_apart.md", merged)
	b.has("project_apart.md", merged)
	var loser *machine
	hubtest.Eventually(t, patience, "a conflict on one side", func() bool {
		for _, m := range ms {
			if len(m.status().Conflicts) == 1 {
				loser = m
			}
		}
		return loser != nil
	})
	a.settle()
	b.settle()
	same(t, a, b)
	id := loser.status().Conflicts[0].ID
	// Its text is on the hub too, for whoever else may resolve it.
	hist := historyOf(t, h)
	onHub := func() []client.Conflict {
		all, err := hist.c.Conflicts(t.Context(), project)
		must(t, err)
		return all
	}
	hubtest.Eventually(t, patience, "the hub knows of the conflict", func() bool { return len(onHub()) == 1 })
	if got, want := string(onHub()[0].Text), note("same", "one\n"+loser.name+"\nthree"); got != want {
		t.Errorf("the hub keeps %q, want %q", got, want)
	}
	loser.stop()
	out, code := run(t, "conflicts", "show", id, "--state-dir", loser.state)
	if code != 0 || !strings.Contains(out, "\nA\n") || !strings.Contains(out, "\nB\n") {
		t.Errorf("exit %d; both texts must be shown:\n%s", code, out)
	}
	if out, code = run(t, "conflicts", "resolve", id, "--ours", "--state-dir", loser.state); code != 0 {
		t.Fatalf("resolve: exit %d: %s", code, out)
	}
	loser.start()
	want := note("same", "one\nA\nthree")
	if loser == b {
		want = note("same", "one\nB\nthree")
	}
	a.has("project_same.md", want)
	b.has("project_same.md", want)
	inStep(t, a, b)
}

// TestConflictResolvedWhileRunning resolves through the daemon: the hub forgets it too.
func TestConflictResolvedWhileRunning(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	a.write("project_x.md", note("x", "base"))
	inStep(t, a, b)
	apart(t, h, func() {
		a.write("project_x.md", note("x", "A"))
		b.write("project_x.md", note("x", "B"))
	}, a, b)
	var loser *machine
	hubtest.Eventually(t, patience, "a conflict on one side", func() bool {
		for _, m := range ms {
			if len(m.status().Conflicts) == 1 {
				loser = m
			}
		}
		return loser != nil
	})
	hist := historyOf(t, h)
	count := func() int {
		all, err := hist.c.Conflicts(t.Context(), project)
		must(t, err)
		return len(all)
	}
	hubtest.Eventually(t, patience, "the hub knows of the conflict", func() bool { return count() == 1 })
	must(t, loser.d.Resolve(t.Context(), loser.link.ID(), "project_x.md", "theirs", nil))
	inStep(t, a, b)
	hubtest.Eventually(t, patience, "the hub knows that it is resolved", func() bool { return count() == 0 })
}

// TestConflictReachesAFixedPoint makes three machines edit the same line at once (C2):
// the history stops growing.
func TestConflictReachesAFixedPoint(t *testing.T) {
	h, ms := team(t, 3)
	ms[0].write("project_x.md", note("x", "base"))
	inStep(t, ms...)
	for round := range 5 {
		for _, m := range ms {
			m.write("project_x.md", note("x", fmt.Sprintf("%s in round %d", m.name, round)))
		}
	}
	for _, m := range ms {
		m.settle()
	}
	hist := historyOf(t, h)
	hubtest.Eventually(t, patience, "all texts equal", func() bool {
		for _, m := range ms {
			m.settle()
		}
		return ms[0].read("project_x.md") == ms[1].read("project_x.md") && ms[1].read("project_x.md") == ms[2].read("project_x.md")
	})
	before := hist.head()
	for range 5 {
		for _, m := range ms {
			m.settle()
		}
	}
	if got := hist.head(); got != before {
		t.Errorf("the history grew from %d to %d with nobody editing", before, got)
	}
}

// TestIndexNeverConflicts appends entries to MEMORY.md on both sides at once (C1, C6).
func TestIndexNeverConflicts(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	a.write("project_base.md", note("base", "x"))
	a.write("MEMORY.md", "- [base](project_base.md) — x\n")
	inStep(t, a, b)
	apart(t, h, func() {
		for i, m := range ms {
			name := fmt.Sprintf("project_%d.md", i)
			m.write(name, note(name, "x"))
			m.write("MEMORY.md", fmt.Sprintf("- [base](project_base.md) — x\n- [%d](%s) — by %s\n", i, name, m.name))
		}
	}, a, b)
	hubtest.Eventually(t, patience, "both entries on both sides", func() bool {
		for _, m := range ms {
			for i := range 2 {
				if !strings.Contains(m.read("MEMORY.md"), fmt.Sprintf("(project_%d.md)", i)) {
					return false
				}
			}
		}
		return true
	})
	inStep(t, a, b)
	same(t, a, b)
}

// TestDeletedWhileAwayIsDropped deletes on A while B is off; B, which changed nothing,
// must not bring it back (D7, D15).
func TestDeletedWhileAwayIsDropped(t *testing.T) {
	h, ms := team(t, 3)
	a, b, c := ms[0], ms[1], ms[2]
	a.write("project_x.md", note("x", "old"))
	a.write("project_y.md", note("y", "stays"))
	inStep(t, ms...)
	b.stop()
	a.remove("project_x.md")
	c.lacks("project_x.md")
	b.start()
	b.lacks("project_x.md")
	inStep(t, ms...)
	same(t, ms...)
	if d := historyOf(t, h).deletes(); len(d) != 1 {
		t.Errorf("deletes on the hub: %v, want one", d)
	}
}

// TestTwoAgentsOnOneDirectory starts a second agent with a state of its own on the
// same directory (C9): it refuses, and the first goes on.
func TestTwoAgentsOnOneDirectory(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	inStep(t, a, b)
	second := newMachine(t, "second", h.GRPCAddr, a.link.TokenFile)
	must(t, os.Remove(second.dir))
	must(t, os.Symlink(a.dir, second.dir)) // by another path, too
	second.start()
	s := second.eventually("says that the directory is taken", func(s agent.LinkStatus) bool { return s.LastError != nil })
	if !strings.Contains(s.LastError.Message, "another memsync-agent") {
		t.Errorf("error %q", s.LastError.Message)
	}
	a.write("project_x.md", note("x", "by the first"))
	b.has("project_x.md", note("x", "by the first"))
	if n := len(historyOf(t, h).commits("")); n != 1 {
		t.Errorf("%d commits, want the first agent's alone", n)
	}
	// When the first one ends, the second takes over.
	a.stop()
	second.eventually("takes over", func(s agent.LinkStatus) bool { return s.LastError == nil && s.InStep })
}
