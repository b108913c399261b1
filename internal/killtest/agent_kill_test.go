//go:build linux

package killtest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
)

// put commits one text, whatever is there, once.
func put(t *testing.T, c *client.Client, path, text string) (res client.CommitResult) {
	t.Helper()
	req := client.CommitRequest{Project: key(), RequestID: client.NewRequestID(), Message: "put", Changes: []memory.Change{
		{Path: memory.Path(path), Kind: memory.Put, Content: []byte(text)},
	}}
	patiently(t, "commit "+path, func() (err error) { res, err = c.Commit(t.Context(), req); return err })
	return res
}

// patiently makes a call again while its failure may pass: a hub that was just started, or
// a machine that is busy.
func patiently(t *testing.T, what string, call func() error) {
	t.Helper()
	eventually(t, patience, what, func() string {
		err := call()
		if err != nil && !client.IsPassing(err) {
			t.Fatalf("%s: %v", what, err)
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// TestAgentsKilledWhileEdited kills agents at any moment while editors work in their
// directories. After that all machines equal the hub and the editors' last texts,
// nobody ever saw half a file, nothing was deleted that nobody deleted, and nothing
// is left lying around.
func TestAgentsKilledWhileEdited(t *testing.T) {
	t.Parallel()
	killed(t, func(rnd *rand.Rand, h *hub, machines []*machine) {
		m := machines[rnd.IntN(len(machines))]
		m.kill()
		if rnd.IntN(2) == 0 {
			pause(t, time.Duration(rnd.IntN(150))*time.Millisecond) // edited while no agent looks
		}
		m.start()
	})
}

// TestBothKilledWhileEdited kills hub and agents in turn.
func TestBothKilledWhileEdited(t *testing.T) {
	t.Parallel()
	killed(t, func(rnd *rand.Rand, h *hub, machines []*machine) {
		m := machines[rnd.IntN(len(machines))]
		switch rnd.IntN(3) {
		case 0:
			h.kill()
			h.start()
		case 1:
			m.kill()
			m.start()
		default:
			m.kill()
			h.kill()
			m.start() // it finds no hub
			h.start()
		}
	})
}

func killed(t *testing.T, kill func(*rand.Rand, *hub, []*machine)) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 2))
	h := newHub(t, "")
	machines := []*machine{newMachine(t, h, "anna"), newMachine(t, h, "ben")}
	var editors []*editor
	for _, m := range machines {
		m.start()
		e := newEditor(m, rnd)
		must(t, e.stock())
		editors = append(editors, e)
	}
	waitInStep(t, h, machines...)
	end := work(t, editors, machines...)
	for range 4 * rounds() {
		pause(t, time.Duration(50+rnd.IntN(700))*time.Millisecond)
		kill(rnd, h, machines)
	}
	pause(t, 500*time.Millisecond)
	end()
	checkSurvived(t, h, editors...)
	checkTidy(t, h, machines...)
}
