package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// TestRefusedRenameNamesBothPaths: a file that was renamed and must stay here leaves the
// hub's under its old path, and whoever looks is told so.
func TestRefusedRenameNamesBothPaths(t *testing.T) {
	_, ms := team(t, 2)
	a, b := ms[0], ms[1]
	text := note("ra", strings.Repeat("one of many lines that stay\n", 20))
	a.write("project_ra.md", text)
	b.has("project_ra.md", text)
	inStep(t, a, b)
	a.stop()
	must(t, os.Rename(a.path("project_ra.md"), a.path("project_rb.md")))
	a.write("project_rb.md", text+"token "+githubToken+"\n")
	a.start()
	s := a.eventually("refuses the rename", func(s agent.LinkStatus) bool { return len(s.Refusals) == 1 })
	if r := s.Refusals[0]; r.Path != "project_rb.md" || r.RenamedFrom != "project_ra.md" {
		t.Errorf("refused %+v", r)
	}
	b.settle()
	b.has("project_ra.md", text)
	hubtest.Eventually(t, patience, "the log names both", func() bool {
		return strings.Contains(a.log.String(), "still_on_the_hub=project_ra.md")
	})
	a.stop()
	out, _ := agentWith("", "status", "--state-dir", a.state)
	if !strings.Contains(out, "refused: project_rb.md") || !strings.Contains(out, "renamed from project_ra.md: the hub has it there until project_rb.md is sent") {
		t.Errorf("status: %s", out)
	}
	a.start()
	a.write("project_rb.md", text)
	b.has("project_rb.md", text)
	b.lacks("project_ra.md")
	a.eventually("nothing is refused", func(s agent.LinkStatus) bool { return len(s.Refusals) == 0 })
}
