//go:build linux

package killtest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// programsVariable names where TestMain puts the two programs, readable for every user, since
// some tests run them as one without rights.
const programsVariable = "KILLTEST_PROGRAMS"

// TestMain builds the two programs, as they ship: static, without cgo.
func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "killtest-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "killtest:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator),
		"github.com/memsvc/memsvc/cmd/memsvc", "github.com/memsvc/memsvc/cmd/memsync-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "killtest: build the programs: %v\n%s", err, out)
		return 1
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, "killtest:", err)
		return 1
	}
	if err := os.Setenv(programsVariable, dir); err != nil {
		fmt.Fprintln(os.Stderr, "killtest:", err)
		return 1
	}
	// The tests wait most of their time, for processes that are few and small: more of
	// them at a time than there are processors end sooner.
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("6"); err != nil {
			fmt.Fprintln(os.Stderr, "killtest:", err)
			return 1
		}
	}
	return m.Run()
}

// rounds is how many rounds of kills are wanted.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("MEMSVC_KILL_ROUNDS")); err == nil && n > 0 {
		return n
	}
	return 1
}

// long skips a test that waits for time-outs of the product unless a long run is wanted.
func long(t *testing.T, why string) {
	t.Helper()
	if rounds() < 2 {
		t.Skipf("it waits for real time-outs (%s); MEMSVC_KILL_ROUNDS=2 runs it", why)
	}
}
