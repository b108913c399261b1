package e2e

import (
	"os"
	"slices"
	"testing"

	"github.com/memsvc/memsvc/internal/agent/workspace"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
)

// TestEditInTheMomentOfAKill leaves the disk as kill -9 does right after the hub's text
// was exchanged for an edit that nobody had seen: at the next start the edit meets the
// hub's text as any edit does, and both arrive.
func TestEditInTheMomentOfAKill(t *testing.T) {
	_, ms := team(t, 2)
	a, b := ms[0], ms[1]
	old := note("x", "first\n\nmiddle\n\nlast")
	a.write("project_x.md", old)
	b.has("project_x.md", old)
	inStep(t, a, b)
	a.stop()
	theirs, mine := note("x", "first\n\nmiddle\n\nlast, by B"), note("x", "first, by A\n\nmiddle\n\nlast")
	b.write("project_x.md", theirs)
	b.settle()
	brief := func(text string) string { return string(memory.ETagOf([]byte(text))[:12]) }
	a.write("project_x.md", theirs)
	a.write(".msync-0123456789abcdef-"+brief(theirs)+"-"+brief(old)+"-project_x.md.tmp", mine)
	a.start()
	merged := note("x", "first, by A\n\nmiddle\n\nlast, by B")
	a.has("project_x.md", merged)
	b.has("project_x.md", merged)
	inStep(t, a, b)
	hubtest.Eventually(t, patience, "nothing else is in the directory", func() bool {
		entries, err := os.ReadDir(a.dir)
		must(t, err)
		return !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
			return !slices.Contains([]string{workspace.MarkerName, workspace.UploadsName, "project_x.md"}, e.Name())
		})
	})
}
