package filelock_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/filelock"
)

func open(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestOnlyOneHolds(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	a, b := open(t, name), open(t, name)
	if err := filelock.TryLock(a); err != nil {
		t.Fatal(err)
	}
	if err := filelock.TryLock(b); !errors.Is(err, filelock.ErrHeld) {
		t.Fatalf("the second got %v, want ErrHeld", err)
	}
	done := make(chan error, 1)
	go func() { done <- filelock.Lock(t.Context(), b) }()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatalf("after the first let go: %v", err)
	}
}

func TestLockGivesUpWithItsContext(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	a, b := open(t, name), open(t, name)
	if err := filelock.TryLock(a); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- filelock.Lock(ctx, b) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the context's error", err)
	}
}

func TestSharedAndExclusive(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	a, b, c := open(t, name), open(t, name), open(t, name)
	for _, f := range []*os.File{a, b} {
		if err := filelock.TryShare(f); err != nil {
			t.Fatalf("two share it: %v", err)
		}
	}
	if err := filelock.TryLock(c); !errors.Is(err, filelock.ErrHeld) {
		t.Fatalf("exclusive beside two who share: %v, want ErrHeld", err)
	}
	_, _ = a.Close(), b.Close()
	if err := filelock.TryLock(c); err != nil {
		t.Fatal(err)
	}
	if err := filelock.TryShare(open(t, name)); !errors.Is(err, filelock.ErrHeld) {
		t.Fatalf("shared beside exclusive: %v, want ErrHeld", err)
	}
}

// TestReleasedBesideAStartingProgram holds the open file once more, as a program does that
// this process is just starting: what was released is free all the same.
func TestReleasedBesideAStartingProgram(t *testing.T) {
	stop := make(chan struct{})
	var starters sync.WaitGroup
	for range 2 {
		starters.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = exec.Command(os.Args[0], "-test.run=^$").Run()
				}
			}
		})
	}
	defer starters.Wait()
	defer close(stop)
	name := filepath.Join(t.TempDir(), "lock")
	for n, end := 0, time.Now().Add(3*time.Second); time.Now().Before(end); n++ {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := filelock.TryLock(f); err != nil {
			t.Fatalf("after %d times: %v", n, err)
		}
		if err := filelock.Release(f); err != nil {
			t.Fatal(err)
		}
	}
}
