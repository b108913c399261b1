package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// TestIdleCost measures an agent process with 20 links of 200 files that has nothing
// to do: under 60 MB, under 0.2 % of a core. It takes a minute of doing nothing.
func TestIdleCost(t *testing.T) {
	if !long() {
		t.Skip("measures a minute of real time; MEMSYNC_E2E_LONG=1 runs it")
	}
	h := hubtest.Start(t, hubtest.Options{})
	token := h.TokenFile("acme", "", "writer")
	base := t.TempDir()
	config := fmt.Sprintf("hub: %s\ntoken-file: %s\nteam: acme\nlinks:\n", h.GRPCAddr, token)
	for l := range 20 {
		dir := filepath.Join(base, fmt.Sprint(l), "team")
		must(t, os.MkdirAll(dir, 0o755))
		for i := range 200 {
			must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("project_%03d.md", i)), []byte(note(fmt.Sprint(i), padding(2000))), 0o644))
		}
		config += fmt.Sprintf("- project: p%d\n  dir: %s\n", l, dir)
	}
	file := filepath.Join(base, "config.yaml")
	must(t, os.WriteFile(file, []byte(config), 0o600))
	state := filepath.Join(base, "state")
	cmd := programCommand("memsync-agent", "run", "--config", file, "--state-dir", state)
	log := &hubtest.Buffer{}
	cmd.Stderr = log
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	hubtest.Eventually(t, 2*time.Minute, "all in step", func() bool {
		out, err := statusCommand(state).Output()
		var s agent.Status
		return err == nil && json.Unmarshal(out, &s) == nil && s.Running && s.InStep && len(s.Links) == 20
	})
	const span = time.Minute
	hubtest.Eventually(t, 2*time.Minute, "the echo of the first sync is over", func() bool {
		before := ticks(t, cmd.Process.Pid)
		time.Sleep(5 * time.Second) // what is measured
		return ticks(t, cmd.Process.Pid)-before <= 2
	})
	before := ticks(t, cmd.Process.Pid)
	time.Sleep(span) // what is measured
	cpu := time.Duration(ticks(t, cmd.Process.Pid)-before) * 10 * time.Millisecond
	// What was freed goes back to the system bit by bit.
	rss := 0
	hubtest.Eventually(t, 2*time.Minute, "under 60 MB are resident", func() bool {
		rss = residentKB(t, cmd.Process.Pid)
		return rss <= 60<<10
	})
	t.Logf("%d MB, %.3f %% of a core", rss/1024, 100*cpu.Seconds()/span.Seconds())
	if cpu > span/500 {
		t.Errorf("%v of processor time in %v, want under 0.2 %%\n%s", cpu, span, tail(log))
	}
}

func statusCommand(state string) *exec.Cmd {
	return programCommand("memsync-agent", "status", "--json", "--state-dir", state)
}

// ticks returns the processor time of a process in hundredths of a second.
func ticks(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(t, err)
	fields := strings.Fields(string(b)[strings.LastIndex(string(b), ")")+1:])
	user, err := strconv.Atoi(fields[11])
	must(t, err)
	system, err := strconv.Atoi(fields[12])
	must(t, err)
	return user + system
}

func residentKB(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			must(t, err)
			return kb
		}
	}
	t.Fatal("no VmRSS")
	return 0
}
