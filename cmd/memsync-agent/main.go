// Command memsync-agent keeps the team/ directories of a machine in step with a hub.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/memsvc/memsvc/internal/agent"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return agent.Main(ctx, agent.App{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
}
