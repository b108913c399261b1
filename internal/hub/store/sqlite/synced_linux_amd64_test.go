package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// The calls that matter, as the kernel numbers them on this architecture.
const (
	callWrite     = syscall.SYS_WRITE
	callPwrite    = syscall.SYS_PWRITE64
	callFsync     = syscall.SYS_FSYNC
	callFdatasync = syscall.SYS_FDATASYNC
)

const (
	waitAnyThread = 0x40000000 // __WALL
	killWithUs    = 0x00100000 // PTRACE_O_EXITKILL
	stopAtCall    = 0x80       // what PTRACE_O_TRACESYSGOOD adds to the signal of a call's stop
)

// TestAnswersComeAfterTheSync is what a power cut needs: every byte of SQLite's log was
// synced before a commit is acknowledged. The calls of a real process are watched.
func TestAnswersComeAfterTheSync(t *testing.T) {
	const acks = 40
	// The thread that starts the process alone may ask about it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+t.TempDir(), crashWritersEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	cmd.Stderr = os.Stderr
	out, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		if errors.Is(err, syscall.EPERM) {
			t.Skipf("this machine lets no process watch another: %v", err)
		}
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		// Each thread of it has to be let go by whoever watches it.
		for {
			var ws syscall.WaitStatus
			if _, err := syscall.Wait4(-1, &ws, waitAnyThread, nil); err != nil && !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		_, _ = cmd.Process.Wait()
	}()
	w := watched{main: cmd.Process.Pid, inside: map[int]bool{}, began: map[int]int{}}
	if err := w.until(acks); err != nil {
		t.Fatal(err)
	}
	if w.acks < acks || w.syncs == 0 {
		t.Errorf("saw %d answers and %d syncs", w.acks, w.syncs)
	}
	if w.early > 0 {
		t.Errorf("%d of %d answers came before the log was synced", w.early, w.acks)
	}
}

// watched follows the calls of a process.
type watched struct {
	main   int
	inside map[int]bool // threads within a call
	began  map[int]int  // threads within a sync of the log: writes before it
	writes int          // to the log
	synced int          // of these
	syncs  int
	acks   int
	early  int // answers before a sync
}

// until follows the process until it has written so many answers.
func (w *watched) until(acks int) error {
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(w.main, &ws, waitAnyThread, nil); err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	if err := syscall.PtraceSetOptions(w.main, syscall.PTRACE_O_TRACESYSGOOD|syscall.PTRACE_O_TRACECLONE|killWithUs); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	for tid := w.main; ; {
		signal := 0
		if ws.Stopped() {
			switch sig := ws.StopSignal(); {
			case sig == syscall.SIGTRAP|stopAtCall:
				if err := w.call(tid); err != nil {
					return err
				}
			case sig != syscall.SIGTRAP && sig != syscall.SIGSTOP: // these are of the watching itself
				signal = int(sig)
			}
			if w.acks >= acks {
				return nil
			}
			// A thread may be gone already.
			if err := syscall.PtraceSyscall(tid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("go on: %w", err)
			}
		} else if tid == w.main {
			return fmt.Errorf("the process ended by itself: %v", ws)
		}
		var err error
		for {
			if tid, err = syscall.Wait4(-1, &ws, waitAnyThread, nil); !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("wait: %w", err)
		}
	}
}

// call looks at a call that a thread enters or leaves.
func (w *watched) call(tid int) error {
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(tid, &regs); err != nil {
		if errors.Is(err, syscall.ESRCH) {
			return nil
		}
		return fmt.Errorf("registers: %w", err)
	}
	w.inside[tid] = !w.inside[tid]
	entering := w.inside[tid]
	switch number, fd := int(regs.Orig_rax), int(int32(regs.Rdi)); number { //nolint:gosec // a descriptor
	case callWrite, callPwrite:
		switch {
		case !entering:
		case fd == 1:
			text := make([]byte, 3)
			if _, err := syscall.PtracePeekData(tid, uintptr(regs.Rsi), text); err != nil || !bytes.Equal(text, []byte("ack")) {
				return nil //nolint:nilerr // something else was written
			}
			if w.acks++; w.synced < w.writes {
				w.early++
			}
		case w.isLog(fd):
			w.writes++
		}
	case callFsync, callFdatasync:
		switch {
		case entering && w.isLog(fd):
			w.began[tid] = w.writes
		case !entering && w.isLog(fd) && regs.Rax == 0:
			w.syncs++
			w.synced = max(w.synced, w.began[tid])
		}
	}
	return nil
}

func (w *watched) isLog(fd int) bool {
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", w.main, fd))
	return err == nil && strings.HasSuffix(name, "-wal")
}
