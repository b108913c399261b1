package porttest_test

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/memsvc/memsvc/internal/porttest"
)

// asked makes this program print addresses, hold them until its input ends, and end.
const asked = "PORTTEST_TEST_PRINT"

func TestMain(m *testing.M) {
	if os.Getenv(asked) == "" {
		os.Exit(m.Run())
	}
	t := new(testing.T)
	for range 250 {
		if _, err := os.Stdout.WriteString(porttest.Free(t) + "\n"); err != nil {
			os.Exit(1)
		}
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// TestNobodyElseGetsOne asks in four processes at once, each for more than a block.
func TestNobodyElseGetsOne(t *testing.T) {
	seen := map[string]bool{}
	note := func(addr string) {
		t.Helper()
		if seen[addr] {
			t.Errorf("%s was given twice", addr)
		}
		seen[addr] = true
	}
	var all []*bufio.Scanner
	for range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asked+"=1")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
		all = append(all, bufio.NewScanner(out))
	}
	for range 250 {
		note(porttest.Free(t))
		for _, s := range all {
			if !s.Scan() {
				t.Fatalf("a process ended early: %v", s.Err())
			}
			note(s.Text())
		}
	}
}

// TestNobodyAnswers calls an address: it refuses, and can be listened on.
func TestNobodyAnswers(t *testing.T) {
	addr := porttest.Free(t)
	if c, err := net.Dial("tcp", addr); err == nil {
		_ = c.Close()
		t.Fatalf("somebody answers on %s", addr)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
}
