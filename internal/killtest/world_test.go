//go:build linux

package killtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/porttest"
)

const (
	team    = "t"
	project = "p"
)

func key() memory.ProjectKey { return memory.ProjectKey{Team: team, Project: project} }

// hub is a memsvc with its data.
type hub struct {
	t              *testing.T
	data           string
	grpc, web, ops string
	adminToken     string // file
	writerToken    string // file
	extra          []string
	programs       string     // directory of the programs; "" are those of this source
	mu             sync.Mutex // guards p
	p              *process
}

// tempDir is a directory that programs without rights can reach.
func tempDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// newHub starts a hub on a data directory ("" = a new one) and makes a writer's token.
func newHub(t *testing.T, data string) *hub {
	t.Helper()
	if data == "" {
		data = filepath.Join(tempDir(t), "data")
	}
	h := &hub{t: t, data: data, grpc: porttest.Free(t), web: porttest.Free(t), ops: porttest.Free(t), adminToken: filepath.Join(data, "admin.token")}
	h.start()
	h.writerToken = h.token(project)
	return h
}

func (h *hub) args() []string {
	return append([]string{"serve", "--data-dir", h.data, "--grpc-addr", h.grpc, "--http-addr", h.web, "--ops-addr", h.ops, "--log-format", "json"}, h.extra...)
}

// start starts the hub on its addresses and data and waits until it listens.
func (h *hub) start() {
	h.t.Helper()
	p := launch(h.t, "the hub", of(h.programs, command(context.Background(), "memsvc", h.args()...)))
	h.mu.Lock()
	h.p = p
	h.mu.Unlock()
	eventually(h.t, patience, "the hub listens", func() string {
		switch {
		case strings.Contains(p.out.String(), `"msg":"listening"`):
			return ""
		case !p.running():
			h.t.Fatalf("the hub ended with code %d: %s", p.exit(h.t), p.out)
		}
		return "it does not say so"
	})
}

func (h *hub) process() *process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.p
}

// kill ends the hub as kill -9 does.
func (h *hub) kill() { h.process().kill() }

// token makes a writer's token of the project and returns its file.
func (h *hub) token(name string) string {
	h.t.Helper()
	out, errOut, code := call(h.t, "memsvc", "token", "create", "--hub", h.grpc, "--token-file", h.adminToken,
		"--team", team, "--project", project, "--role", "writer", "--name", name)
	if code != 0 {
		h.t.Fatalf("token create: code %d: %s", code, errOut)
	}
	file := filepath.Join(tempDir(h.t), "token")
	if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
		h.t.Fatal(err)
	}
	return file
}

// client returns a client of the hub that tries nothing twice by itself.
func (h *hub) client() *client.Client {
	h.t.Helper()
	c, err := client.New(client.Options{Addr: h.grpc, TokenFile: h.writerToken, UserAgent: "killtest", Attempts: 1, CallTimeout: 10 * time.Second, MaxBackoff: time.Second})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.Close() })
	return c
}

// files returns what the hub holds now.
func (h *hub) files() (map[string]string, error) {
	l, err := h.client().List(h.t.Context(), key(), client.ListOptions{Content: true})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, m := range l.Memories {
		if memory.ETagOf(m.Content) != m.ETag {
			return nil, fmt.Errorf("%s: the content has another etag than the hub says", m.Path)
		}
		out[string(m.Path)] = string(m.Content)
	}
	return out, nil
}

// history returns every commit of the project, the oldest first, and fails the test
// unless their revisions are 1, 2, 3 … without gap.
func (h *hub) history() []memory.Commit {
	h.t.Helper()
	c := h.client()
	var all []memory.Commit
	for page := ""; ; {
		var commits []memory.Commit
		var next string
		patiently(h.t, "log", func() (err error) {
			commits, next, err = c.Log(h.t.Context(), key(), "", 500, page)
			return err
		})
		all = append(all, commits...)
		if page = next; page == "" {
			break
		}
	}
	slices.Reverse(all)
	for i, c := range all {
		if c.Revision != memory.Revision(i+1) {
			h.t.Fatalf("commit %d of the history has revision %d", i+1, c.Revision)
		}
	}
	return all
}

