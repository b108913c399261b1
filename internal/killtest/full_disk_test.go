//go:build linux

package killtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
)

const noSpace = "no space left"

// waitTrouble waits until the agent's status tells one of these words, and checks that
// it goes on running.
func (m *machine) waitTrouble(words ...string) {
	m.t.Helper()
	eventually(m.t, patience, m.name+"'s status says "+strings.Join(words, " or "), func() string {
		if !m.process().running() {
			m.t.Fatalf("the agent of %s ended: %s", m.name, m.process().out)
		}
		said := m.status().trouble()
		for _, w := range words {
			if strings.Contains(said, w) {
				return ""
			}
		}
		return "it says " + said
	})
}

// TestHubDiskFull fills the hub's disk under load. The hub refuses what it cannot
// keep, keeps what it acknowledged, and goes on when there is space, without a hand;
// killed and started with a full disk, it loses nothing either.
func TestHubDiskFull(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, "12m")
	h := newHub(t, filepath.Join(disk, "data"))
	c := h.client()
	rnd := rand.New(rand.NewPCG(4, 4))
	var acks []ack
	commit := func() error {
		p := memory.Path(fmt.Sprintf("project_%d.md", rnd.IntN(40)))
		text := []byte(newText(rnd, "full", rnd.Int()))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		res, err := c.Commit(ctx, client.CommitRequest{Project: key(), Changes: []memory.Change{{Path: p, Kind: memory.Put, Content: text}}})
		if err == nil {
			acks = append(acks, ack{res.Commit.Revision, p, memory.ETagOf(text)})
		}
		return err
	}
	untilRefused := func() error {
		t.Helper()
		for range 2000 {
			if err := commit(); err != nil {
				return err
			}
		}
		t.Fatal("a full disk took 2000 commits")
		return nil
	}
	check := func(when string) {
		t.Helper()
		history := h.history()
		l := &load{t: t, writers: []*writer{{acks: acks}}}
		l.check(history)
		if n := len(acks); n != len(history) {
			t.Errorf("%s: %d commits acknowledged, %d revisions", when, n, len(history))
		}
	}
	for range 20 {
		if err := commit(); err != nil {
			t.Fatal(err)
		}
	}
	free := fill(t, disk)
	err := untilRefused()
	t.Logf("the hub said: %v", err)
	if !client.IsPassing(err) {
		t.Errorf("a full disk passes, and the hub's answer says it does not: %v", err)
	}
	for range 5 {
		if commit() == nil {
			t.Error("a commit on a full disk was acknowledged")
		}
	}
	check("while full")
	if h.process().stop(t) != 0 {
		t.Logf("the hub's end on a full disk: %s", h.process().out)
	}

	// A start on a full disk: it serves, or says in one line why not.
	p := launch(t, "the hub on a full disk", command(context.Background(), "memsvc", h.args()...))
	eventually(t, patience, "the hub starts or says why not", func() string {
		if strings.Contains(p.out.String(), `"msg":"listening"`) || !p.running() {
			return ""
		}
		return "neither"
	})
	if !p.running() {
		if code := p.exit(t); code != 1 {
			t.Errorf("code %d", code)
		}
		oneLine(t, p.out.String(), h.data)
	}
	p.kill()
	free()
	h.start()
	check("after a start")
	if err := commit(); err != nil {
		t.Fatalf("with space again: %v", err)
	}

	// And once more, with an agent that wants to send, and the space coming back under
	// the running hub.
	a := newMachine(t, h, "anna")
	a.start()
	waitInStep(t, h, a)
	free = fill(t, disk)
	_ = untilRefused()
	text := newText(rnd, "annas", 1)
	a.write("project_annas.md", text)
	a.waitTrouble("disk is full")
	free()
	eventually(t, patience, "the hub takes commits again by itself", func() string {
		if err := commit(); err != nil {
			return err.Error()
		}
		return ""
	})
	if got := waitInStep(t, h, a); got["project_annas.md"] != text {
		t.Error("what the agent could not send on the full disk did not come later")
	}
	for _, c := range h.history() { // before or after the test's own commit
		if c.Changes[0].Path == "project_annas.md" {
			acks = append(acks, ack{c.Revision, "project_annas.md", memory.ETagOf([]byte(text))})
		}
	}
	h.kill()
	h.start()
	check("at the end")
}

