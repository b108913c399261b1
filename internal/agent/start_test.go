package agent

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/agent/control"
	"github.com/memsvc/memsvc/internal/agent/syncstate"
	"github.com/memsvc/memsvc/internal/agent/workspace"
)

func TestTakenDirectoryIsRefusedAtTheStart(t *testing.T) {
	dir := t.TempDir()
	first, err := workspace.LockRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := isFree(dir); !errors.Is(err, workspace.ErrRootLocked) {
		t.Errorf("a taken directory: %v", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // looking takes nothing
		if err := isFree(dir); err != nil {
			t.Errorf("a free directory: %v", err)
		}
	}
}

// TestRunWaitsForACommand holds the state directory as a command does that syncs by
// itself: a daemon waits for it. Where another daemon answers, it does not.
func TestRunWaitsForACommand(t *testing.T) {
	base := t.TempDir()
	state := filepath.Join(base, "s")
	lock, err := control.Acquire(state)
	if err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(base, "token")
	if err := os.WriteFile(token, []byte("msv_x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--hub", "127.0.0.1:1", "--token-file", token, "--team", "acme", "--project", "pay", "--dir", filepath.Join(base, "team"), "--state-dir", state}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waits, logged := io.Pipe()
	ready, ended := make(chan struct{}), make(chan int, 1)
	go func() {
		ended <- Main(ctx, App{Args: args, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: logged, Ready: func() { close(ready) }})
		logged.Close()
	}()
	lines := bufio.NewScanner(waits)
	for lines.Scan() && !strings.Contains(lines.Text(), "waiting until the command") {
	}
	go func() { _, _ = io.Copy(io.Discard, waits) }()
	select {
	case code := <-ended:
		t.Fatalf("the daemon ended with %d instead of waiting", code)
	case <-ready:
		t.Fatal("the daemon serves a state directory that is in use")
	default:
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	<-ready
	if _, stderr, code := invoke(t, args...); code != ExitTrouble || !strings.Contains(stderr, "another memsync-agent uses this state directory") {
		t.Errorf("a second daemon: exit %d, %s", code, stderr)
	}
	cancel()
	if code := <-ended; code != ExitOK {
		t.Errorf("exit %d", code)
	}
}

func TestDamagedStateIsTold(t *testing.T) {
	for want, r := range map[string]syncstate.Report{
		"":                       {Fresh: true},
		"put aside to /s/aside":  {Damage: "damaged at byte 7", Aside: "/s/aside"},
		"(damaged at byte 7)":    {Damage: "damaged at byte 7"},
		"41 bytes of an unfinis": {CutBytes: 41},
	} {
		if got := foundState(r); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%+v: %q does not say %q", r, got, want)
		}
	}
}
