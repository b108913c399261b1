package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

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
// itself: a daemon waits for it, and takes what was linked meanwhile. Where another
// daemon answers, it does not.
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
	second := Link{Hub: "127.0.0.1:1", TokenFile: token, Team: "acme", Project: "shop", Dir: filepath.Join(base, "shop")}
	if err := stateDir(state).storeLinks([]Link{second}); err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	<-ready
	var st Status
	if err := control.Call(ctx, state, methodStatus, nil, &st); err != nil || len(st.Links) != 2 {
		t.Errorf("links served: %d, want 2: %v", len(st.Links), err)
	}
	if _, stderr, code := invoke(t, args...); code != ExitTrouble || !strings.Contains(stderr, "another memsync-agent uses this state directory") {
		t.Errorf("a second daemon: exit %d, %s", code, stderr)
	}
	cancel()
	if code := <-ended; code != ExitOK {
		t.Errorf("exit %d", code)
	}
}

// TestLinksMadeAtOnceAreAllThere links and unlinks with many commands at the same
// time: none undoes what another stored, and the daemon serves what is linked.
func TestLinksMadeAtOnceAreAllThere(t *testing.T) {
	const many = 12
	base := t.TempDir()
	state, token := filepath.Join(base, "s"), filepath.Join(base, "token")
	if err := os.WriteFile(token, []byte("msv_x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var old []Link
	for i := range many {
		name := fmt.Sprint("old", i)
		old = append(old, Link{Hub: "127.0.0.1:1", TokenFile: token, Team: "acme", Project: name, Dir: filepath.Join(base, name)})
	}
	if err := stateDir(state).storeLinks(old); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready, ended := make(chan struct{}), make(chan int, 1)
	go func() {
		ended <- Main(ctx, App{Args: []string{"run", "--state-dir", state}, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Ready: func() { close(ready) }})
	}()
	<-ready
	var wg sync.WaitGroup
	var want []string
	for i := range many {
		name := fmt.Sprint("new", i)
		want = append(want, name)
		for _, args := range [][]string{
			{"link", "--hub", "127.0.0.1:1", "--token-file", token, "--team", "acme", "--project", name, "--dir", filepath.Join(base, name), "--state-dir", state},
			{"unlink", fmt.Sprint("acme/old", i), "--state-dir", state},
		} {
			wg.Go(func() {
				if _, stderr, code := invoke(t, args...); code != ExitOK {
					t.Errorf("%v: exit %d, %s", args[:2], code, stderr)
				}
			})
		}
	}
	wg.Wait()
	slices.Sort(want)
	stored, err := stateDir(state).storedLinks()
	if err != nil {
		t.Fatal(err)
	}
	var st Status
	if err := control.Call(ctx, state, methodStatus, nil, &st); err != nil {
		t.Fatal(err)
	}
	var kept, served []string
	for _, l := range stored {
		kept = append(kept, l.Project)
	}
	for _, l := range st.Links {
		served = append(served, l.Project)
	}
	slices.Sort(kept)
	slices.Sort(served)
	if d := cmp.Diff(want, kept); d != "" {
		t.Errorf("stored (-want +got):\n%s", d)
	}
	if d := cmp.Diff(want, served); d != "" {
		t.Errorf("served (-want +got):\n%s", d)
	}
	cancel()
	if code := <-ended; code != ExitOK {
		t.Errorf("exit %d", code)
	}
}

// TestServersThatStartAtOnceShareTheirToken: what a client reads is what each of them takes.
func TestServersThatStartAtOnceShareTheirToken(t *testing.T) {
	for range 20 {
		state := stateDir(filepath.Join(t.TempDir(), "s"))
		got := make(chan string, 8)
		var wg sync.WaitGroup
		for range cap(got) {
			wg.Go(func() {
				token, err := state.mcpToken(t.Context())
				if err != nil {
					t.Error(err)
				}
				got <- token
			})
		}
		wg.Wait()
		close(got)
		kept, err := os.ReadFile(state.path(mcpTokenFile))
		if err != nil {
			t.Fatal(err)
		}
		for token := range got {
			if token+"\n" != string(kept) {
				t.Fatalf("a server takes a token that is not the one in %s", mcpTokenFile)
			}
		}
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

// TestHealthcheck asks a daemon, for a container without a shell, and again when there is none.
func TestHealthcheck(t *testing.T) {
	base := t.TempDir()
	state, token := filepath.Join(base, "s"), filepath.Join(base, "token")
	if err := os.WriteFile(token, []byte("msv_x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := []string{"healthcheck", "--state-dir", state}
	if stdout, stderr, code := invoke(t, check...); code != ExitTrouble || stdout != "" || !strings.Contains(stderr, "no daemon serves "+state) {
		t.Errorf("without a daemon: exit %d, %q, %s", code, stdout, stderr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready, ended := make(chan struct{}), make(chan int, 1)
	args := []string{"run", "--hub", "127.0.0.1:1", "--token-file", token, "--team", "acme", "--project", "pay", "--dir", filepath.Join(base, "team"), "--state-dir", state}
	go func() {
		ended <- Main(ctx, App{Args: args, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Ready: func() { close(ready) }})
	}()
	<-ready
	if stdout, stderr, code := invoke(t, append(check[:len(check):len(check)], "--timeout", patience.String())...); code != ExitOK || stdout != "serving, links: 1\n" {
		t.Errorf("with a daemon whose hub is away: exit %d, %q, %s", code, stdout, stderr)
	}
	if _, stderr, code := invoke(t, append(check, "--timeout", "-1s")...); code != ExitUsage || !strings.Contains(stderr, "--timeout") {
		t.Errorf("a negative time to wait: exit %d, %s", code, stderr)
	}
	cancel()
	if code := <-ended; code != ExitOK {
		t.Errorf("exit %d", code)
	}
}

// TestOpsPortStaysOnLoopback unless somebody says that it is protected.
func TestOpsPortStaysOnLoopback(t *testing.T) {
	base := t.TempDir()
	token := filepath.Join(base, "token")
	if err := os.WriteFile(token, []byte("msv_x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(more ...string) (string, int) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		args := append([]string{"run", "--hub", "127.0.0.1:1", "--token-file", token, "--team", "acme", "--project", "pay", "--dir", filepath.Join(base, "team"), "--state-dir", filepath.Join(base, "s")}, more...)
		var stderr strings.Builder
		code := Main(ctx, App{Args: args, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &stderr, Ready: cancel})
		return stderr.String(), code
	}
	for _, addr := range []string{":0", "0.0.0.0:0", "agent.example:0"} {
		if stderr, code := run("--ops-addr", addr); code != ExitUsage || !strings.Contains(stderr, "--insecure-ops") {
			t.Errorf("--ops-addr %s: exit %d, %s", addr, code, stderr)
		}
	}
	// No machine has this address, so that the test listens on loopback only: the
	// flag lets it through, and the system refuses it.
	if stderr, code := run("--ops-addr", "203.0.113.1:0", "--insecure-ops"); code != ExitTrouble || !strings.Contains(stderr, "--ops-addr: listen") {
		t.Errorf("--insecure-ops: exit %d, %s", code, stderr)
	}
	if stderr, code := run("--ops-addr", "127.0.0.1:0"); code != ExitOK {
		t.Errorf("loopback: exit %d, %s", code, stderr)
	}
}
