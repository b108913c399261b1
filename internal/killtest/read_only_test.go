//go:build linux

package killtest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestTeamReadOnly takes the right to write in a team/ directory away: the agent says
// so and runs on, and writes when it may.
func TestTeamReadOnly(t *testing.T) {
	t.Parallel()
	h := newHub(t, "")
	a, b := newMachine(t, h, "anna"), newMachine(t, h, "ben")
	a.start()
	b.start()
	rnd := rand.New(rand.NewPCG(7, 7))
	old, gone := newText(rnd, "old", 1), newText(rnd, "gone", 1)
	a.write("project_old.md", old)
	a.write("project_gone.md", gone)
	b.waitText(patience, "project_old.md", old)
	b.waitText(patience, "project_gone.md", gone)
	waitInStep(t, h, a, b)

	// The bind mount covers the directory, so that the agent has to find its way
	// into it by path; it is started anew for that.
	b.kill()
	writable := readOnly(t, b.team)
	b.start()
	edited := newText(rnd, "old", 2)
	a.write("project_old.md", edited)
	a.remove("project_gone.md")
	b.waitTrouble("read-only")
	b.waitText(0, "project_old.md", old)
	b.waitText(0, "project_gone.md", gone)
	writable()
	b.waitText(patience, "project_old.md", edited)
	b.waitGone(patience, "project_gone.md")
	waitInStep(t, h, a, b)
	if n := len(h.history()); n > 4 {
		t.Errorf("%d revisions; the read-only side made some up", n)
	}
}

// TestTeamNotOurs runs an agent as a user who may read the directory and not write it,
// from its first start on.
func TestTeamNotOurs(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can run an agent as another user")
	}
	h := newHub(t, "")
	a, b := newMachine(t, h, "anna"), newMachine(t, h, "ben")
	b.uid = 65534
	if err := os.Mkdir(b.state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(b.state, b.uid, b.uid); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(8, 8))
	annas, bens := newText(rnd, "annas", 1), newText(rnd, "bens", 1)
	a.write("project_annas.md", annas)
	b.write("project_bens.md", bens)
	a.start()
	b.start()
	b.waitTrouble("permission denied")
	b.waitText(0, "project_bens.md", bens)
	if err := os.Chown(b.team, b.uid, b.uid); err != nil {
		t.Fatal(err)
	}
	b.waitText(patience, "project_annas.md", annas)
	a.waitText(patience, "project_bens.md", bens)
	waitInStep(t, h, a, b)
}

// TestStateReadOnly starts an agent whose state directory cannot be written.
func TestStateReadOnly(t *testing.T) {
	t.Parallel()
	h := newHub(t, "")
	a := newMachine(t, h, "anna")
	a.start()
	rnd := rand.New(rand.NewPCG(9, 9))
	text := newText(rnd, "kept", 1)
	a.write("project_kept.md", text)
	waitInStep(t, h, a)
	if code := a.process().stop(t); code != 0 {
		t.Errorf("the agent ended with code %d", code)
	}
	edited := newText(rnd, "kept", 2)
	a.write("project_kept.md", edited)
	writable := readOnly(t, a.state)
	p := a.start()
	if code := p.exit(t); code != 1 {
		t.Errorf("code %d, want 1", code)
	}
	oneLine(t, p.out.String(), a.state, "read-only")
	if _, errOut, code := call(t, "memsync-agent", append([]string{"sync"}, a.link()...)...); code != 1 {
		t.Errorf("sync: code %d, want 1: %s", code, errOut)
	} else {
		oneLine(t, errOut, a.state, "read-only")
	}
	if st := a.status(); st.Running || len(st.Links) != 1 || st.Links[0].Files != 1 {
		t.Errorf("status reads what cannot be written: %+v", st)
	}
	a.waitText(0, "project_kept.md", edited)
	writable()
	a.start()
	if got := waitInStep(t, h, a); got["project_kept.md"] != edited {
		t.Errorf("the edit is not on the hub: %v", got)
	}
}

// TestDataReadOnly starts a hub whose data directory cannot be written, new and used.
func TestDataReadOnly(t *testing.T) {
	t.Parallel()
	h := newHub(t, "")
	rnd := rand.New(rand.NewPCG(10, 10))
	res := put(t, h.client(), "project_kept.md", newText(rnd, "kept", 1))
	h.kill()
	writable := readOnly(t, h.data)
	fresh := filepath.Join(tempDir(t), "fresh")
	if err := os.Mkdir(fresh, 0o755); err != nil {
		t.Fatal(err)
	}
	readOnly(t, fresh)
	for name, dir := range map[string]string{"used": h.data, "new": fresh} {
		_, errOut, code := call(t, "memsvc", "serve", "--data-dir", dir, "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--ops-addr", "127.0.0.1:0")
		if code != 1 {
			t.Errorf("%s: code %d, want 1", name, code)
		}
		oneLine(t, errOut, dir, "read-only")
	}
	writable()
	h.start()
	if got := h.history(); len(got) != 1 || got[0].Revision != res.Commit.Revision {
		t.Errorf("after it was writable again: %d revisions", len(got))
	}
}
