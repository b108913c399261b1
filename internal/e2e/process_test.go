package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/hubtest"
)

// programCommand prepares the test binary to run as one of the two programs.
func programCommand(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = []string{roleVariable + "=" + program, "HOME=" + os.TempDir(), "PATH=" + os.Getenv("PATH")}
	return cmd
}

// command runs a program to its end and fails the test unless it exits with 0.
func command(t *testing.T, program string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := programCommand(program, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out.String())
	}
	return out.String()
}

// background starts an agent process for a machine; the test kills it.
func (m *machine) background(t *testing.T, adjust ...func(*exec.Cmd)) *exec.Cmd {
	t.Helper()
	cmd := programCommand("memsync-agent", "run", "--hub", m.link.Hub, "--token-file", m.link.TokenFile,
		"--team", m.link.Team, "--project", m.link.Project, "--dir", m.dir, "--state-dir", m.state)
	cmd.Stdout, cmd.Stderr = m.log, m.log
	for _, a := range adjust {
		a(cmd)
	}
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// TestKilledAgent kills an agent process at random moments while it works (C19): after
// each start it goes on, and in the end nothing is lost, doubled or half written.
func TestKilledAgent(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	file := h.TokenFile("acme", "pay", "writer")
	a, b := newMachine(t, "A", h.GRPCAddr, file), newMachine(t, "B", h.GRPCAddr, file)
	b.start()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for round := range 12 {
		cmd := a.background(t)
		for i := range 10 {
			a.write(fmt.Sprintf("project_a%d.md", i), note("a", fmt.Sprintf("%d.%d", round, i)))
			b.write(fmt.Sprintf("project_b%d.md", i), note("b", fmt.Sprintf("%d.%d", round, i)))
		}
		// The fault itself is a moment in time: between start-up and after the push.
		time.Sleep(time.Duration(rnd.IntN(700)) * time.Millisecond)
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()
		for name, text := range a.files() {
			if !strings.HasPrefix(text, "---\n") || !strings.HasSuffix(text, "\n") {
				t.Fatalf("round %d: %s is half written: %q", round, name, text)
			}
		}
	}
	a.background(t)
	for i := range 10 {
		b.has(fmt.Sprintf("project_a%d.md", i), note("a", fmt.Sprintf("11.%d", i)))
		a.has(fmt.Sprintf("project_b%d.md", i), note("b", fmt.Sprintf("11.%d", i)))
	}
	b.settle()
	same(t, a, b)
	hist := historyOf(t, h)
	hist.noDeletes()
	hubtest.Eventually(t, patience, "hub and machines hold the same", func() bool { return cmp.Equal(hist.files(), a.files()) })
}

// TestOrderlyStop asks an agent process to stop while it works: it ends within seconds
// with exit code 0 and leaves no socket behind.
func TestOrderlyStop(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	a := newMachine(t, "A", h.GRPCAddr, h.TokenFile("acme", "pay", "writer"))
	for i := range 200 {
		a.write(fmt.Sprintf("project_%d.md", i), note("a", fmt.Sprint(i)))
	}
	cmd := a.background(t)
	hist := historyOf(t, h)
	hubtest.Eventually(t, patience, "the first commit", func() bool { return hist.head() > 0 })
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("exit: %v\n%s", err, tail(a.log))
		}
	case <-time.After(30 * time.Second): // it takes 5 at most, where it is not kept from it
		t.Fatal("does not stop")
	}
	if _, err := os.Lstat(filepath.Join(a.state, "agent.sock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// TestUnreadableForAWhile takes the right to read a file and a directory away (D3):
// they count as unknown, not as deleted. Root reads everything, so the agent runs as
// another user when the test runs as root.
func TestUnreadableForAWhile(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	token := h.TokenFile("acme", "pay", "writer")
	a, b := newMachine(t, "A", h.GRPCAddr, token), newMachine(t, "B", h.GRPCAddr, token)
	b.start()
	for i := range 10 {
		a.write(fmt.Sprintf("sub/project_%d.md", i), note("s", fmt.Sprint(i)))
		a.write(fmt.Sprintf("project_%d.md", i), note("t", fmt.Sprint(i)))
	}
	asOther := func(*exec.Cmd) {}
	if os.Getuid() == 0 {
		const nobody = 65534
		base := filepath.Dir(a.dir)
		must(t, filepath.WalkDir(base, func(p string, _ os.DirEntry, err error) error {
			if err == nil {
				err = os.Lchown(p, nobody, nobody)
			}
			return err
		}))
		must(t, os.Chown(token, nobody, nobody))
		// Temporary directories of tests are closed to others at every level.
		for d := filepath.Dir(base); d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			must(t, os.Chmod(d, 0o755))
		}
		for d := filepath.Dir(token); d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			must(t, os.Chmod(d, 0o755))
		}
		bin := filepath.Join(base, "agent")
		text, err := os.ReadFile(os.Args[0])
		must(t, err)
		must(t, os.WriteFile(bin, text, 0o755))
		asOther = func(c *exec.Cmd) {
			c.Path = bin
			runAs(c, nobody)
		}
	}
	a.background(t, asOther)
	b.has("sub/project_9.md", note("s", "9"))
	b.has("project_9.md", note("t", "9"))
	must(t, os.Chmod(a.path("sub"), 0))
	must(t, os.Chmod(a.path("project_0.md"), 0))
	// The agent has looked again when this arrives.
	a.write("project_1.md", note("t", "edited"))
	b.has("project_1.md", note("t", "edited"))
	b.write("sub/project_3.md", note("s", "edited at B"))
	b.settle()
	if n := len(b.files()); n != 20 {
		t.Errorf("B has %d files, want all 20", n)
	}
	historyOf(t, h).noDeletes()
	must(t, os.Chmod(a.path("sub"), 0o755))
	must(t, os.Chmod(a.path("project_0.md"), 0o644))
	a.has("sub/project_3.md", note("s", "edited at B"))
	b.settle()
	same(t, a, b)
	historyOf(t, h).noDeletes()
}
