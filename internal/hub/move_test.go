package hub_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/hub/store/archive"
	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/pgtest"
)

// TestMoveToADatabase moves a hub from the embedded store to PostgreSQL: history,
// tokens and settings, checked by a digest; a second time nothing is left to do. Damage
// is found before anything is written.
func TestMoveToADatabase(t *testing.T) {
	t.Parallel()
	old := hubtest.Start(t, hubtest.Options{SQLite: true})
	token := old.Token("acme", "app", "writer")
	c := as(t, old, token)
	for i := range 30 {
		c.mustCommit(t, put(fmt.Sprintf("f%d.md", i%7), fmt.Sprint("text ", i)), put("n/always.md", fmt.Sprint(i)))
	}
	c.mustCommit(t, &memsvcv1.Change{Path: "f1.md", Action: &memsvcv1.Change_Delete{Delete: &memsvcv1.DeleteAction{}}})
	if _, err := old.Service().Redact(t.Context(), hubtest.Admin(), appKey, "f2.md", nil, "leak"); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Service().UpdateTeam(t.Context(), hubtest.Admin(), service.Team{ID: "acme", Settings: service.TeamSettings{MaxProjectFiles: 77, Redactions: true}}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "hub.archive")
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte(old.AdminToken), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := program(t, "export", file, "--hub", old.GRPCAddr, "--token-file", tokenFile); code != 0 {
		t.Fatal(stderr)
	}
	url := pgtest.Start(t, pgtest.Options{}).Database()
	if _, stderr, code := program(t, "migrate", "--database-url", url); code != 0 {
		t.Fatal(stderr)
	}

	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for at := 20; at < len(text); at += 1 + len(text)/8 { // beyond the first line, which other files lack
		bad := bytes.Clone(text)
		bad[at] ^= 1
		if err := os.WriteFile(file+".bad", bad, 0o600); err != nil {
			t.Fatal(err)
		}
		_, stderr, code := program(t, "import", "--direct", "--database-url", url, file+".bad")
		if code != 2 || !strings.HasPrefix(stderr, "memsvc: import "+file+".bad: ") || !strings.HasSuffix(stderr, "; nothing was taken in") ||
			!strings.Contains(stderr, "export it again") && !strings.Contains(stderr, "the newer memsvc") {
			t.Errorf("byte %d damaged: code %d, %s", at, code, stderr)
		}
	}
	// Of one that was cut short nothing is taken in, and calling again would not help.
	if err := os.WriteFile(file+".cut", text[:len(text)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	want := "memsvc: import " + file + ".cut: archive: it ends too early; the file is damaged, export it again; nothing was taken in"
	if _, stderr, code := program(t, "import", "--direct", "--database-url", url, file+".cut"); code != 2 || stderr != want {
		t.Errorf("a cut archive: code %d, %q, want %q", code, stderr, want)
	}
	digest := regexp.MustCompile(`SHA-256 ([0-9a-f]{64})$`)
	var digests []string
	for _, want := range []string{"1 project, 32 commits added, 0 there already; 2 tokens added", "1 project, 0 commits added, 32 there already"} {
		stdout, stderr, code := program(t, "import", "--direct", "--database-url", url, file)
		if code != 0 || !strings.Contains(stdout, want) {
			t.Fatalf("import: code %d, %q, %s, want %q", code, stdout, stderr, want)
		}
		digests = append(digests, digest.FindString(stdout))
	}
	if digests[0] == "" || digests[0] != digests[1] {
		t.Errorf("digests %q", digests)
	}

	// Of a hub where a project has another history nothing is taken, its other projects
	// neither.
	foreign := hubtest.Start(t, hubtest.Options{SQLite: true})
	for _, name := range []string{"aaa", "app"} {
		c := as(t, foreign, foreign.Token("acme", name, "writer"))
		_, err := c.CommitChanges(c.ctx(t), &memsvcv1.CommitChangesRequest{Parent: "teams/acme/projects/" + name, RequestId: "r-" + name, Changes: []*memsvcv1.Change{put("x.md", "another hub's")}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(tokenFile, []byte(foreign.AdminToken), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := program(t, "export", file+".foreign", "--hub", foreign.GRPCAddr, "--token-file", tokenFile); code != 0 {
		t.Fatal(stderr)
	}
	_, stderr, code := program(t, "import", "--direct", "--database-url", url, file+".foreign")
	if code != 1 || !strings.Contains(stderr, "teams/acme/projects/app") || !strings.HasSuffix(stderr, "; nothing was taken in") {
		t.Errorf("another history: code %d, %s", code, stderr)
	}

	h := hubtest.Start(t, hubtest.Options{DatabaseURL: url})
	if _, err := h.Service().Project(t.Context(), hubtest.Admin(), memory.ProjectKey{Team: "acme", Project: "aaa"}, memory.Cursor{}); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("another project of the foreign hub came in (%v)", err)
	}
	now := as(t, h, token) // the old hub's token
	for revision := int64(0); revision <= 32; revision++ {
		if d := cmp.Diff(listAt(t, old, revision), listAt(t, h, revision)); d != "" {
			t.Fatalf("at revision %d (-old +new):\n%s", revision, d)
		}
	}
	teams, _, err := h.Service().Teams(t.Context(), hubtest.Admin(), service.Page{})
	if err != nil || len(teams) != 1 || teams[0].Settings.MaxProjectFiles != 77 {
		t.Errorf("teams %+v, %v", teams, err)
	}
	if res := now.mustCommit(t, put("new.md", "goes on")); res.GetHead().GetRevision() != 33 {
		t.Errorf("history goes on with revision %d", res.GetHead().GetRevision())
	}
	_, err = now.commit(t, put("back.md", "text 30")) // another text than what was redacted
	if err != nil {
		t.Error(err)
	}
	_, err = now.commit(t, put("back.md", "text 23")) // f2.md held it
	wantReason(t, err, memory.ReasonRedacted)
}

// listAt returns the texts of a revision; 0 is now.
func listAt(t *testing.T, h *hubtest.Hub, revision int64) map[memory.Path]string {
	t.Helper()
	out := map[memory.Path]string{}
	for _, path := range []memory.Path{"f0.md", "f1.md", "f2.md", "f3.md", "f4.md", "f5.md", "f6.md", "n/always.md"} {
		m, err := h.Service().Get(t.Context(), hubtest.Admin(), appKey, path, memory.Revision(revision))
		if err == nil {
			out[path] = fmt.Sprint(m.Revision, m.ModTime, m.Author, string(m.Content))
		}
	}
	return out
}

// TestCheckAgainstADatabase finds a text that changed on the way.
func TestCheckAgainstADatabase(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	url := server.Database()
	h := hubtest.Start(t, hubtest.Options{DatabaseURL: url})
	as(t, h, h.Token("acme", "app", "writer")).mustCommit(t, put("a.md", "one"))
	var file bytes.Buffer
	if err := h.Service().Export(t.Context(), hubtest.Admin(), "", &file); err != nil {
		t.Fatal(err)
	}
	s, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if _, err := archive.Check(t.Context(), s, bytes.NewReader(file.Bytes()), nil); err != nil {
		t.Fatal(err)
	}
	other := &pgtest.Server{URL: url}
	if err := other.Exec(t.Context(), "UPDATE memsvc.versions SET content=content || ' '::bytea"); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Check(t.Context(), s, bytes.NewReader(file.Bytes()), nil); err == nil {
		t.Error("a text that changed in the database was not found")
	}
}
