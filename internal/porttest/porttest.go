// Package porttest gives tests ports of loopback that stay theirs while nobody listens
// there: before a server starts, while it is down, and where none is ever to answer. A
// port that the system chose and that was closed again is another process's a moment
// later, which tests of other packages, run at the same time, then are.
package porttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/memsvc/memsvc/internal/filelock"
)

// The ports lie below the range from which systems choose by themselves (Linux: 32768,
// macOS and Windows: 49152), so that no outgoing connection and no listener on port 0
// takes one. They come in blocks, each of one process as long as it runs.
const (
	lowest = 15000
	block  = 100
	blocks = 170
)

var (
	mu   sync.Mutex
	left []int      // ports of the newest block that nobody asked for yet
	held []*os.File // whose locks say that the blocks are ours; they end with the process
)

// Free returns the address, 127.0.0.1 and a port, that no other call returns, in this
// process or in another that asks here. Nobody listened on it just now.
func Free(t testing.TB) string {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	for {
		for len(left) == 0 {
			if err := take(); err != nil {
				t.Fatalf("porttest: %v", err)
			}
		}
		addr := fmt.Sprintf("127.0.0.1:%d", left[0])
		left = left[1:]
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			continue // a program that knows nothing of our blocks
		}
		if err := ln.Close(); err != nil {
			t.Fatalf("porttest: %v", err)
		}
		return addr
	}
}

// take makes a block ours that no process holds.
func take() error {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("memsvc-porttest-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, n := range rand.Perm(blocks) {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(n)), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		switch err := filelock.TryLock(f); {
		case err == nil:
			held = append(held, f)
			for port := range block {
				left = append(left, lowest+n*block+port)
			}
			return nil
		case !errors.Is(err, filelock.ErrHeld):
			_ = f.Close()
			return err
		}
		_ = f.Close()
	}
	return errors.New("every block of ports is some process's")
}
