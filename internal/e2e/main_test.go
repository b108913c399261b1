package e2e

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/hub"
)

// TestMain lets the test binary be the two programs, too: for scripts, and for tests
// that kill processes.
func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "memsync-agent":
		os.Exit(agentMain())
	case "memsvc":
		os.Exit(hubMain())
	}
	testscript.Main(m, map[string]func(){
		"memsync-agent": func() { os.Exit(agentMain()) },
		"memsvc":        func() { os.Exit(hubMain()) },
	})
}

// roleVariable says which program the test binary is to be.
const roleVariable = "E2E_ROLE"

func agentMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return agent.Main(ctx, agent.App{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, HookTime: patience, Patience: patience})
}

func hubMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return hub.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// long reports whether the runs in real time are wanted.
func long() bool { return os.Getenv("MEMSYNC_E2E_LONG") == "1" }
