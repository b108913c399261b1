package hub_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/memsvc/memsvc/internal/hub"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"memsvc": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		code := hub.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
		stop()
		os.Exit(code)
	}})
}

// addresses finds where a hub says that it listens.
var addresses = regexp.MustCompile(`msg=listening grpc=(\S+) http=(\S+) ops=(\S+)`)

// served is a hub that a script has started.
type served struct {
	cmd *exec.Cmd
	log string // file
}

// TestCLI runs the scripts of testdata/script against the program. Beside testscript's
// own commands they have "serve DIR [flag…]", which starts a hub and sets $HUB, $HTTP
// and $OPS, and "unserve", which ends it and wants exit code 0.
func TestCLI(t *testing.T) {
	const key = "served"
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Setup: func(e *testscript.Env) error {
			e.Values[key] = &served{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) == 0 {
					ts.Fatalf("usage: serve DIR [flag…]")
				}
				s := ts.Value(key).(*served)
				s.log = ts.MkAbs("hub.log")
				f, err := os.Create(s.log)
				ts.Check(err)
				s.cmd = exec.Command("memsvc", append([]string{"serve", "--data-dir", ts.MkAbs(args[0]),
					"--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--ops-addr", "127.0.0.1:0"}, args[1:]...)...)
				s.cmd.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"))
				s.cmd.Path = findIn(ts.Getenv("PATH"), "memsvc")
				s.cmd.Stderr, s.cmd.Dir = f, ts.MkAbs(".")
				ts.Check(s.cmd.Start())
				ts.Check(f.Close())
				cmd := s.cmd
				ts.Defer(func() {
					if cmd.ProcessState == nil {
						_ = cmd.Process.Kill() // the script failed before unserve
						_ = cmd.Wait()
					}
				})
				deadline := time.Now().Add(patience)
				for {
					text, err := os.ReadFile(s.log)
					ts.Check(err)
					if m := addresses.FindSubmatch(text); m != nil {
						ts.Setenv("HUB", string(m[1]))
						ts.Setenv("HTTP", string(m[2]))
						ts.Setenv("OPS", string(m[3]))
						return
					}
					if time.Now().After(deadline) {
						ts.Fatalf("the hub does not listen:\n%s", text)
					}
					time.Sleep(10 * time.Millisecond) // another process; there is no condition to wait on
				}
			},
			"unserve": func(ts *testscript.TestScript, neg bool, _ []string) {
				s := ts.Value(key).(*served)
				ts.Check(s.cmd.Process.Signal(syscall.SIGTERM))
				ts.Check(s.cmd.Wait())
				text, err := os.ReadFile(s.log)
				ts.Check(err)
				if neg || !bytes.Contains(text, []byte("msg=stopped")) {
					ts.Fatalf("the hub did not drain:\n%s", text)
				}
			},
			"mode": func(ts *testscript.TestScript, neg bool, args []string) {
				info, err := os.Stat(ts.MkAbs(args[1]))
				ts.Check(err)
				if got := info.Mode().Perm().String(); (got != args[0]) != neg {
					ts.Fatalf("%s has mode %s", args[1], got)
				}
			},
		},
	})
}

func findIn(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			return file
		}
	}
	return name
}
