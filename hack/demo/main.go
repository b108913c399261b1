// Command demo shows a day's work of a team: a real hub and two real agents, each a
// process of its own, on two directories that a person can edit afterwards.
//
// With DEMO_ONCE=1 it ends by itself, with 0 only if it saw everything it shows, or if
// somebody stopped it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	tmp, err := os.MkdirTemp("", "memsvc-demo-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	d := &demo{ctx: ctx, tmp: tmp, bin: "bin", out: os.Stdout}
	if dir := os.Getenv("DEMO_BIN"); dir != "" {
		d.bin = dir
	}
	defer d.end()
	if err := d.walk(); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintln(d.out, "\ninterrupted; the directories are removed")
			return 0
		}
		fmt.Fprintf(os.Stderr, "\nFAILED: %v\n", err)
		d.logs(os.Stderr)
		return 1
	}
	if os.Getenv("DEMO_ONCE") == "1" {
		fmt.Fprintln(d.out, "\nEverything above was checked.")
		return 0
	}
	d.invite()
	select {
	case <-ctx.Done():
		fmt.Fprintln(d.out, "\nending; the directories are removed")
		return 0
	case err := <-d.died():
		if ctx.Err() != nil {
			return 0 // the interrupt went to all of us
		}
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
}

// walk starts everything and shows each scene, in order.
func (d *demo) walk() error {
	scenes := []struct {
		title string
		play  func() error
	}{
		{"A hub and two machines", d.start},
		{"What each machine begins with, and what both have in the end", d.firstSync},
		{"An edit on one machine is on the other", d.edit},
		{"A new memory in Chinese goes the other way", d.chinese},
		{"A rename keeps the history", d.rename},
		{"A delete is a delete everywhere", d.remove},
		{"Both edit the same memory in different places: merged", d.merge},
		{"Both edit the same line: a conflict, and no text is lost", d.conflict},
		{"A secret stays on the machine, and status says where it is", d.secret},
		{"Personal memories never leave", d.personal},
		{"What a person says in a conversation is remembered, and shared", d.remember},
		{"A dream tidies what says the same, and is shared as one commit", d.dream},
		{"How long it takes", d.times},
	}
	for i, s := range scenes {
		fmt.Fprintf(d.out, "\n%d. %s\n", i+1, s.title)
		if err := s.play(); err != nil {
			return fmt.Errorf("%q: %w", s.title, err)
		}
		if err := d.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// invite tells a person what there is to do now.
func (d *demo) invite() {
	fmt.Fprintf(d.out, `
It keeps running. Edit, add, rename or delete Markdown files here and look there:

  %s
  %s

What the agents say:

  %s status --state-dir %s
  %s status --state-dir %s

What the hub has (%s for gRPC, http://%s for REST):

  %s

Ctrl-C ends it all.
`, d.laptop.team, d.desktop.team, d.program("memsync-agent"), d.laptop.state, d.program("memsync-agent"), d.desktop.state, d.grpc, d.http, d.curl())
}

func (d *demo) curl() string {
	return fmt.Sprintf(`curl -s -H "Authorization: Bearer $(cat %s)" http://%s/v1/teams/%s/projects/%s/memories`, d.laptop.token, d.http, team, project)
}

func (d *demo) program(name string) string {
	p := filepath.Join(d.bin, name)
	if abs, err := filepath.Abs(p); err == nil {
		return abs
	}
	return p
}

var errNotSeen = errors.New("not seen")