// TestTeamDiskFull fills the disk of a team/ directory: the old file stays whole,
// status says why the new one is not there, and it comes when there is space.
func TestTeamDiskFull(t *testing.T) {
	t.Parallel()
	h := newHub(t, "")
	a, b := newMachine(t, h, "anna"), newMachine(t, h, "ben")
	disk := smallDisk(t, "1m")
	b.team = filepath.Join(disk, "team")
	if err := os.Mkdir(b.team, 0o755); err != nil {
		t.Fatal(err)
	}
	a.start()
	b.start()
	rnd := rand.New(rand.NewPCG(5, 5))
	old := newText(rnd, "grows", 1)
	a.write("project_grows.md", old)
	b.waitText(patience, "project_grows.md", old)
	waitInStep(t, h, a, b)

	free := fill(t, disk)
	edited := seal(strings.Repeat("It has grown beyond a page by now.\n", 1000))
	fresh := newText(rnd, "fresh", 1)
	a.write("project_grows.md", edited)
	a.write("new/project_fresh.md", fresh)
	b.waitTrouble(noSpace)
	for range 3 { // it tries again; the file stays whole every time
		b.waitText(0, "project_grows.md", old)
		b.status("--wait", "--timeout", "1s")
	}
	if files, err := b.files(); err != nil || len(files) != 1 {
		t.Errorf("on a full disk: %d files, %v; want the old one alone", len(files), err)
	}
	if n := strings.Count(b.process().out.String(), noSpace); n > 4 {
		t.Errorf("the same trouble stands %d times in the log", n)
	}
	// An edit of the person on the full disk's own side waits for nobody.
	free()
	b.waitText(patience, "project_grows.md", edited)
	b.waitText(patience, "new/project_fresh.md", fresh)
	waitInStep(t, h, a, b)
	for _, c := range h.history() {
		for _, ch := range c.Changes {
			if ch.Kind == memory.Delete {
				t.Errorf("revision %d deletes %s", c.Revision, ch.Path)
			}
		}
	}
	checkTidy(t, h, a, b)
}

// TestStateDiskFull fills the disk of the state directory: nothing is sent or written
// that could not be remembered, status works and says why, and all goes on when there
// is space. A start without space ends with one line.
func TestStateDiskFull(t *testing.T) {
	t.Parallel()
	h := newHub(t, "")
	a, b := newMachine(t, h, "anna"), newMachine(t, h, "ben")
	disk := smallDisk(t, "2m")
	b.state = filepath.Join(disk, "state")
	a.start()
	b.start()
	rnd := rand.New(rand.NewPCG(6, 6))
	first := newText(rnd, "first", 1)
	a.write("project_first.md", first)
	b.waitText(patience, "project_first.md", first)
	waitInStep(t, h, a, b)

	free := fill(t, disk)
	edits := map[string]string{}
	for i := range 4 {
		p := fmt.Sprintf("project_bens_%d.md", i)
		edits[p] = newText(rnd, "bens", i)
		b.write(p, edits[p])
	}
	b.waitTrouble(noSpace)
	annas := newText(rnd, "annas", 1)
	a.write("project_annas.md", annas)
	b.remove("project_first.md")
	b.status("--wait", "--timeout", "2s")
	b.waitTrouble(noSpace)
	// Killed and started on the full disk: it runs and says so, or ends with one line.
	b.kill()
	p := b.start()
	eventually(t, patience, "the agent runs, or ends with a line", func() string {
		if !p.running() {
			return ""
		}
		if strings.Contains(b.status().trouble(), noSpace) {
			return ""
		}
		return "it runs and says " + b.status().trouble()
	})
	if !p.running() {
		if code := p.exit(t); code != 1 {
			t.Errorf("code %d", code)
		}
		lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
		oneLine(t, lines[len(lines)-1], noSpace)
		free()
		b.start()
	} else {
		free()
	}
	all := waitInStep(t, h, a, b)
	edits["project_annas.md"] = annas
	if d := difference(edits, all); d != "" {
		t.Errorf("after there was space again: %s", d)
	}
}
