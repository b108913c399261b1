package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/memsvc/memsvc/internal/lifecycle/verify"
)

type memoryVerifyCmd struct {
	placeFlags
	JSON bool `name:"json" help:"Print JSON; see docs/memory-commands.md."`
}

// verifyEntry is something a memory cites that is no longer there.
type verifyEntry struct {
	Ref  string `json:"ref"`
	Line int    `json:"line"`
	Kind string `json:"kind"` // path, command or symbol
	Text string `json:"text"`
}

// Run checks what memories cite against the repository of the working directory.
func (x *memoryVerifyCmd) Run(c *command) error {
	p, err := c.place(x.placeFlags)
	if err != nil {
		return err
	}
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	repo, err := verify.Open(wd)
	if errors.Is(err, fs.ErrNotExist) {
		return usage("%s lies in no repository that memories could be checked against; run it in one", wd)
	}
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	defer func() { _ = repo.Close() }() // only read
	list, _, err := c.store(p).List(c.ctx)
	if err != nil {
		return err
	}
	entries := []verifyEntry{}
	for _, m := range list {
		gone, err := repo.Missing(c.ctx, m.Content)
		if err != nil {
			return fmt.Errorf("verify %s: %w", m.String(), err)
		}
		for _, g := range gone {
			entries = append(entries, verifyEntry{Ref: m.String(), Line: g.Line, Kind: string(g.Kind), Text: g.Text})
		}
	}
	if x.JSON {
		err = printJSON(c.Stdout, entries)
	}
	if !x.JSON && len(entries) == 0 {
		fmt.Fprintf(c.Stdout, "%d memories cite nothing that is gone\n", len(list))
	}
	for _, e := range entries {
		if !x.JSON {
			fmt.Fprintf(c.Stdout, "%s:%d: %s %s is no longer there\n", visible(e.Ref), e.Line, e.Kind, visible(e.Text))
		}
	}
	if err == nil && len(entries) > 0 {
		return exitCode(ExitPerson)
	}
	return err
}
