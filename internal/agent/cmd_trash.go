package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
)

type trashCmd struct {
	List    trashListCmd    `cmd:"" help:"List the texts that were taken from the disk or given up, newest first."`
	Show    trashShowCmd    `cmd:"" help:"Print a text of the trash."`
	Restore trashRestoreCmd `cmd:"" help:"Write a text of the trash back to its path, as an edit of this machine."`
}

// trashEntry is a text in the trash, without the text.
type trashEntry struct {
	ID     string    `json:"id"`
	Path   string    `json:"path"`
	Reason string    `json:"reason"`
	Time   time.Time `json:"time"`
}

func trashEntryOf(t syncer.Trashed) trashEntry {
	return trashEntry{ID: t.ID, Path: string(t.Path), Reason: t.Reason, Time: t.Time.UTC()}
}

// trashListEntry is a text in the trash and the link it belongs to.
type trashListEntry struct {
	Link string `json:"link"`
	Dir  string `json:"dir"`
	trashEntry
}

// trashedText is a text in the trash, with the text.
type trashedText struct {
	trashEntry
	Text []byte `json:"text"`
}

// trashParams name a text of a link's trash.
type trashParams struct {
	Link string `json:"link"`
	ID   string `json:"id,omitempty"`
}

func (p trashParams) list(ctx context.Context, s *syncer.Syncer) ([]trashEntry, error) {
	all, err := s.Trash(ctx)
	entries := []trashEntry{}
	for _, t := range all {
		entries = append(entries, trashEntryOf(t))
	}
	return entries, err
}

func (p trashParams) text(ctx context.Context, s *syncer.Syncer) (trashedText, error) {
	t, text, err := s.TrashText(ctx, p.ID)
	return trashedText{trashEntryOf(t), text}, err
}

func (p trashParams) restore(ctx context.Context, s *syncer.Syncer) (trashEntry, error) {
	t, err := s.RestoreTrash(ctx, p.ID)
	return trashEntryOf(t), err
}

// trashOf lists the trash of one link.
func (c *command) trashOf(l Link) (entries []trashEntry, err error) {
	p := trashParams{Link: l.ID()}
	err = c.act(l, methodTrash, p, &entries, func(ctx context.Context, s *syncer.Syncer) (err error) {
		entries, err = p.list(ctx, s)
		return err
	})
	return entries, err
}

// trashLinks returns the links whose trash is meant: the one that is named, else all.
func (c *command) trashLinks(f selectFlags) ([]Link, error) {
	f.Hub = "" // the trash is known to the state alone
	if f.Link != "" || f.Dir != "" || f.Project != "" {
		l, err := c.choose(f)
		return []Link{l}, err
	}
	return c.known(f.linkFlags)
}

type trashListCmd struct {
	selectFlags
	JSON bool `name:"json" help:"Print JSON; see docs/cli.md."`
}

// Run lists the trash of all links, or of the one that is named.
func (x *trashListCmd) Run(c *command) error {
	links, err := c.trashLinks(x.selectFlags)
	if err != nil {
		return err
	}
	all := []trashListEntry{}
	for _, l := range links {
		entries, err := c.trashOf(l)
		if err != nil {
			return err
		}
		for _, e := range entries {
			all = append(all, trashListEntry{Link: l.Name(), Dir: l.Dir, trashEntry: e})
		}
	}
	if x.JSON {
		return printJSON(c.Stdout, all)
	}
	if len(all) == 0 {
		fmt.Fprintln(c.Stdout, c.none(len(links), "the trash is empty"))
	}
	for _, e := range all {
		fmt.Fprintf(c.Stdout, "%s  %s  %s  %s  %s ago\n", e.ID, e.Link, e.Path, e.Reason, age(c.Now(), e.Time))
	}
	return nil
}

// linkOfTrash finds the link whose trash holds an id.
func (c *command) linkOfTrash(f selectFlags, id string) (Link, error) {
	links, err := c.trashLinks(f)
	if err != nil {
		return Link{}, err
	}
	for _, l := range links {
		entries, err := c.trashOf(l)
		if err != nil {
			return Link{}, err
		}
		for _, e := range entries {
			if e.ID == id {
				return l, nil
			}
		}
	}
	return Link{}, usage("nothing in the trash is called %s; see 'memsync-agent trash list'", id)
}

type trashShowCmd struct {
	selectFlags
	ID string `arg:"" help:"The id that 'trash list' shows."`
}

// Run prints the bytes of a text in the trash.
func (x *trashShowCmd) Run(c *command) error {
	l, err := c.linkOfTrash(x.selectFlags, x.ID)
	if err != nil {
		return err
	}
	p := trashParams{Link: l.ID(), ID: x.ID}
	var t trashedText
	if err := c.act(l, methodTrashText, p, &t, func(ctx context.Context, s *syncer.Syncer) (err error) {
		t, err = p.text(ctx, s)
		return err
	}); err != nil {
		return err
	}
	_, err = c.Stdout.Write(t.Text)
	return err
}

type trashRestoreCmd struct {
	selectFlags
	ID string `arg:"" help:"The id that 'trash list' shows."`
}

// Run writes a text of the trash back. What stood there goes to the trash.
func (x *trashRestoreCmd) Run(c *command) error {
	l, err := c.linkOfTrash(x.selectFlags, x.ID)
	if err != nil {
		return err
	}
	p := trashParams{Link: l.ID(), ID: x.ID}
	var e trashEntry
	if err := c.act(l, methodTrashRestore, p, &e, func(ctx context.Context, s *syncer.Syncer) (err error) {
		e, err = p.restore(ctx, s)
		return err
	}); err != nil {
		return err
	}
	fmt.Fprintf(c.Stdout, "%s is back in %s; it is sent like any edit, and what stood there is in the trash\n", e.Path, l.Dir)
	return nil
}
