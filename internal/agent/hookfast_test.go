package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// A hook without flags goes past the grammar; it must answer as the grammar would.
func TestPlainHookAnswersLikeTheGrammar(t *testing.T) {
	home := t.TempDir()
	memories := filepath.Join(home, "memory")
	if err := os.MkdirAll(filepath.Join(memories, "team"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := "---\nname: Rollback\ndescription: how to go back to the previous version\ntype: reference\n---\n\nargocd app rollback\n"
	if err := os.WriteFile(filepath.Join(memories, "reference_rollback.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("MEMSYNC_STATE_DIR", filepath.Join(home, "state"))
	t.Setenv("MEMSYNC_CONFIG", "") // puts back what was there
	if err := os.Unsetenv("MEMSYNC_CONFIG"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CLAUDE_COWORK_MEMORY_PATH_OVERRIDE", memories)
	now := stopped() // what is given says how old it is
	run := func(event string, args ...string) (string, string) {
		t.Helper()
		in := fmt.Sprintf(`{"hook_event_name":%q,"cwd":%q,"prompt":"roll back to the previous version"}`, event, home)
		var out, errs bytes.Buffer
		if code := Main(t.Context(), App{Args: args, Stdin: strings.NewReader(in), Stdout: &out, Stderr: &errs, Now: now, HookTime: patience}); code != ExitOK {
			t.Errorf("%v: exit %d", args, code)
		}
		return out.String(), errs.String()
	}
	for _, event := range []string{"UserPromptSubmit", "SessionStart"} {
		for _, args := range [][]string{{"hook"}, {"hook", event}} {
			if !plainHook(args, os.Getenv) {
				t.Fatalf("%v goes through the grammar", args)
			}
			slow := append(args[:len(args):len(args)], "--log-format", "text")
			if plainHook(slow, os.Getenv) {
				t.Fatalf("%v goes past the grammar", slow)
			}
			got, _ := run(event, args...)
			want, _ := run(event, slow...)
			if got != want || got == "" {
				t.Errorf("%v answers\n%s\nthe grammar\n%s", args, got, want)
			}
		}
	}
	t.Setenv("MEMSYNC_RECALL", "false")
	for _, args := range [][]string{{"hook", "UserPromptSubmit"}, {"hook", "UserPromptSubmit", "--log-format", "text"}} {
		if got, _ := run("UserPromptSubmit", args...); got != "" {
			t.Errorf("with MEMSYNC_RECALL=false %v answers\n%s", args, got)
		}
	}
	t.Setenv("MEMSYNC_LOG_LEVEL", "debug")
	if _, errs := run("NoSuchEvent", "hook"); !strings.Contains(errs, "nothing is done for this event") {
		t.Errorf("with MEMSYNC_LOG_LEVEL=debug it says %q", errs)
	}
	t.Setenv("MEMSYNC_CONFIG", "/none.yaml")
	if plainHook([]string{"hook"}, os.Getenv) {
		t.Error("a settings file is passed over")
	}
}

// Clients take exit code 2 for a veto: none comes of a hook, whatever its flags are, nor
// of the bare program, which is what is left of one where a client ignores arguments.
func TestNothingAClientRunsIsAVeto(t *testing.T) {
	t.Setenv("MEMSYNC_STATE_DIR", t.TempDir())
	for _, test := range []struct {
		args []string
		code int
	}{
		{nil, ExitTrouble},
		{[]string{"hook", "--no-such-flag"}, ExitOK},
		{[]string{"hook", "Stop", "more"}, ExitOK},
		{[]string{"hook", "Stop", "--log-level"}, ExitOK},
		{[]string{"hook", "Stop", "--config", "/no/such/file"}, ExitOK},
		{[]string{"--state-dir", t.TempDir(), "hook", "Stop", "--frob"}, ExitOK},
		{[]string{"--state-dir=x", "--frob", "hook", "Stop"}, ExitOK},
		{[]string{"--state-dir", "hook", "frob"}, ExitUsage}, // no hook: a directory's name
		{[]string{"memory", "hook"}, ExitUsage},
	} {
		var out, errs bytes.Buffer
		code := Main(t.Context(), App{Args: test.args, Stdin: strings.NewReader("{}"), Stdout: &out, Stderr: &errs})
		if code != test.code || out.Len() > 0 {
			t.Errorf("%q: exit %d, want %d; it prints %q", test.args, code, test.code, out.String())
		}
		if test.args == nil && !strings.Contains(errs.String(), "Commands:") {
			t.Errorf("the bare program says\n%s", errs.String())
		}
	}
}

// TestWhatTheRuntimeEndsIsNoVeto: no recover stops what the runtime calls fatal.
func TestWhatTheRuntimeEndsIsNoVeto(t *testing.T) {
	const how = "MEMSYNC_TEST_DEATH"
	if death := os.Getenv(how); death != "" {
		args := strings.Fields(os.Getenv(how + "_ARGS"))
		Main(t.Context(), App{Args: args, Stdin: deadly(death), Stdout: os.Stdout, Stderr: os.Stderr, HookTime: patience})
		os.Exit(ExitOK)
	}
	for _, args := range []string{"hook Stop", "hook Stop --recall", "--log-level debug hook Stop"} {
		for _, death := range []string{"stack", "panic"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestWhatTheRuntimeEndsIsNoVeto$")
			cmd.Env = append(os.Environ(), how+"="+death, how+"_ARGS="+args, "MEMSYNC_STATE_DIR="+t.TempDir())
			out, err := cmd.CombinedOutput()
			cancel()
			var ended *exec.ExitError
			if !errors.As(err, &ended) || ended.ExitCode() == 2 || ended.ExitCode() == 0 {
				t.Errorf("%s, %s: %v\n%.300s", args, death, err, out)
			}
		}
	}
}

// deadly is an input that ends the process in a way that nobody catches.
type deadly string

func (d deadly) Read(p []byte) (int, error) {
	if d == "stack" {
		debug.SetMaxStack(1 << 20)
		return d.deeper(p)
	}
	go func() { panic("a defect") }()
	select {}
}

func (d deadly) deeper(p []byte) (int, error) {
	if p == nil { // it never is
		return 0, nil
	}
	n, err := d.deeper(p[:len(p)/2])
	return n + 1, err
}
