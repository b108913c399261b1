//go:build linux

package killtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for something that must happen; nothing takes a tenth of
// it on a machine that is not on its knees.
const patience = 60 * time.Second

// process is a program that runs beside the test.
type process struct {
	name string
	cmd  *exec.Cmd
	out  *buffer
	done chan struct{}
}

// buffer keeps what a program writes.
type buffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// command prepares a program without the settings of whoever runs the test, in a group
// of its own that dies with the test.
func command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(os.Getenv(programsVariable), program), args...)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "MEMSVC_") && !strings.HasPrefix(kv, "MEMSYNC_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// of makes cmd run the program of another directory; "" leaves it.
func of(programs string, cmd *exec.Cmd) *exec.Cmd {
	if programs != "" {
		cmd.Path = filepath.Join(programs, filepath.Base(cmd.Path))
	}
	return cmd
}

// launch starts a program and makes sure that it ends with the test, and that its log
// is seen if the test fails.
func launch(t *testing.T, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{name: name, cmd: cmd, out: &buffer{}, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
			t.Logf("last lines of %s (process %d):\n  %s", name, cmd.Process.Pid, strings.Join(lines[max(0, len(lines)-15):], "\n  "))
		}
	})
	return p
}

// kill ends the program and whatever it started as kill -9 does.
func (p *process) kill() {
	if p.running() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
	<-p.done
}

// stop asks the program to end and returns its exit code.
func (p *process) stop(t *testing.T) int {
	t.Helper()
	if p.running() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	return p.exit(t)
}

// exit waits for the program's end and returns its exit code.
func (p *process) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.kill()
		t.Fatalf("%s did not end within %v", p.name, patience)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// call runs a program to its end.
func call(t *testing.T, program string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return finish(t, command(t.Context(), program, args...))
}

// finish runs a prepared program to its end.
func finish(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %v: %v", cmd.Args, err)
	}
	late := time.AfterFunc(patience, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	err := cmd.Wait()
	if !late.Stop() {
		t.Fatalf("%v did not end within %v: %s", cmd.Args, patience, &errOut)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// eventually waits until trouble returns "" or fails the test with what it said last.
func eventually(t *testing.T, within time.Duration, what string, trouble func() string) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		last := trouble()
		if last == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s: %s", within, what, last)
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("the test ended while it waited: %s: %s", what, last)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// soon waits until trouble returns "", and fails the test if that takes longer than a promise
// says. What the machine held the test up for is not counted: that a look at a program took
// long, or that its turn came late.
func soon(t *testing.T, promised time.Duration, what string, trouble func() string) {
	t.Helper()
	const look, rest = 200 * time.Millisecond, 20 * time.Millisecond // more is the machine's
	began := time.Now()
	last, heldUp, took := "", time.Duration(0), time.Duration(0)
	eventually(t, 2*patience, what, func() string {
		now := time.Now()
		if last != "" {
			heldUp += max(0, now.Sub(began)-took-2*rest)
		}
		last = trouble()
		heldUp += max(0, time.Since(now)-look)
		if last == "" && now.Sub(began) > promised+2*heldUp {
			t.Errorf("%s: after %v, want it within %v; the test was held up for %v", what, now.Sub(began), promised, heldUp)
		}
		took = time.Since(began)
		return last
	})
}

// oneLine fails the test unless text is one line that holds every one of the words.
func oneLine(t *testing.T, text string, words ...string) {
	t.Helper()
	text = strings.TrimSpace(text)
	if text == "" || strings.Contains(text, "\n") {
		t.Errorf("want one clear line, got %q", text)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("the line does not say %q: %s", w, text)
		}
	}
}
