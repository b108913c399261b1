package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/agent/watcher"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
)

// The times of the suite: the debounce scaled down about ten times, and a patience
// that is never waited out when all is well.
const (
	quiet    = 30 * time.Millisecond
	ceiling  = 200 * time.Millisecond
	patience = time.Minute
)

var project = memory.ProjectKey{Team: "acme", Project: "pay"}

// machine is one of a team's: a team/ directory, a state directory, an agent.
type machine struct {
	t     *testing.T
	name  string
	dir   string
	state string
	link  agent.Link
	opts  agent.DaemonOptions
	log   *hubtest.Buffer
	reg   *prometheus.Registry
	d     *agent.Daemon // nil while it does not run
}

// newMachine makes a machine; start runs its agent. adjust changes its options.
func newMachine(t *testing.T, name, hubAddr, tokenFile string, adjust ...func(*agent.DaemonOptions)) *machine {
	t.Helper()
	base := t.TempDir()
	m := &machine{t: t, name: name, dir: filepath.Join(base, "team"), state: filepath.Join(base, "state"), log: &hubtest.Buffer{}}
	if err := os.Mkdir(m.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	m.link = agent.Link{Hub: hubAddr, TokenFile: tokenFile, Team: string(project.Team), Project: string(project.Project), Dir: m.dir}
	m.opts = agent.DaemonOptions{
		StateDir: m.state,
		Logger:   slog.New(slog.NewTextHandler(m.log, &slog.HandlerOptions{Level: slog.LevelDebug})).With("machine", name),
		Watcher:  watcher.Options{Quiet: quiet, Ceiling: ceiling, RootCheck: 100 * time.Millisecond},
		Client:   client.Options{MinBackoff: 10 * time.Millisecond, MaxBackoff: 200 * time.Millisecond, Attempts: 2},
	}
	for _, a := range adjust {
		a(&m.opts)
	}
	t.Cleanup(m.stop)
	return m
}

// team starts a hub and n machines that share one project, all in step.
func team(t *testing.T, n int, adjust ...func(*agent.DaemonOptions)) (*hubtest.Hub, []*machine) {
	t.Helper()
	h := hubtest.Start(t, hubtest.Options{})
	file := h.TokenFile(string(project.Team), string(project.Project), "writer")
	var ms []*machine
	for i := range n {
		m := newMachine(t, string(rune('A'+i)), h.GRPCAddr, file, adjust...)
		m.start()
		ms = append(ms, m)
	}
	return h, ms
}

func (m *machine) start() {
	m.t.Helper()
	m.reg = prometheus.NewRegistry()
	opts := m.opts
	opts.Registry = m.reg
	d, err := agent.NewDaemon(opts)
	if err != nil {
		m.t.Fatal(err)
	}
	m.d = d
	if err := d.Apply([]agent.Link{m.link}); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) stop() {
	if m.d == nil {
		return
	}
	if err := m.d.Close(); err != nil {
		m.t.Errorf("stop %s: %v", m.name, err)
	}
	m.d = nil
}

// status returns the status of the one link.
func (m *machine) status() agent.LinkStatus {
	m.t.Helper()
	s := m.d.Status()
	if len(s.Links) != 1 {
		m.t.Fatalf("%s runs %d links", m.name, len(s.Links))
	}
	return s.Links[0]
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, filepath.FromSlash(name)) }

// write saves a file in place, as a shell does. A new one appears whole: on a busy
// machine its first look might otherwise be at an empty one that nobody writes, and be
// another revision.
func (m *machine) write(name, text string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o755); err != nil {
		m.t.Fatal(err)
	}
	at := m.path(name)
	if _, err := os.Lstat(at); os.IsNotExist(err) {
		at = filepath.Join(filepath.Dir(at), ".new")
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
	if at != m.path(name) {
		if err := os.Rename(at, m.path(name)); err != nil {
			m.t.Fatal(err)
		}
	}
}

