package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSearchOfManyTranscripts looks through 500 MB of conversations, 48 MB without
// MEMSYNC_E2E_LONG, among them lines of 30 MB, by the real program: it stays below 64 MB
// of memory and tells a person at a terminal how far it is.
func TestSearchOfManyTranscripts(t *testing.T) {
	const mostMB = 64
	size := 48 << 20
	if long() {
		size = 500 << 20
	}
	dir := t.TempDir()
	lines := 0
	for n := range 4 {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("session%d.jsonl", n)))
		must(t, err)
		w := bufio.NewWriterSize(f, 1<<20)
		for written := 0; written < size/4; lines++ {
			k, err := fmt.Fprintf(w, `{"type":"user","uuid":"u%d","sessionId":"s%d","timestamp":"2026-03-01T10:00:00Z","message":{"role":"user","content":%q}}`+"\n",
				lines, n, strings.Repeat(fmt.Sprintf("word%d of line%d ", lines%977, lines), 1+lines%300))
			must(t, err)
			written += k
		}
		// A tool's result as long as clients write them.
		fmt.Fprintf(w, `{"type":"user","sessionId":"s%d","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"%s buried%d %s"}]}}`+"\n",
			n, strings.Repeat("0123456789abcdef", 1<<20), n, strings.Repeat("0123456789abcdef", 14<<16))
		must(t, w.Flush())
		must(t, f.Close())
	}
	// The program itself: the test binary holds much besides.
	program := filepath.Join(t.TempDir(), "memsync-agent")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "github.com/memsvc/memsvc/cmd/memsync-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	terminal, shown := newTerminal(t)
	search := func(word string) (out string, peakMB int, took time.Duration) {
		t.Helper()
		cmd := exec.Command(program, "transcripts", "search", word, "--dir", dir, "--json")
		cmd.Env = []string{"HOME=" + dir}
		var b bytes.Buffer
		cmd.Stdout, cmd.Stderr = &b, terminal
		began := time.Now()
		must(t, cmd.Start())
		var ended atomic.Bool
		done := make(chan error, 1)
		go func() {
			err := cmd.Wait()
			ended.Store(true)
			done <- err
		}()
		for !ended.Load() { // the kernel keeps the peak; it is gone with the process
			if kb := peakKB(cmd.Process.Pid); kb > 0 {
				peakMB = kb >> 10
			}
			time.Sleep(time.Millisecond)
		}
		must(t, <-done)
		return b.String(), peakMB, time.Since(began)
	}
	for word, want := range map[string]string{"nowhere": "[]\n", "buried2": "session2.jsonl", fmt.Sprintf("line%d", lines/2): "word"} {
		out, peak, took := search(word)
		t.Logf("%s: %d MB of memory, %s for %d MB", word, peak, took.Round(time.Millisecond), size>>20)
		if !strings.Contains(out, want) {
			t.Errorf("%s: found %s", word, out)
		}
		if peak == 0 || peak > mostMB {
			t.Errorf("%s: %d MB of memory at the peak, want at most %d", word, peak, mostMB)
		}
	}
	must(t, terminal.Close())
	text := <-shown
	last, steps := -1, map[int]bool{}
	for _, m := range regexp.MustCompile(`\r *(\d+) % of \d+ MB`).FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		must(t, err)
		if n < last && last != 100 { // the next search begins anew
			t.Errorf("progress goes from %d to %d %%", last, n)
		}
		last = n
		steps[n] = true
	}
	if len(steps) < 4 || !steps[100] {
		t.Errorf("progress was told as %v", steps)
	}
}

// peakKB returns the most memory that a process has had resident; 0 if it is gone.
func peakKB(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	kb, _ := strconv.Atoi(strings.Fields(rest + " 0")[0])
	return kb
}

// newTerminal returns a terminal for a program to write to, and where all that was shown
// on it arrives once it is closed.
func newTerminal(t *testing.T) (*os.File, <-chan string) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = screen.Close() })
	must(t, unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	must(t, err)
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	shown := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(screen) // ends with an error once nobody holds the terminal
		shown <- string(text)
	}()
	return terminal, shown
}
