//go:build unix

package syncstate

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

const childEnv = "MEMSYNC_TEST_STATE_CHILD"

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if err := work(dir); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// killText is the text of the i-th update; long ones make rewrites frequent.
func killText(i int) string { return strings.Repeat(strconv.Itoa(i)+" ", 1+i%3000) }

// work applies updates without end and says the number of each once it is
// acknowledged. Two paths must always agree, and a cursor with them.
func work(dir string) error {
	s, err := Open(dir, link, Options{})
	if err != nil {
		return err
	}
	st, err := s.Load(context.Background())
	if err != nil {
		return err
	}
	for i := int(st.Cursor.Revision) + 1; ; i++ {
		text := killText(i)
		e := etag(text)
		entry := syncer.BaseEntry{Text: e, Hub: e, Local: e, HubRevision: memory.Revision(i), Author: fmt.Sprint("author ", i)}
		u := syncer.Update{
			Relaxed:     i%4 == 0,
			Cursor:      &memory.Cursor{Revision: memory.Revision(i)},
			Texts:       [][]byte{[]byte(text)},
			PutBaseline: map[memory.Path]syncer.BaseEntry{"one.md": entry, "two.md": entry, path(i % 50): entry},
		}
		if err := s.Apply(context.Background(), u); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

// A process is killed at random moments under load, over and over on one state: each
// time the state is whole and holds everything that was acknowledged.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	total := 0
	for round := range rounds {
		acked := killOne(t, dir, time.Duration(rnd.IntN(60_000))*time.Microsecond)
		s, err := Open(dir, link, Options{})
		must(t, err)
		if r := s.Report(); r.Damage != "" {
			t.Fatalf("round %d: %+v", round, r)
		}
		st := load(t, s)
		at := int(st.Cursor.Revision)
		if at < acked {
			t.Fatalf("round %d: %d was acknowledged, the state is at %d", round, acked, at)
		}
		if at > 0 {
			e := st.Baseline["one.md"]
			if e != st.Baseline["two.md"] || int(e.HubRevision) != at || e.Text != etag(killText(at)) {
				t.Fatalf("round %d: half an update: %+v, %+v, cursor %d", round, e, st.Baseline["two.md"], at)
			}
		}
		for e := range st.Texts() {
			if _, err := s.Text(t.Context(), e); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		must(t, s.Close())
		total = at
	}
	if total == 0 {
		t.Error("no round came as far as one update")
	}
	t.Logf("%d updates in %d rounds", total, rounds)
}

// killOne runs work, kills it after d from its first acknowledgement and returns the
// last one that it said.
func killOne(t *testing.T, dir string, d time.Duration) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	last := 0
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Errorf("the process said %q", lines.Text())
			break
		}
		if last == 0 {
			time.AfterFunc(d, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
		}
		last = n
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return last
}
