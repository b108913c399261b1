//go:build unix

package command_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/model/command"
)

func ask(ctx context.Context, req model.Request, script string, args ...string) (model.Response, error) {
	return command.New(append([]string{"sh", "-c", script, "sh"}, args...)).Complete(ctx, req)
}

func one(text string) model.Request {
	return model.Request{System: "Be brief.", Messages: []model.Message{model.Say(model.RoleUser, text)}}
}

func TestPromptInTextOut(t *testing.T) {
	resp, err := ask(t.Context(), one("Hi"), `cat; printf '[%s]\n\n' "$MEMSYNC_HOOKS_OFF"; echo private >&2`)
	if err != nil || resp.Text() != "Be brief.\n\nHi\n[1]" || resp.Stop != model.StopEnd {
		t.Errorf("%q, %v", resp.Text(), err)
	}
	if resp.Usage != (model.Usage{Input: 4, Output: 5}) {
		t.Errorf("usage %+v", resp.Usage)
	}
	long := model.Request{Messages: []model.Message{model.Say(model.RoleUser, "A?"), model.Say(model.RoleAssistant, "B."), model.Say(model.RoleUser, "C?")}}
	if resp, err := ask(t.Context(), long, "cat"); err != nil || resp.Text() != "User:\nA?\nAssistant:\nB.\nUser:\nC?" {
		t.Errorf("%q, %v", resp.Text(), err)
	}
}

func TestTrouble(t *testing.T) {
	big := one(strings.Repeat("x", 1<<20)) // that nobody reads
	for script, want := range map[string]error{
		"echo private; echo private >&2; exit 7": model.ErrBusy,
		"true":                                   model.ErrMalformed,
		"cat /dev/zero":                          model.ErrMalformed,
		"kill -9 $$":                             model.ErrBusy,
		"exec 0<&-; echo ' \n\t'":                model.ErrMalformed,
	} {
		if _, err := ask(t.Context(), big, script); !errors.Is(err, want) || strings.Contains(err.Error(), "private") {
			t.Errorf("%s: %v, want %v", script, err, want)
		}
	}
	if _, err := command.New([]string{"/nowhere/private"}).Complete(t.Context(), big); !errors.Is(err, model.ErrDenied) || strings.Contains(err.Error(), "nowhere") {
		t.Errorf("no program: %v", err)
	}
	big.Tools = []model.Tool{{Name: "read"}}
	if _, err := ask(t.Context(), big, "cat"); !errors.Is(err, model.ErrNoTools) {
		t.Errorf("tools: %v", err)
	}
}

// TestDiesWithItsChildren: the end of the context ends the program and what it started.
func TestDiesWithItsChildren(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "pids")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := ask(ctx, one("x"), `exec 3>"$1"; sh -c 'echo $$ >&3; while :; do sleep 1; done' & wait`, fifo)
		done <- err
	}()
	f, err := os.Open(fifo) // waits for the program
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewReader(f)
	line, err := in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	// The pipe ends once nobody holds its other side: all of them are gone.
	ended := make(chan struct{})
	go func() { _, _ = in.ReadString('\n'); close(ended) }()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("a child outlived the call")
	}
}
