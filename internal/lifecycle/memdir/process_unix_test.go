//go:build unix

package memdir_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/memory"
)

// The test binary is also the process that is started many times, or killed.
const (
	envRole = "MEMDIR_TEST_ROLE"
	envDir  = "MEMDIR_TEST_DIR"
	envName = "MEMDIR_TEST_NAME"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		if err := play(role, os.Getenv(envDir), os.Getenv(envName)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func play(role, dir, name string) error {
	d, err := memdir.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	switch role {
	case "append":
		path := memory.Path("project_" + name + ".md")
		_, err = d.Put(ctx, path, text(name, "x"), memory.IfAbsent(), memory.IndexEntry{Title: name, Target: string(path)}, time.Time{})
		return err
	case "churn":
		for i := 0; ; i++ {
			path := memory.Path(fmt.Sprintf("project_%s_%d.md", name, i%5))
			// Long enough that half of it would be seen.
			content := []byte(strings.Repeat(fmt.Sprintf("line of %d\n", i), 2000))
			_, err := d.Put(ctx, path, content, memory.Precondition{}, memory.IndexEntry{Title: name, Target: string(path)}, time.Time{})
			if err == nil && i%3 == 2 {
				err = d.Remove(ctx, path, memory.Precondition{})
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return fmt.Errorf("no role %q", role)
}

func process(t *testing.T, role, dir, name string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), envRole+"="+role, envDir+"="+dir, envName+"="+name)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestHundredProcessesLoseNoLine(t *testing.T) {
	const processes = 100
	d := create(t)
	var cmds []*exec.Cmd
	for i := range processes {
		cmds = append(cmds, process(t, "append", d.Path(), fmt.Sprintf("p%d", i)))
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	report, err := d.CheckIndex(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(memory.ParseIndex([]byte(index(t, d))).Entries()); n != processes || !report.OK() {
		t.Errorf("%d lines of %d, %+v", n, processes, report)
	}
}

func TestKilledWritersLeaveNoGhost(t *testing.T) {
	d := create(t)
	for round := range 12 {
		var cmds []*exec.Cmd
		for i := range 3 {
			cmds = append(cmds, process(t, "churn", d.Path(), fmt.Sprintf("r%d_%d", round, i)))
		}
		time.Sleep(time.Duration(20+rand.IntN(120)) * time.Millisecond) // a random moment, not a condition
		for _, cmd := range cmds {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // killed
		}
		report, err := d.CheckIndex(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Ghosts) > 0 {
			t.Fatalf("round %d: ghosts %+v", round, report.Ghosts)
		}
		files, _, err := d.Files(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			content, _, err := d.Read(f.Path)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(content), "\n")
			if !memory.IsIndex(f.Path) && string(content) != strings.Repeat(first+"\n", 2000) {
				t.Fatalf("round %d: %s is half written", round, f.Path)
			}
		}
	}
	if _, err := d.Mend(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report, err := d.CheckIndex(t.Context()); err != nil || !report.OK() {
		t.Errorf("mended: %+v, %v", report, err)
	}
	left, err := filepath.Glob(filepath.Join(d.Path(), ".memdir-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("temporary files stay: %v, %v", left, err)
	}
}