// machine is one person's: a team/ directory, state and an agent.
type machine struct {
	t     *testing.T
	h     *hub
	name  string
	addr  string // of the hub, or of what stands before it
	team  string
	state string
	token string
	uid   int // whom the agent runs as; 0 = as the test does

	programs string // directory of the programs; "" are those of this source

	mu sync.Mutex // guards p
	p  *process
}

// newMachine makes a machine's directories. Its agent does not run yet.
func newMachine(t *testing.T, h *hub, name string) *machine {
	t.Helper()
	base := tempDir(t)
	m := &machine{t: t, h: h, name: name, addr: h.grpc, team: filepath.Join(base, "team"), state: filepath.Join(base, "state"), token: h.token(name)}
	if err := os.Mkdir(m.team, 0o755); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) link() []string {
	return []string{"--hub", m.addr, "--token-file", m.token, "--team", team, "--project", project, "--dir", m.team, "--state-dir", m.state}
}

// start starts the agent.
func (m *machine) start() *process {
	m.t.Helper()
	p := launch(m.t, m.name+"'s agent", m.as(context.Background(), append([]string{"run"}, m.link()...)...))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p = p
	return p
}

func (m *machine) process() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.p
}

// kill ends the agent as kill -9 does.
func (m *machine) kill() { m.process().kill() }

// as makes a program run as the machine's user.
func (m *machine) as(ctx context.Context, args ...string) *exec.Cmd {
	cmd := of(m.programs, command(ctx, "memsync-agent", args...))
	if m.uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(m.uid), Gid: uint32(m.uid)}
	}
	for i, kv := range cmd.Env {
		if strings.HasPrefix(kv, "HOME=") {
			cmd.Env[i] = "HOME=" + m.state
		}
	}
	return cmd
}

// status is what `status --json` says, as far as these tests look at it.
type status struct {
	Running bool `json:"running"`
	InStep  bool `json:"in_step"`
	Hubs    []struct {
		Connected bool   `json:"connected"`
		Error     string `json:"error"`
	} `json:"hubs"`
	Links []struct {
		Phase     string `json:"phase"`
		Todo      string `json:"todo"`
		InStep    bool   `json:"in_step"`
		Revision  int64  `json:"revision"`
		Files     int    `json:"files"`
		Conflicts []struct {
			ID   string `json:"id"`
			Path string `json:"path"`
		} `json:"conflicts"`
		Refusals []struct {
			Path     string `json:"path"`
			By       string `json:"by"`
			Findings []struct {
				Message string `json:"message"`
			} `json:"findings"`
		} `json:"refusals"`
		Halt *struct {
			Reason string `json:"reason"`
		} `json:"halt"`
		RootDetail string   `json:"root_detail"`
		Unreadable []string `json:"unreadable"`
		LastError  *struct {
			Message string `json:"message"`
		} `json:"last_error"`
	} `json:"links"`
}

// status asks the agent how it is.
func (m *machine) status(more ...string) status {
	m.t.Helper()
	out, errOut, code := finish(m.t, m.as(m.t.Context(), append([]string{"status", "--state-dir", m.state, "--json"}, more...)...))
	var st status
	if err := json.Unmarshal([]byte(out), &st); err != nil {
		m.t.Fatalf("status of %s: code %d, %v: %s", m.name, code, err, errOut)
	}
	return st
}

// trouble says what the agent's status says is wrong; "" = nothing.
func (s status) trouble() string {
	for _, l := range s.Links {
		if l.LastError != nil {
			return l.Phase + ": " + l.LastError.Message
		}
		if l.Halt != nil {
			return l.Phase + ": " + l.Halt.Reason
		}
		if l.RootDetail != "" {
			return l.Phase + ": " + l.RootDetail
		}
		if len(l.Refusals) > 0 {
			return fmt.Sprintf("%d refused, first %+v", len(l.Refusals), l.Refusals[0])
		}
	}
	return ""
}

