package agent

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"
)

// TestHookEndsWithItsClient: a hook that is held up, here by an event that never comes
// whole, ends as soon as it is asked to, and says nothing.
func TestHookEndsWithItsClient(t *testing.T) {
	in, hold := io.Pipe()
	t.Cleanup(func() { _ = hold.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- Main(ctx, App{Args: []string{"hook", "Stop"}, Stdin: in, Stdout: &out, Stderr: io.Discard})
	}()
	cancel()
	select {
	case code := <-done:
		if code != ExitOK || out.Len() > 0 {
			t.Errorf("exit code %d, said %q", code, out.String())
		}
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
}

// TestHookEndsInTime: one that is held up says nothing once its time is over.
func TestHookEndsInTime(t *testing.T) {
	in, hold := io.Pipe()
	t.Cleanup(func() { _ = hold.Close() })
	var out bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- Main(t.Context(), App{Args: []string{"hook", "UserPromptSubmit"}, Stdin: in, Stdout: &out, Stderr: io.Discard, HookTime: time.Millisecond})
	}()
	select {
	case code := <-done:
		if code != ExitOK || out.Len() > 0 {
			t.Errorf("exit code %d, said %q", code, out.String())
		}
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
}
