package e2e

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/hubtest"
)

func (m *machine) names() []string {
	var names []string
	for n := range m.files() {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// TestCaseOnlyRename renames Note.md to note.md (N1): one file everywhere, and its
// history goes on.
func TestCaseOnlyRename(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	a.write("Note.md", note("n", "text"))
	b.has("Note.md", note("n", "text"))
	inStep(t, a, b)
	must(t, os.Rename(a.path("Note.md"), a.path("note.md")))
	b.has("note.md", note("n", "text"))
	b.lacks("Note.md")
	inStep(t, a, b)
	same(t, a, b)
	hist := historyOf(t, h)
	hist.noDeletes()
	if commits := hist.commits("note.md"); len(commits) != 2 {
		t.Errorf("the history of note.md has %d commits, want the one before the rename too", len(commits))
	}
}

// TestSecondSpellingIsRefused writes Note.md beside note.md (N2): the second stays on
// its machine, and nobody loses anything.
func TestSecondSpellingIsRefused(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	a.write("note.md", note("n", "first"))
	b.has("note.md", note("n", "first"))
	inStep(t, a, b)
	a.write("Note.md", note("n", "second"))
	s := a.eventually("refuses the second spelling", func(s agent.LinkStatus) bool { return len(s.Refusals) == 1 })
	if r := s.Refusals[0]; r.By != "name" || r.Path != "Note.md" {
		t.Errorf("refusal %+v", r)
	}
	a.settle()
	if got := a.names(); len(got) != 2 {
		t.Errorf("files on the author's machine: %v", got)
	}
	if got := historyOf(t, h).files(); len(got) != 1 || got["note.md"] != note("n", "first") {
		t.Errorf("the hub holds %v", got)
	}
}

// TestTheHubsSpellingGoesOn has two spellings of a name on one disk, of which the hub
// holds one: that one goes on syncing in both directions, through a restart, a lost state
// and on a machine that is linked with both of them, and the other is refused.
func TestTheHubsSpellingGoesOn(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	a.write("note.md", note("n", "first"))
	b.has("note.md", note("n", "first"))
	inStep(t, a, b)
	text := 0
	check := func(m, other *machine) {
		t.Helper()
		s := m.eventually("refuses the other spelling alone", func(s agent.LinkStatus) bool { return len(s.Refusals) == 1 && s.Refusals[0].Path == "Note.md" })
		if r := s.Refusals[0]; r.By != "name" {
			t.Errorf("refusal %+v", r)
		}
		text++
		m.write("note.md", note("n", fmt.Sprint("edited beside a twin ", text)))
		other.has("note.md", m.read("note.md"))
		other.write("note.md", note("n", fmt.Sprint("edited elsewhere ", text)))
		m.has("note.md", other.read("note.md"))
		if got := m.read("Note.md"); got != note("n", "second") {
			t.Errorf("the other spelling is %q", got)
		}
	}
	a.write("Note.md", note("n", "second"))
	check(a, b)
	a.stop()
	a.start()
	check(a, b)
	a.stop()
	must(t, os.RemoveAll(a.state))
	a.start()
	check(a, b)
	c := newMachine(t, "C", h.GRPCAddr, a.link.TokenFile)
	c.write("Note.md", note("n", "second"))
	c.write("note.md", a.read("note.md"))
	c.start()
	check(c, b)
	b.remove("note.md")
	c.lacks("note.md")
	if got := historyOf(t, h).files(); len(got) > 1 {
		t.Errorf("the hub holds %v", got)
	}
}

// TestNormalFormTwins writes one name in NFC on one machine and in NFD on the other
// (N3): one key, and each disk keeps its own way of writing it.
func TestNormalFormTwins(t *testing.T) {
	const nfc, nfd = "caf\u00e9.md", "cafe\u0301.md"
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	inStep(t, a, b)
	apart(t, h, func() {
		a.write(nfc, note("c", "text"))
		b.write(nfd, note("c", "text"))
	}, a, b)
	inStep(t, a, b)
	b.write(nfd, note("c", "edited under the other form"))
	a.has(nfc, note("c", "edited under the other form"))
	inStep(t, a, b)
	if got := a.names(); !slices.Equal(got, []string{nfc}) {
		t.Errorf("NFC machine has %+q", got)
	}
	if got := b.names(); !slices.Equal(got, []string{nfd}) {
		t.Errorf("NFD machine has %+q", got)
	}
	if got := historyOf(t, h).files(); len(got) != 1 {
		t.Errorf("the hub holds %d files, want one", len(got))
	}
}

// TestFileBecomesDirectory turns a.md into a.md/x.md in one step, and back.
func TestFileBecomesDirectory(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	a.write("a.md", note("a", "file"))
	b.has("a.md", note("a", "file"))
	inStep(t, a, b)
	a.remove("a.md")
	a.write("a.md/x.md", note("x", "in a directory"))
	b.has("a.md/x.md", note("x", "in a directory"))
	inStep(t, a, b)
	a.remove("a.md")
	a.write("a.md", note("a", "file again"))
	b.has("a.md", note("a", "file again"))
	inStep(t, a, b)
	same(t, a, b)
	if got := historyOf(t, h).files(); len(got) != 1 {
		t.Errorf("the hub holds %v", got)
	}
}

// TestLinksAreNotFollowed puts links into the directory (S1): what they lead to never
// leaves, and the rest goes on.
func TestLinksAreNotFollowed(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/private.md", []byte("private\n"), 0o644))
	must(t, os.Symlink(outside, a.path("dir")))
	must(t, os.Symlink(outside+"/private.md", a.path("file.md")))
	a.write("project_x.md", note("x", "goes"))
	b.has("project_x.md", note("x", "goes"))
	a.settle()
	if got := historyOf(t, h).files(); len(got) != 1 {
		t.Errorf("the hub holds %v", got)
	}
	hubtest.Eventually(t, patience, "the link is reported", func() bool { return len(a.status().Refusals) > 0 })
}

// TestIgnoreFile adds a pattern for a file that is shared already (13.18): nothing is
// deleted anywhere, and edits stay here.
func TestIgnoreFile(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	a.write("draft_x.md", note("x", "shared"))
	b.has("draft_x.md", note("x", "shared"))
	inStep(t, a, b)
	must(t, os.WriteFile(a.path(".memsyncignore"), []byte("draft_*\n"), 0o644))
	a.write("draft_x.md", note("x", "private now"))
	a.write("draft_y.md", note("y", "private"))
	a.write("project_z.md", note("z", "goes"))
	b.has("project_z.md", note("z", "goes"))
	a.settle()
	hist := historyOf(t, h)
	hist.noDeletes()
	if got := hist.files(); got["draft_x.md"] != note("x", "shared") || got["draft_y.md"] != "" {
		t.Errorf("ignored edits reached the hub: %v", got)
	}
	if got := b.read("draft_x.md"); got != note("x", "shared") {
		t.Errorf("the other machine has %q", got)
	}
}
