package agent

import (
	"errors"
	"fmt"
	"slices"

	"github.com/memsvc/memsvc/internal/agent/control"
	"github.com/memsvc/memsvc/internal/agent/workspace"
)

type unlinkCmd struct {
	Link   string `arg:"" help:"The link: team/project, project, or directory."`
	Forget bool   `cmdline:"" help:"Forget its state too: conflicts, trash and what was agreed."`
}

// Run unties a directory. Its files stay as they are; a running daemon has let go of
// them when it returns.
func (x *unlinkCmd) Run(c *command) error {
	if _, err := c.askStatus(); err != nil && !errors.Is(err, control.ErrNoDaemon) {
		return err
	}
	known, err := c.known(linkFlags{})
	if err != nil {
		return err
	}
	l, err := c.oneToUnlink(known, x.Link)
	if err != nil {
		return err
	}
	if c.state.exists() {
		release, err := c.state.alone(c.ctx, c.patience())
		if err != nil {
			return err
		}
		defer release()
	}
	stored, err := c.state.storedLinks()
	if err != nil {
		return err
	}
	is := func(o Link) bool { return o.ID() == l.ID() }
	if i := slices.IndexFunc(stored, is); i >= 0 {
		if err := c.state.storeLinks(slices.Delete(stored, i, i+1)); err != nil {
			return fmt.Errorf("store the links: %w", err)
		}
		if err := c.tellDaemon(); err != nil {
			return fmt.Errorf("%s is not stored any more, but the running daemon says: %w", l.Name(), err)
		}
	}
	configured, err := c.settingsLinks(linkFlags{})
	if err != nil {
		return err
	}
	served := func(st Status) error {
		if slices.ContainsFunc(st.Links, func(s LinkStatus) bool { return is(s.Link) }) {
			return usage("the running daemon (process %d) was started with %s, by its flags or its settings file; take it out there and restart it", st.PID, l.Dir)
		}
		return nil
	}
	if slices.ContainsFunc(configured, is) {
		if st, err := c.askStatus(); err == nil && served(st) != nil {
			return served(st)
		}
		return usage("%s stands in the settings file; take it out there", l.Dir)
	}
	untie := func() error {
		if err := c.state.forgetOrigins(l); err != nil {
			return err
		}
		return x.untie(c, l)
	}
	// Where no daemon runs, a command that syncs by itself may still be at work on the link.
	var st Status
	asked, err := c.daemonOr(c.ctx, methodStatus, nil, &st, untie)
	if err != nil || !asked {
		return err
	}
	if err := served(st); err != nil {
		return err
	}
	return untie()
}

// oneToUnlink finds the link that is meant, among those that are linked and, to be
// forgotten, those that were.
func (c *command) oneToUnlink(known []Link, want string) (Link, error) {
	records, err := c.state.records()
	if err != nil {
		return Link{}, err
	}
	var match, former []Link
	for _, l := range known {
		if l.matches(want) {
			match = append(match, l)
		}
	}
	for _, r := range records {
		if r.Unlinked && r.matches(want) {
			former = append(former, r.Link)
		}
	}
	if len(match) == 0 {
		match = former
	}
	switch {
	case len(match) == 0:
		return Link{}, usage("no link is called %s; see 'memsync-agent links'", want)
	case len(match) > 1:
		return Link{}, usage("%s names several links; give the directory", want)
	}
	return match[0], nil
}

// untie takes the marker out of the directory, and notes that the link is no more or
// forgets all of it.
func (x *unlinkCmd) untie(c *command, l Link) error {
	was := false
	records, err := c.state.records()
	if err != nil {
		return err
	}
	for _, r := range records {
		was = was || r.Unlinked && r.ID() == l.ID()
	}
	if was && !x.Forget {
		return usage("%s is not linked any more; unlink --forget removes its state, too", l.Dir)
	}
	if c.state.has(l) {
		// A state that cannot be read names no marker, and is forgotten all the same.
		if state, err := c.peek(l); err == nil {
			if err := workspace.RemoveMarker(l.Dir, state.LinkID, l.Key()); err != nil {
				fmt.Fprintf(c.Stderr, "memsync-agent: %s: %s stays: %s\n", l.Dir, workspace.MarkerName, oneLine(err))
			}
		}
	}
	if !x.Forget {
		if err := c.state.unlinked(l); err != nil {
			return fmt.Errorf("note that the link is no more: %w", err)
		}
		fmt.Fprintf(c.Stdout, "unlinked %s from %s; the files stay\n", l.Dir, l.Name())
		return nil
	}
	if err := c.state.forget(l.ID()); err != nil {
		return fmt.Errorf("forget the state: %w", err)
	}
	fmt.Fprintf(c.Stdout, "unlinked %s from %s and forgot its state; the files stay\n", l.Dir, l.Name())
	return nil
}
