// Command rehearse plays the image build and docker-compose.yml on a machine that has no
// container engine. It builds the programs from what .dockerignore lets through, lays
// out each image's root as the Dockerfile says, and runs every command, health check
// and mount of the compose file for real: in a network and a process tree of its own,
// with the image's root as root directory, read-only, as the image's user. Only
// PostgreSQL is the machine's own; Prometheus and Grafana are checked and not run.
//
//	rehearse [-check] DIR
//
// -check judges the files and runs nothing. Exit code 0: all is well, 1: it is not.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// inside is the argument with which the program starts itself in its own namespaces.
const inside = "inside"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rehearse:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 3 && args[0] == inside {
		return perform(ctx, args[1], args[2], out)
	}
	flags := flag.NewFlagSet("rehearse", flag.ContinueOnError)
	check := flags.Bool("check", false, "judge the files and run nothing")
	prometheus := flags.String("prometheus", "", "a static Prometheus to play that service with")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("name the directory with Dockerfile and docker-compose.yml")
	}
	dir, err := filepath.Abs(flags.Arg(0))
	if err != nil {
		return err
	}
	play, err := read(ctx, dir)
	if err != nil {
		return err
	}
	if findings := play.judge(); len(findings) > 0 {
		for _, f := range findings {
			fmt.Fprintln(out, f)
		}
		return fmt.Errorf("findings: %d", len(findings))
	}
	fmt.Fprintf(out, "Dockerfile, .dockerignore and docker-compose.yml: nothing found, %d services\n", len(play.project.Services))
	if *check {
		return nil
	}
	if os.Getuid() != 0 {
		if os.Getenv("CI") != "" {
			return fmt.Errorf("changing root, user and network takes root")
		}
		fmt.Fprintln(out, "not played: changing root, user and network takes root")
		return nil
	}
	work, err := os.MkdirTemp("", "rehearse-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if *prometheus != "" {
		if err := copyFile(*prometheus, filepath.Join(work, "prometheus")); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := play.build(ctx, work, out); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	fmt.Fprintf(out, "built both images in %.1f s\n", time.Since(began).Seconds())
	return reexec(ctx, dir, work, out)
}
