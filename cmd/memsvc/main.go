// Command memsvc is the hub: it stores each project's shared memories and pushes
// every change to whoever watches.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/memsvc/memsvc/internal/hub"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := hub.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
