//go:build linux

package killtest

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestTwoAgents starts a second agent on the same directory, with the same state and
// with one of its own: it ends and says whom it met. The first goes on.
func TestTwoAgents(t *testing.T) {
	t.Parallel()
	h := newHub(t, "")
	a := newMachine(t, h, "anna")
	a.start()
	waitInStep(t, h, a)
	pid := strconv.Itoa(a.process().cmd.Process.Pid)
	for what, state := range map[string]string{"the same state": a.state, "its own state": filepath.Join(tempDir(t), "state")} {
		second := &machine{t: t, h: h, addr: a.addr, team: a.team, state: state, token: a.token}
		p := launch(t, "a second agent with "+what, command(context.Background(), "memsync-agent", append([]string{"run"}, second.link()...)...))
		if code := p.exit(t); code != 1 && code != 2 {
			t.Errorf("%s: code %d, want 1 or 2", what, code)
		}
		lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
		oneLine(t, lines[len(lines)-1], pid)
	}
	rnd := rand.New(rand.NewPCG(13, 13))
	text := newText(rnd, "first", 1)
	a.write("project_first.md", text)
	if got := waitInStep(t, h, a); got["project_first.md"] != text {
		t.Error("the first agent does not send any more")
	}
	if n := len(h.history()); n != 1 {
		t.Errorf("%d revisions for one edit", n)
	}
}

// TestTwoHubs starts a second hub on the same data directory: it ends and says why.
// The first goes on.
func TestTwoHubs(t *testing.T) {
	t.Parallel()
	h := newHub(t, "")
	args := []string{"serve", "--data-dir", h.data, "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--ops-addr", "127.0.0.1:0"}
	_, errOut, code := call(t, "memsvc", args...)
	if code != 1 && code != 2 {
		t.Errorf("code %d, want 1 or 2", code)
	}
	oneLine(t, errOut, h.data, "another memsvc")
	rnd := rand.New(rand.NewPCG(14, 14))
	put(t, h.client(), "project_first.md", newText(rnd, "first", 1))
	if n := len(h.history()); n != 1 {
		t.Errorf("%d revisions", n)
	}
}
