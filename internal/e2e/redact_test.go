package e2e

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
)

// onceDesk is a machine without a daemon: every sync is a process of its own.
type onceDesk struct {
	t          *testing.T
	dir, state string
	link       []string
}

func newOnceDesk(t *testing.T, h *hubtest.Hub, token string) *onceDesk {
	d := &onceDesk{t: t, dir: filepath.Join(t.TempDir(), "team"), state: filepath.Join(t.TempDir(), "state")}
	must(t, os.Mkdir(d.dir, 0o755))
	d.link = []string{"--hub", h.GRPCAddr, "--token-file", token, "--team", "acme", "--project", "pay", "--dir", d.dir, "--state-dir", d.state}
	return d
}

// sync runs once; an open conflict is no failure here.
func (d *onceDesk) sync() string {
	d.t.Helper()
	out, err := agentWith("", append([]string{"sync"}, d.link...)...)
	if err != nil && !strings.Contains(out, "conflict") {
		d.t.Fatalf("sync: %v\n%s", err, out)
	}
	return out
}

func (d *onceDesk) write(name, text string) {
	d.t.Helper()
	must(d.t, os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600))
}

func (d *onceDesk) remove(name string) {
	d.t.Helper()
	must(d.t, os.Remove(filepath.Join(d.dir, name)))
}

// finds returns the files of the state, or of the directory, that hold the words.
func (d *onceDesk) finds(words string) (found []string) {
	d.t.Helper()
	for _, top := range []string{d.state, d.dir} {
		must(d.t, filepath.WalkDir(top, func(p string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(p)
			if bytes.Contains(text, []byte(words)) {
				found = append(found, p)
			}
			return err
		}))
	}
	return found
}

// TestRedactionTakesItsTextAloneByProcesses: an admin redacts one text by its etag. Right
// after its next sync, which need not be a daemon's, a machine holds no byte of it: not as
// a conflict, in the trash, in damaged state put aside; a hub with a new epoch changes
// nothing about that. What others wrote at the same paths is all there.
func TestRedactionTakesItsTextAloneByProcesses(t *testing.T) {
	for _, newEpoch := range []bool{false, true} {
		h := hubtest.Start(t, hubtest.Options{})
		token := h.TokenFile("acme", "pay", "writer")
		admin := filepath.Join(t.TempDir(), "admin")
		must(t, os.WriteFile(admin, []byte(h.AdminToken+"\n"), 0o600))
		a, b := newOnceDesk(t, h, token), newOnceDesk(t, h, token)
		const words = "Zacharias Quillfeather"
		leaked := note("t", "the customer's name is "+words)

		// Two lives of one path, both in B's trash.
		for _, text := range []string{note("t", "the first life, precious"), leaked} {
			a.write("project_t.md", text)
			a.sync()
			b.sync()
			a.remove("project_t.md")
			a.sync()
			b.sync()
		}
		// Two conflicts on B: the leak lost in one, a text of its own in the other.
		a.write("project_k.md", note("k", "one"))
		a.write("project_l.md", note("l", "one"))
		a.sync()
		b.write("project_k.md", note("k", "my precious unrelated note"))
		b.write("project_l.md", leaked)
		b.sync()
		// Damage, so that a copy of everything is put aside.
		journals, err := filepath.Glob(filepath.Join(b.state, "links", "*", "journal"))
		if err != nil || len(journals) != 1 {
			t.Fatalf("journals %v, %v", journals, err)
		}
		whole, err := os.ReadFile(journals[0])
		must(t, err)
		whole[50]++
		must(t, os.WriteFile(journals[0], whole, 0o600))
		b.sync()
		if found := b.finds(words); len(found) != 2 || !strings.Contains(strings.Join(found, " "), "damaged-") {
			t.Fatalf("the text is in %v, want the journal and what was put aside", found)
		}

		where := []string{"--hub", h.GRPCAddr, "--token-file", admin}
		out := command(t, "memsvc", append([]string{"redact", "--team", "acme", "--project", "pay", "--reason", "a name", "--etag", string(memory.ETagOf([]byte(leaked))), "project_t.md"}, where...)...)
		for _, want := range []string{"redacted as revision ", "project_t.md: 1 stored version\n", "project_l.md: 1 open conflict\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("redact says %q, want %q in it", out, want)
			}
		}
		if out := command(t, "memsvc", append([]string{"audit", "--team", "acme"}, where...)...); !strings.Contains(out, "why: a name") {
			t.Errorf("the audit log does not say why:\n%s", out)
		}
		if newEpoch {
			command(t, "memsvc", append([]string{"project", "create", "--team", "other", "--project", "p"}, where...)...)
			archive := filepath.Join(t.TempDir(), "archive")
			command(t, "memsvc", append([]string{"export", archive, "--team", "other"}, where...)...)
			command(t, "memsvc", append([]string{"project", "purge", "--team", "other", "--project", "p", "--yes"}, where...)...)
			command(t, "memsvc", append([]string{"import", archive}, where...)...)
		}
		b.sync()
		if found := b.finds(words); len(found) > 0 {
			t.Errorf("new epoch %v: the redacted text is in %v", newEpoch, found)
		}
		a.sync()
		if found := a.finds(words); len(found) > 0 {
			t.Errorf("new epoch %v: on A the redacted text is in %v", newEpoch, found)
		}
		show := func(args ...string) string {
			return command(t, "memsync-agent", append(args, "--state-dir", b.state)...)
		}
		if out := show("conflicts", "show", "project_k.md"); !strings.Contains(out, "my precious unrelated note") {
			t.Errorf("the conflict says %q", out)
		}
		if out := show("conflicts", "list"); strings.Contains(out, "project_l.md") {
			t.Errorf("the conflict of the redacted text is still open: %q", out)
		}
		id, _, _ := strings.Cut(strings.TrimSpace(show("trash", "list")), " ")
		if out := show("trash", "show", id); !strings.Contains(out, "the first life, precious") {
			t.Errorf("the trash says %q", out)
		}
		if out := show("log", "--local"); !strings.Contains(out, "redacted on the hub") {
			t.Errorf("the local log does not tell: %q", out)
		}
		if _, err := os.Stat(journals[0]); errors.Is(err, fs.ErrNotExist) {
			t.Error("there is no journal")
		}
	}
}

// TestRedactAgainTellsWhatIsServed: a redaction whose answer was lost is asked for again:
// nothing goes any more, and what is still served is listed.
func TestRedactAgainTellsWhatIsServed(t *testing.T) {
	h, ms := team(t, 1)
	a := ms[0]
	a.write("project_x.md", note("x", "the walrus"))
	a.write("MEMORY.md", "- [X](project_x.md) - the walrus\n")
	inStep(t, a)
	admin := filepath.Join(t.TempDir(), "admin")
	must(t, os.WriteFile(admin, []byte(h.AdminToken+"\n"), 0o600))
	args := []string{"redact", "--hub", h.GRPCAddr, "--token-file", admin, "--team", "acme", "--project", "pay", "--reason", "a name", "project_x.md"}
	command(t, "memsvc", args...)
	out, err := programCommand("memsvc", args...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("again: %v, want exit code 1", err)
	}
	for _, want := range []string{"still served", "line 1 links to project_x.md", "project_x.md: nothing redacted: "} {
		if !strings.Contains(string(out), want) {
			t.Errorf("again: %q, want %q in it", out, want)
		}
	}
	if strings.Contains(string(out), "as revision") {
		t.Errorf("again: %q, which tells of a revision", out)
	}
}
