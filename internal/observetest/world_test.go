package observetest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/agent/watcher"
	"github.com/memsvc/memsvc/internal/buildinfo"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/porttest"
	"github.com/memsvc/memsvc/internal/telemetry"
)

const patience = 60 * time.Second

// world is a hub and two agents that have been through all that metrics tell of.
type world struct {
	hub       *hubtest.Hub
	ann, bob  *machine
	hubOps    string // addresses of /metrics
	agentsOps []string
}

// machine is an agent with several links.
type machine struct {
	t    *testing.T
	d    *agent.Daemon
	ops  string
	base string
}

// newMachine starts an agent that serves its metrics.
func newMachine(t *testing.T, links func(base string) []agent.Link) *machine {
	t.Helper()
	m := &machine{t: t, base: t.TempDir()}
	registry := telemetry.NewRegistry("memsync", buildinfo.Read())
	log := slog.New(slog.DiscardHandler)
	d, err := agent.NewDaemon(agent.DaemonOptions{
		StateDir: filepath.Join(m.base, "state"), Logger: log, Registry: registry,
		Watcher: watcher.Options{Quiet: 30 * time.Millisecond, Ceiling: 200 * time.Millisecond},
		Client:  client.Options{MinBackoff: 10 * time.Millisecond, MaxBackoff: 200 * time.Millisecond, Attempts: 2},
	})
	must(t, err)
	m.d = d
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	m.ops = ln.Addr().String()
	health := telemetry.NewHealth()
	health.SetReady()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- telemetry.ServeOps(ctx, ln, telemetry.OpsOptions{Gatherer: registry, Health: health, Logger: log})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	all := links(m.base)
	for _, l := range all {
		must(t, os.MkdirAll(l.Dir, 0o755))
	}
	must(t, d.Apply(all))
	return m
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	must(m.t, os.WriteFile(filepath.Join(m.base, name), []byte(text), 0o644))
}

// eventually waits until the agent's link is as wanted.
func (m *machine) eventually(link, what string, ok func(agent.LinkStatus) bool) {
	m.t.Helper()
	hubtest.Eventually(m.t, patience, link+" "+what, func() bool {
		for _, l := range m.d.Status().Links {
			if l.Name() == link {
				return ok(l)
			}
		}
		return false
	})
}

func inStep(l agent.LinkStatus) bool { return l.InStep }

// newWorld makes a hub with two agents, and lets them work and suffer: commits, a
// refusal, a conflict, a brake, a hub that cannot be reached, a request by REST.
func newWorld(t *testing.T) *world {
	t.Helper()
	h := hubtest.Start(t, hubtest.Options{SQLite: true})
	pay, brake := h.TokenFile("acme", "pay", "writer"), h.TokenFile("acme", "brake", "writer")
	link := func(base, project, token string) agent.Link {
		return agent.Link{Hub: h.GRPCAddr, TokenFile: token, Team: "acme", Project: project, Dir: filepath.Join(base, project)}
	}
	w := &world{hub: h, hubOps: h.OpsAddr}
	w.ann = newMachine(t, func(base string) []agent.Link { return []agent.Link{link(base, "pay", pay)} })
	w.bob = newMachine(t, func(base string) []agent.Link {
		lost := link(base, "lost", pay)
		lost.Hub = porttest.Free(t)
		return []agent.Link{link(base, "pay", pay), link(base, "brake", brake), lost}
	})
	w.agentsOps = []string{w.ann.ops, w.bob.ops}

	// Commits that spread.
	w.ann.write("pay/project_a.md", note("a", "first"))
	w.ann.eventually("acme/pay", "is in step", inStep)
	w.bob.eventually("acme/pay", "has the file", func(l agent.LinkStatus) bool { return l.InStep && l.Files == 1 })

	// A conflict: both write the same line before either hears of the other.
	hubtest.Eventually(t, patience, "a conflict", func() bool {
		w.ann.write("pay/project_a.md", note("a", "as ann sees it, "+time.Now().String()))
		w.bob.write("pay/project_a.md", note("a", "as bob sees it, "+time.Now().String()))
		conflicts := func() int {
			n := 0
			for _, m := range []*machine{w.ann, w.bob} {
				for _, l := range m.d.Status().Links {
					n += len(l.Conflicts)
				}
			}
			return n
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		w.ann.d.Settle(ctx)
		w.bob.d.Settle(ctx)
		return conflicts() > 0
	})

	// A refusal on the machine, and one on the hub, which judges what no agent judged.
	w.ann.write("pay/feedback_key.md", note("key", "token "+fakeSecret()))
	w.ann.eventually("acme/pay", "refuses the file", func(l agent.LinkStatus) bool { return len(l.Refusals) > 0 })
	w.put(t, "teams/acme/projects/pay/memories/project_key.md", note("key", fakeSecret()), http.StatusBadRequest)
	w.put(t, "teams/acme/projects/pay/memories/project_rest.md", note("rest", "by REST"), http.StatusCreated)

	// A brake: all files of a project vanish, and at once. One by one, slowly, they would be
	// deletes.
	must(t, os.Mkdir(filepath.Join(w.bob.base, "brake", "sub"), 0o755))
	for i := range 8 {
		w.bob.write(fmt.Sprintf("brake/sub/project_%d.md", i), note(fmt.Sprint(i), "text"))
	}
	w.bob.eventually("acme/brake", "is in step", func(l agent.LinkStatus) bool { return l.InStep && l.Files == 8 })
	must(t, os.Rename(filepath.Join(w.bob.base, "brake", "sub"), filepath.Join(w.bob.base, "vanished")))
	w.bob.eventually("acme/brake", "halts", func(l agent.LinkStatus) bool { return l.Halt != nil })
	w.bob.eventually("acme/lost", "cannot reach its hub", func(l agent.LinkStatus) bool { return l.Phase == agent.PhaseOffline })
	return w
}

// put sends a memory by REST and wants the status.
func (w *world) put(t *testing.T, name, text string, want int) {
	t.Helper()
	put(t, w.hub, w.hub.AdminToken, name, text, want)
}

func put(t *testing.T, h *hubtest.Hub, token, name, text string, want int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+h.HTTPAddr+"/v1/"+name, stringsReader(text))
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "text/markdown")
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != want {
		body, _ := io.ReadAll(res.Body)
		t.Fatalf("PUT %s: %s %s, want %d", name, res.Status, body, want)
	}
}