func (m *machine) remove(name string) {
	m.t.Helper()
	if err := os.RemoveAll(m.path(name)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) read(name string) string {
	b, err := os.ReadFile(m.path(name))
	if err != nil {
		return "(" + filepath.Base(name) + " is not there)"
	}
	return string(b)
}

// files returns every memory file of the directory with its text.
func (m *machine) files() map[string]string {
	m.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(m.dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) {
				return nil
			}
			return err
		}
		if e.IsDir() || !strings.HasSuffix(p, ".md") {
			return nil
		}
		b, err := os.ReadFile(p)
		if os.IsNotExist(err) {
			return nil
		}
		rel, _ := filepath.Rel(m.dir, p)
		out[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

// settle waits until the machine has sent and received everything.
func (m *machine) settle() {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m.d.Settle(ctx)
	if ctx.Err() != nil {
		m.t.Fatalf("%s does not come to rest: %+v\n%s", m.name, m.status(), tail(m.log))
	}
}

// inStep settles all machines until all say that they are in step at one revision.
func inStep(t *testing.T, ms ...*machine) {
	t.Helper()
	hubtest.Eventually(t, patience, "all machines in step at one revision", func() bool {
		revision := int64(-1)
		for _, m := range ms {
			m.settle()
			s := m.status()
			if !s.InStep {
				return false
			}
			if revision >= 0 && s.Revision != revision {
				return false
			}
			revision = s.Revision
		}
		return true
	})
}

// has waits until a file holds text.
func (m *machine) has(name, text string) {
	m.t.Helper()
	hubtest.Eventually(m.t, patience, fmt.Sprintf("%s has %s with %.40q; it has %.60q; status %+v", m.name, name, text, m.read(name), m.phase()), func() bool {
		return m.read(name) == text
	})
}

func (m *machine) phase() string {
	if m.d == nil {
		return "stopped"
	}
	var b strings.Builder
	for _, s := range m.d.Status().Links {
		fmt.Fprintf(&b, "%s %s %+v; ", s.Name(), s.Phase, s.LastError)
	}
	return b.String()
}

// lacks waits until a file is gone.
func (m *machine) lacks(name string) {
	m.t.Helper()
	hubtest.Eventually(m.t, patience, m.name+" has no "+name, func() bool {
		_, err := os.Lstat(m.path(name))
		return os.IsNotExist(err)
	})
}

// eventually waits until the link's status is as wanted.
func (m *machine) eventually(what string, ok func(agent.LinkStatus) bool) agent.LinkStatus {
	m.t.Helper()
	hubtest.Eventually(m.t, patience, m.name+": "+what, func() bool { return ok(m.status()) })
	return m.status()
}

func tail(b *hubtest.Buffer) string {
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// same fails unless all machines hold the same files.
func same(t *testing.T, ms ...*machine) {
	t.Helper()
	for _, m := range ms[1:] {
		if d := cmp.Diff(ms[0].files(), m.files()); d != "" {
			t.Errorf("files of %s and %s differ (-%s +%s):\n%s", ms[0].name, m.name, ms[0].name, m.name, d)
		}
	}
}

// history is what happened on the hub, read with an admin's token.
type history struct {
	t *testing.T
	c *client.Client
}

func historyOf(t *testing.T, h *hubtest.Hub) history {
	t.Helper()
	c, err := client.New(client.Options{Addr: h.GRPCAddr, Token: h.AdminToken})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return history{t, c}
}

func (h history) commits(path string) []memory.Commit {
	h.t.Helper()
	var all []memory.Commit
	for page := ""; ; {
		commits, next, err := h.c.Log(context.Background(), project, memory.Path(path), 500, page)
		if err != nil {
			h.t.Fatal(err)
		}
		all = append(all, commits...)
		if page = next; page == "" {
			return all
		}
	}
}

func (h history) head() memory.Revision {
	h.t.Helper()
	p, err := h.c.Project(context.Background(), project, memory.Cursor{})
	if err != nil {
		h.t.Fatal(err)
	}
	return p.Head.Revision
}

// deletes counts the deletes in the whole history that were no part of a rename.
func (h history) deletes() []string {
	h.t.Helper()
	var out []string
	for _, c := range h.commits("") {
		renamed := map[memory.Path]bool{}
		for _, ch := range c.Changes {
			renamed[ch.RenamedFrom] = true
		}
		for _, ch := range c.Changes {
			if ch.Kind == memory.Delete && !renamed[ch.Path] {
				out = append(out, fmt.Sprintf("%s@%d", ch.Path, c.Revision))
			}
		}
	}
	return out
}

// files returns what the hub holds.
func (h history) files() map[string]string {
	h.t.Helper()
	l, err := h.c.List(context.Background(), project, client.ListOptions{Content: true})
	if err != nil {
		h.t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range l.Memories {
		out[string(m.Path)] = string(m.Content)
	}
	return out
}

// noDeletes fails when any delete reached the hub.
func (h history) noDeletes() {
	h.t.Helper()
	if d := h.deletes(); len(d) > 0 {
		h.t.Errorf("deletes reached the hub: %v", d)
	}
}

// note returns a small memory.
func note(name, body string) string {
	return "---\nname: " + name + "\ndescription: about " + name + "\ntype: project\n---\n" + body + "\n"
}
