package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// reports counts the audit log's records of conflicts that the hub did not take.
func reports(t *testing.T, h *hubtest.Hub) int {
	t.Helper()
	n := 0
	all, err := historyOf(t, h).c.Audit(t.Context(), "acme", 1000)
	must(t, err)
	for _, r := range all {
		if r.Action == "conflict.report.refused" {
			n++
		}
	}
	return n
}

// TestReadersConflictIsReportedOnce: a reader's agent whose conflict the hub does not take
// says so once, here and there, however often others commit, and tells that the text is on
// this machine only. With a writer's token in its file it is kept, by itself.
func TestReadersConflictIsReportedOnce(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	a := newMachine(t, "A", h.GRPCAddr, h.TokenFile("acme", "pay", "writer"))
	b := newMachine(t, "B", h.GRPCAddr, h.TokenFile("acme", "pay", "reader"))
	a.start()
	b.start()
	a.write("project_x.md", note("x", "base"))
	inStep(t, a, b)
	b.write("project_x.md", note("x", "of the reader"))
	b.eventually("may not write", func(s agent.LinkStatus) bool { return s.Phase == agent.PhaseStopped && s.Pending == 1 })
	a.write("project_x.md", note("x", "of the writer"))
	b.has("project_x.md", note("x", "of the writer"))
	alone := func(s agent.LinkStatus) bool {
		return len(s.Conflicts) == 1 && s.Conflicts[0].OnlyHere == "PERMISSION_DENIED"
	}
	b.eventually("says that its text is here only", alone)
	if n := reports(t, h); n != 1 {
		t.Errorf("%d records of a refused report", n)
	}
	for _, text := range []string{"1", "2", "3", "4"} {
		a.write("project_y.md", note("y", text))
		b.has("project_y.md", note("y", text))
		b.settle()
	}
	if n := reports(t, h); n != 1 {
		t.Errorf("%d records of a refused report after more commits", n)
	}
	if n := strings.Count(b.log.String(), "the texts of conflicts stay on this machine alone"); n != 1 || !alone(b.status()) {
		t.Errorf("said %d times; %+v\n%s", n, b.status().Conflicts, tail(b.log))
	}

	text, err := os.ReadFile(a.link.TokenFile)
	must(t, err)
	must(t, os.WriteFile(b.link.TokenFile, text, 0o600))
	a.write("project_y.md", note("y", "5"))
	b.eventually("the hub keeps its text", func(s agent.LinkStatus) bool { return len(s.Conflicts) == 1 && s.Conflicts[0].OnlyHere == "" })
	kept, err := historyOf(t, h).c.Conflicts(t.Context(), project)
	must(t, err)
	if len(kept) != 1 || string(kept[0].Text) != note("x", "of the reader") {
		t.Errorf("the hub keeps %+v", kept)
	}
}

// TestRefusedConflictTextIsMarked: status and lists say by which rule a conflict's text
// stays on its machine; a policy that lets it pass has it kept.
func TestRefusedConflictTextIsMarked(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	a.write("project_x.md", note("x", "base"))
	apart(t, h, func() {
		a.write("project_x.md", note("x", "A"))
		b.write("project_x.md", note("x", "B "+githubToken))
	}, a, b)
	marked := b.eventually("says that its text is here only", func(s agent.LinkStatus) bool {
		return len(s.Conflicts) == 1 && s.Conflicts[0].OnlyHere == "github-pat"
	})
	b.stop()
	for _, args := range [][]string{{"status"}, {"conflicts", "list"}} {
		out, _ := agentWith("", append(args, "--state-dir", b.state)...)
		if !strings.Contains(out, marked.Conflicts[0].ID) || !strings.Contains(out, "its text is on this machine only: github-pat") {
			t.Errorf("%v: %s", args, out)
		}
	}
	b.start()
	admin := historyOf(t, h).c
	policy, err := admin.Policy(t.Context(), "acme")
	must(t, err)
	policy.AllowedRules = []string{"github-pat"}
	_, err = admin.UpdatePolicy(t.Context(), policy)
	must(t, err)
	b.eventually("the hub keeps its text", func(s agent.LinkStatus) bool { return len(s.Conflicts) == 1 && s.Conflicts[0].OnlyHere == "" })
	kept, err := admin.Conflicts(t.Context(), project)
	must(t, err)
	if len(kept) != 1 {
		t.Errorf("the hub keeps %+v", kept)
	}
}