// files returns the memories in the team/ directory.
func (m *machine) files() (map[string]string, error) {
	out := map[string]string{}
	err := filepath.WalkDir(m.team, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // deleted while we walked
			}
			return err
		}
		if path != m.team && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !strings.HasSuffix(path, ".md") {
			return nil
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(m.team, path)
		out[filepath.ToSlash(rel)] = string(b)
		return err
	})
	return out, err
}

func (m *machine) write(path, text string) {
	m.t.Helper()
	if err := save(filepath.Join(m.team, path), text); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) remove(path string) {
	m.t.Helper()
	if err := os.Remove(filepath.Join(m.team, path)); err != nil {
		m.t.Fatal(err)
	}
}

// waitText waits until the machine holds text at path.
func (m *machine) waitText(within time.Duration, path, text string) {
	m.t.Helper()
	eventually(m.t, within, m.name+" holds "+path, func() string {
		b, err := os.ReadFile(filepath.Join(m.team, path))
		switch {
		case err != nil:
			return err.Error()
		case string(b) != text:
			return "another text: " + excerpt(string(b)) + "; status: " + m.status().trouble()
		}
		return ""
	})
}

// waitGone waits until the machine holds nothing at path.
func (m *machine) waitGone(within time.Duration, path string) {
	m.t.Helper()
	eventually(m.t, within, m.name+" drops "+path, func() string {
		if _, err := os.Lstat(filepath.Join(m.team, path)); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Sprintf("still there (%v)", err)
		}
		return ""
	})
}

// waitInStep waits until the hub and all machines hold the same, and the agents say so.
func waitInStep(t *testing.T, h *hub, machines ...*machine) map[string]string {
	t.Helper()
	return waitEqual(t, h, false, machines...)
}

// waitEqual is waitInStep; with conflicts set, agents may have some open.
func waitEqual(t *testing.T, h *hub, conflicts bool, machines ...*machine) map[string]string {
	t.Helper()
	var on map[string]string
	eventually(t, patience, "hub and machines are equal", func() string {
		for _, m := range machines {
			if !m.process().running() {
				t.Fatalf("the agent of %s ended by itself", m.name)
			}
			st := m.status("--wait", "--timeout", "10s")
			if quiet := conflicts && len(st.Links) == 1 && st.Links[0].Phase == "attention"; !st.InStep && !quiet {
				return fmt.Sprintf("%s is not in step: %s; %.600s", m.name, st.trouble(), fmt.Sprintf("%+v", st.Links))
			}
		}
		var err error
		if on, err = h.files(); err != nil {
			return err.Error()
		}
		for _, m := range machines {
			here, err := m.files()
			if err != nil {
				return err.Error()
			}
			if d := difference(on, here); d != "" {
				return fmt.Sprintf("hub and %s differ: %s", m.name, d)
			}
		}
		return ""
	})
	return on
}

// difference tells how two sets of files differ; "" = not at all.
func difference(want, got map[string]string) string {
	var ds []string
	for p, text := range want {
		if g, ok := got[p]; !ok {
			ds = append(ds, p+" is missing")
		} else if g != text {
			ds = append(ds, fmt.Sprintf("%s holds %s instead of %s", p, excerpt(g), excerpt(text)))
		}
	}
	for p := range got {
		if _, ok := want[p]; !ok {
			ds = append(ds, p+" is too much")
		}
	}
	slices.Sort(ds)
	if len(ds) > 8 {
		ds = append(ds[:8], fmt.Sprintf("and %d more", len(ds)-8))
	}
	return strings.Join(ds, "; ")
}

func excerpt(s string) string {
	if len(s) > 90 {
		return fmt.Sprintf("%q… (%d bytes)", s[:90], len(s))
	}
	return fmt.Sprintf("%q", s)
}
