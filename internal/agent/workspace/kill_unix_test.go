//go:build unix

package workspace

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

const killEnv = "MEMSYNC_TEST_WRITE_CHILD"

// killText is the n-th text; long ones make half a file likely where that can be.
func killText(n int) string { return strings.Repeat(strconv.Itoa(n)+" ", 20_000) }

// writeWithoutEnd replaces one file over and over and says each number once its write
// is acknowledged.
func writeWithoutEnd(dir string) error {
	w, err := New(dir, Options{})
	if err != nil {
		return err
	}
	const path = memory.Path("sub/a.md")
	expect := memory.ETag("")
	if b, err := w.Read(context.Background(), path); err == nil {
		expect = memory.ETagOf(b)
	}
	for n := os.Getpid() * 10_000; ; n++ {
		text := []byte(killText(n))
		if err := w.Write(context.Background(), path, text, time.Time{}, expect); err != nil {
			return err
		}
		expect = memory.ETagOf(text)
		fmt.Println(n)
	}
}

// A process that is killed while it writes leaves a whole file, the acknowledged text
// or the next, and at most a hidden temporary file, which is cleaned up.
func TestKillDuringWrite(t *testing.T) {
	w := open(t)
	must(t, os.Mkdir(filepath.Join(w.dir, "sub"), 0o755))
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	leftovers := 0
	for round := range 30 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killEnv+"="+w.dir)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		acked := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			n, err := strconv.Atoi(lines.Text())
			if err != nil {
				t.Fatalf("the process said %q", lines.Text())
			}
			if acked == 0 {
				time.AfterFunc(time.Duration(rnd.IntN(20_000))*time.Microsecond, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
			}
			acked = n
		}
		_ = cmd.Wait()
		b, err := os.ReadFile(filepath.Join(w.dir, "sub", "a.md"))
		must(t, err)
		if got := string(b); got != killText(acked) && got != killText(acked+1) {
			t.Fatalf("round %d: %d bytes that begin %.30q; %d was acknowledged", round, len(got), got, acked)
		}
		leftovers = 0
		for name := range tree(t, w.dir) {
			if base := filepath.Base(name); isTempName(base) || isDisplaced(base) {
				leftovers++
			} else if strings.HasPrefix(base, ".") && base != "." {
				t.Fatalf("round %d left %s", round, name)
			}
		}
	}
	t.Logf("%d temporary files were left over", leftovers)
	w.opts.StaleTemp = time.Nanosecond
	if got := paths(scanOf(t, w)); len(got) != 1 {
		t.Errorf("%v", got)
	}
	must(t, w.Mend(t.Context()))
	must(t, w.Write(t.Context(), "b.md", []byte("x"), time.Time{}, ""))
	if got := len(tree(t, w.dir)); got != 4 {
		t.Errorf("not cleaned up: %v", tree(t, w.dir))
	}
}
