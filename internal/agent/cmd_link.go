package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"
	"golang.org/x/term"

	"github.com/memsvc/memsvc/internal/agent/control"
	"github.com/memsvc/memsvc/internal/agent/workspace"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/config"
	"github.com/memsvc/memsvc/internal/memory"
)

type loginCmd struct {
	Hub       string `required:"" help:"Address of the hub's gRPC listener." placeholder:"HOST:PORT"`
	Plaintext bool   `help:"Speak without TLS to a hub that is not on this machine."`
	CAFile    string `name:"ca-file" help:"Authorities to trust instead of the system's (PEM)." placeholder:"FILE"`
	CertFile  string `help:"Client certificate (PEM)." placeholder:"FILE"`
	KeyFile   string `help:"Key of the client certificate (PEM)." placeholder:"FILE"`
	NoVerify  bool   `cmdline:"" help:"Store the token without asking the hub."`
}

// Run reads a token from standard input, asks the hub what it is worth, and stores it
// where links to this hub find it.
func (x *loginCmd) Run(c *command) error {
	token, err := readToken(c)
	if err != nil {
		return err
	}
	if !x.NoVerify {
		cl, err := client.New(client.Options{
			Addr: x.Hub, Token: token, Plaintext: x.Plaintext, CAFile: expandHome(x.CAFile), CertFile: expandHome(x.CertFile),
			KeyFile: expandHome(x.KeyFile), UserAgent: userAgent(), Now: c.Now,
		})
		if err != nil {
			return &config.UsageError{Err: err}
		}
		defer cl.Close()
		if _, err := cl.Teams(c.ctx); err != nil {
			if client.IsPassing(err) {
				return fmt.Errorf("%w; nothing was stored (--no-verify stores it unseen)", err)
			}
			return fmt.Errorf("the hub does not take this token: %w; nothing was stored", err)
		}
	}
	if err := c.state.create(); err != nil {
		return err
	}
	file := c.state.credentialFile(x.Hub)
	if err := writeFile(file, []byte(token+"\n")); err != nil {
		return fmt.Errorf("store the token: %w", err)
	}
	fmt.Fprintf(c.Stdout, "token for %s stored in %s\n", x.Hub, file)
	return nil
}

func readToken(c *command) (string, error) {
	var text string
	if f, ok := c.Stdin.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		fmt.Fprint(c.Stderr, "token: ")
		b, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(c.Stderr)
		if err != nil {
			return "", err
		}
		text = string(b)
	} else {
		line, err := bufio.NewReader(io.LimitReader(c.Stdin, 16<<10)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		text = line
	}
	token := strings.TrimSpace(text)
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", usage("no token on standard input; pipe it in: memsync-agent login --hub HOST:PORT < token")
	}
	return token, nil
}

type linkCmd struct {
	linkFlags
	Create bool `cmdline:"" help:"Make the project on the hub if it is new."`
}

// Run ties a directory to a project. The hub is asked whether it knows the project; a
// hub that is away is no obstacle.
func (x *linkCmd) Run(c *command) error {
	l, err := c.flagLink(x.linkFlags)
	if err != nil {
		return err
	}
	if err := c.state.check(l); err != nil {
		return err
	}
	if _, err := c.withLink(l); err != nil {
		return err
	}
	if err := l.checkOwner(); err != nil {
		return err
	}
	note, err := x.askHub(c, l)
	if err != nil {
		return err
	}
	made, err := c.state.prepareDir(l)
	if err != nil {
		return err
	}
	if err := c.state.create(); err != nil {
		return err
	}
	if err := x.store(c, l); err != nil {
		return err
	}
	if made {
		fmt.Fprintf(c.Stdout, "made %s\n", l.Dir)
	}
	fmt.Fprintf(c.Stdout, "linked %s to %s on %s%s\n", l.Dir, l.Name(), l.Hub, note)
	if err := c.tellDaemon(); err != nil {
		return fmt.Errorf("the link is stored, but the running daemon does not take it: %w", err)
	}
	return nil
}

// store adds the link to those that are there by now.
func (x *linkCmd) store(c *command, l Link) error {
	release, err := c.state.alone(c.ctx, c.patience())
	if err != nil {
		return err
	}
	defer release()
	links, err := c.withLink(l)
	if err != nil {
		return err
	}
	if err := c.markAgain(l); err != nil {
		return err
	}
	if err := c.keepOrigin(l); err != nil {
		return fmt.Errorf("note what the link is for: %w", err)
	}
	if err := c.state.storeLinks(links); err != nil {
		return fmt.Errorf("store the link: %w", err)
	}
	return nil
}

// withLink returns the links made by `link` with l, in the place of a former one of the
// same directory and project, if they go together.
func (c *command) withLink(l Link) ([]Link, error) {
	stored, err := c.state.storedLinks()
	if err != nil {
		return nil, err
	}
	links := append(slices.DeleteFunc(stored, func(o Link) bool { return o.ID() == l.ID() }), l)
	return links, checkLinks(links)
}

// markAgain writes the marker that unlink took away, for a link whose state was kept:
// a directory without it would not be believed.
func (c *command) markAgain(l Link) error {
	records, err := c.state.records()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(records, func(r record) bool { return r.Unlinked && r.ID() == l.ID() }) || !c.state.has(l) {
		return nil
	}
	state, err := c.peek(l)
	if err != nil || state.LinkID == "" {
		return nil // a state that cannot be read names no marker; the cycle tells of it
	}
	return workspace.RestoreMarker(l.Dir, state.LinkID, l.Key())
}

func (x *linkCmd) askHub(c *command, l Link) (note string, err error) {
	cl, err := c.dialWithToken(l)
	if err != nil {
		return "", err
	}
	defer cl.Close()
	_, err = cl.Project(c.ctx, l.Key(), memory.Cursor{})
	switch {
	case err == nil:
		return "", nil
	case errors.Is(err, memory.ErrNotFound) && x.Create:
		if _, err := cl.CreateProject(c.ctx, l.Key()); err != nil && !errors.Is(err, memory.ErrAlreadyExists) {
			return "", fmt.Errorf("project %s cannot be made: %w", l.Name(), err)
		}
		return " (project made)", nil
	case errors.Is(err, memory.ErrNotFound):
		return "", fmt.Errorf("the hub knows no project %s that this token may see; check team and project, or make it with --create", l.Name())
	case client.IsPassing(err):
		return fmt.Sprintf(" (not asked: %s)", oneLine(err)), nil
	}
	return "", err
}

// tellDaemon makes a running daemon take up changed links; none running is fine.
func (c *command) tellDaemon() error {
	ctx, cancel := context.WithTimeout(c.ctx, c.patience())
	defer cancel()
	err := control.Call(ctx, string(c.state), methodReload, nil, nil)
	if errors.Is(err, control.ErrNoDaemon) {
		return nil
	}
	return err
}

type linksCmd struct {
	JSON bool `name:"json" help:"Print JSON; see docs/cli.md."`
}

// Run lists the links.
func (x *linksCmd) Run(c *command) error {
	links, err := c.known(linkFlags{})
	if err != nil {
		return err
	}
	if x.JSON {
		if links == nil {
			links = []Link{}
		}
		return printJSON(c.Stdout, links)
	}
	if len(links) == 0 {
		fmt.Fprintln(c.Stdout, "nothing is linked")
	}
	for _, l := range links {
		fmt.Fprintf(c.Stdout, "%s\t%s\t%s\n", l.Name(), l.Dir, l.Hub)
	}
	return nil
}
