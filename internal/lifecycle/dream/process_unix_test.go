//go:build unix

package dream_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/lifecycle/dream"
)

// The test binary is also the process that is killed.
const (
	envRole = "DREAM_TEST_ROLE"
	envDir  = "DREAM_TEST_DIR"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		if err := play(role, os.Getenv(envDir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func play(role, base string) error {
	d := dreamerOf(base)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	d.StopAt(func(step string) error { fmt.Println(step); return nil })
	switch role {
	case "dream":
		r, err := d.Run(ctx, dream.Options{Force: true})
		if err == nil && r.Skipped == "" {
			fmt.Println("ran")
		}
		return err
	case "undo":
		_, err := d.Undo(ctx)
		return err
	}
	return fmt.Errorf("no role %q", role)
}

func process(t *testing.T, role, base string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), envRole+"="+role, envDir+"="+base)
	cmd.Stderr = os.Stderr
	return cmd
}

// crowd fills a store with much to do.
func (w *world) crowd() {
	for i := range 12 {
		what := fmt.Sprintf("of the service number%d its queue and its workers", i)
		w.write(fmt.Sprintf("project_x%d.md", i), mem(fmt.Sprintf("Topic%d", i), "project", fmt.Sprintf("Notes %s, seen yesterday.\n", what)), 2)
		if i < 5 {
			w.write(fmt.Sprintf("project_y%d.md", i), mem(fmt.Sprintf("Topic%d", i), "project", fmt.Sprintf("Notes %s, seen two days ago.\nAlso %d.\n", what, i)), 5)
		}
		w.write(fmt.Sprintf("team/t%d.md", i), mem(fmt.Sprintf("Team%d", i), "project", fmt.Sprintf("Decided %s last Tuesday.\n", what)), 2)
	}
	w.write("MEMORY.md", "# Mine\n", 1)
	w.write("team/MEMORY.md", line("gone", "gone.md"), 1)
}

// killed starts a process and kills it at a random moment after it began to change things,
// or just before.
func killed(t *testing.T, role, base string) {
	t.Helper()
	cmd := process(t, role, base)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if rand.IntN(3) > 0 {
		_, _ = out.Read(make([]byte, 1)) // the journal is there, or the process is over
	}
	time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond) // a random moment, not a condition
	_ = cmd.Process.Kill()                                       // it may be over
	_ = cmd.Wait()
}

// TestKilledAtAnyMoment kills dreams and undos. After Recover the store is as it was
// before, or as it is after; nothing in between, and nothing is lost.
func TestKilledAtAnyMoment(t *testing.T) {
	example := newWorld(t)
	example.crowd()
	before := example.files()
	example.run(dream.Options{Force: true})
	after := example.files()
	ended := map[string]int{}
	for round := range 12 {
		w := newWorld(t)
		w.crowd()
		prior := now.Add(-48 * time.Hour)
		w.setLock("", prior)
		for _, role := range []string{"dream", "undo"} {
			killed(t, role, filepath.Dir(w.dir))
			_, err := w.d.Recover(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := w.files()
			switch {
			case cmp.Equal(got, before):
				ended[role+" before"]++
			case cmp.Equal(got, after):
				ended[role+" after"]++
			default:
				t.Fatalf("round %d, %s (-before +got):\n%s", round, role, cmp.Diff(before, got))
			}
			body, at := w.lock()
			if body != "" || role == "dream" && cmp.Equal(got, after) && !at.Equal(now) || cmp.Equal(got, before) && role == "dream" && !at.Equal(prior) {
				t.Errorf("round %d, %s: the lock is %q of %s", round, role, body, at)
			}
			left, err := filepath.Glob(filepath.Join(w.d.Dir, "stage-*"))
			if err != nil || len(left) > 0 {
				t.Errorf("%v is left, %v", left, err)
			}
		}
	}
	t.Log(ended)
}

// TestOneDreamAtATime starts many processes at once: one runs, the others are skipped or
// come when it is over, and find nothing to do.
func TestOneDreamAtATime(t *testing.T) {
	w := newWorld(t)
	w.crowd()
	var outs []*strings.Builder
	var cmds []*exec.Cmd
	for range 12 {
		cmd := process(t, "dream", filepath.Dir(w.dir))
		out := &strings.Builder{}
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	began, ran := 0, 0
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		if strings.Contains(outs[i].String(), "journal") {
			began++
		}
		if strings.Contains(outs[i].String(), "ran") {
			ran++
		}
	}
	if began != 1 || ran < 1 {
		t.Errorf("%d processes changed something, %d ran", began, ran)
	}
	log, err := w.d.Log(t.Context())
	if err != nil || len(log) != 1 {
		t.Errorf("%d dreams are recorded, %v", len(log), err)
	}
}

func TestAPipeIsNoLock(t *testing.T) {
	w := newWorld(t)
	w.write("a.md", mem("A", "project", "x\n"), 1)
	file := filepath.Join(w.dir, dream.LockName)
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.d.Run(t.Context(), dream.Options{Force: true}); err == nil || !strings.Contains(err.Error(), file+" is a named pipe") {
		t.Errorf("%v", err)
	}
}
