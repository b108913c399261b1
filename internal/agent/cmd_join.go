package agent

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mattn/go-isatty"
	"golang.org/x/term"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/config"
	"github.com/memsvc/memsvc/internal/memory"
)

type joinCmd struct {
	Code     string `arg:"" help:"What 'memsvc invite' printed; - reads it from standard input, so that it stays out of the shell's history."`
	Dir      string `help:"The team/ directory itself; else team in the working directory." placeholder:"DIR"`
	CertFile string `help:"Client certificate (PEM), where the hub wants one." placeholder:"FILE"`
	KeyFile  string `help:"Key of the client certificate (PEM)." placeholder:"FILE"`
}

// Run does what login and link do, with an invitation. The hub is asked first; whatever
// fails, nothing is left changed.
func (x *joinCmd) Run(c *command) error {
	v, err := x.invite(c)
	if err != nil {
		return err
	}
	l, err := x.link(c, v)
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
	if _, err := c.state.lacksDir(l); err != nil {
		return err
	}
	if err := x.askHub(c, v, l); err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	made, err := x.store(c, v, l)
	if err != nil {
		return fmt.Errorf("join %s: %w", l.Name(), err)
	}
	if made {
		fmt.Fprintf(c.Stdout, "made %s\n", l.Dir)
	}
	fmt.Fprintf(c.Stdout, "joined %s on %s with %s\n", l.Name(), l.Hub, l.Dir)
	for _, line := range c.unequipped() {
		fmt.Fprintln(c.Stdout, line)
	}
	return nil
}

func (x *joinCmd) invite(c *command) (client.Invite, error) {
	code := x.Code
	if code == "-" {
		var err error
		if code, err = readCode(c); err != nil {
			return client.Invite{}, err
		}
	}
	v, err := client.ParseInvite(code)
	if err != nil {
		return client.Invite{}, &config.UsageError{Err: err}
	}
	return v, nil
}

// maxCodeLine bounds what is read of standard input; a code is shorter.
const maxCodeLine = 64 << 10

// readCode reads a line, without showing it where a person types.
func readCode(c *command) (string, error) {
	if f, ok := c.Stdin.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		fmt.Fprint(c.Stderr, "invitation code: ")
		b, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(c.Stderr)
		return string(b), err
	}
	line, err := bufio.NewReader(io.LimitReader(c.Stdin, maxCodeLine)).ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return line, err
}

// link returns the link to make. Its credential has a file of its own: the token of an
// invitation is one project's, and another project of the hub has another.
func (x *joinCmd) link(c *command, v client.Invite) (Link, error) {
	dir := x.Dir
	if dir == "" {
		wd, err := os.Getwd()
		if err != nil {
			return Link{}, err
		}
		if dir = wd; filepath.Base(wd) != "team" {
			dir = filepath.Join(wd, "team")
		}
	}
	sum := sha256.Sum256([]byte(v.Project.String()))
	base := c.state.path("credentials", fileName(v.Hub)+"_"+hex.EncodeToString(sum[:6]))
	l := Link{
		Hub: v.Hub, Team: string(v.Project.Team), Project: string(v.Project.Project), Dir: dir,
		TokenFile: base + ".token", CertFile: x.CertFile, KeyFile: x.KeyFile,
	}
	if v.CA != "" {
		l.CAFile = base + ".ca.pem"
	}
	return absolute(l)
}

// askHub has the hub say that the invitation holds.
func (x *joinCmd) askHub(c *command, v client.Invite, l Link) error {
	opts := v.Options()
	opts.CertFile, opts.KeyFile, opts.UserAgent, opts.Now = l.CertFile, l.KeyFile, userAgent(), c.Now
	cl, err := client.New(opts)
	if err != nil {
		return &config.UsageError{Err: err}
	}
	defer cl.Close()
	_, err = cl.Project(c.ctx, v.Project, memory.Cursor{})
	switch {
	case errors.Is(err, memory.ErrUnauthenticated):
		return fmt.Errorf("hub %s does not take this invitation: it is expired or revoked; ask for another code", v.Hub)
	case errors.Is(err, memory.ErrNotFound):
		return fmt.Errorf("hub %s knows no project %s any more; ask for another code", v.Hub, l.Name())
	}
	return err
}

// store makes the directory, keeps credential and link, and has a running daemon take
// them up; all of it or nothing.
func (x *joinCmd) store(c *command, v client.Invite, l Link) (made bool, err error) {
	var u undo
	told, release := false, func() {}
	defer func() { release() }() // after what is taken back
	defer func() {
		if err == nil {
			return
		}
		if back := u.run(); back != nil {
			err = fmt.Errorf("%w; and not all of it could be taken back: %w", err, back)
		} else {
			err = fmt.Errorf("%w; nothing was changed", err)
		}
		if told {
			_ = c.tellDaemon() // it may have begun; what it says is known
		}
	}()
	if made, err = c.state.prepareDir(l); err != nil {
		return false, err
	}
	if made {
		u.add(func() error { return os.Remove(l.Dir) })
	}
	for _, dir := range []string{string(c.state), filepath.Dir(l.TokenFile)} {
		if err := u.mkdir(dir); err != nil {
			return false, err
		}
	}
	held, err := c.state.alone(c.ctx, c.patience())
	if err != nil {
		return false, err
	}
	release = held
	links, err := c.withLink(l)
	if err != nil {
		return false, err
	}
	if l.CAFile != "" {
		if err := u.write(l.CAFile, []byte(v.CA)); err != nil {
			return false, err
		}
	}
	if err := u.write(l.TokenFile, []byte(v.Token+"\n")); err != nil {
		return false, err
	}
	origins, err := readIfThere(c.state.path(originsFile))
	if err != nil {
		return false, err
	}
	u.add(func() error { return putBack(c.state.path(originsFile), origins) })
	if err := c.keepOrigin(l); err != nil {
		return false, err
	}
	// The links come last: they are what a program that starts now would serve.
	before, err := readIfThere(c.state.path("links.json"))
	if err != nil {
		return false, err
	}
	u.add(func() error { return putBack(c.state.path("links.json"), before) })
	if err := c.state.storeLinks(links); err != nil {
		return false, err
	}
	told = true
	if err := c.tellDaemon(); err != nil {
		if !c.served(l) {
			return false, fmt.Errorf("the running daemon does not take the link: %w", err)
		}
		fmt.Fprintf(c.Stderr, "memsync-agent: warning: the running daemon took this link, but not all: %s\n", oneLine(err))
	}
	return made, nil
}

// served reports whether the running daemon serves a link.
func (c *command) served(l Link) bool {
	st, err := c.askStatus()
	return err == nil && slices.ContainsFunc(st.Links, func(s LinkStatus) bool { return s.ID == l.ID() })
}

// undo is how to take back what was done, last first.
type undo []func() error

func (u *undo) add(back func() error) { *u = append(*u, back) }

func (u *undo) run() error {
	var errs []error
	for _, back := range slices.Backward(*u) {
		errs = append(errs, back())
	}
	return errors.Join(errs...)
}

// mkdir makes a directory for this user alone, with those above it.
func (u *undo) mkdir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if up := filepath.Dir(dir); up != dir {
		if err := u.mkdir(up); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return nil // another program made it just now: it is not ours to take back
	} else if err != nil {
		return err
	}
	u.add(func() error { return os.Remove(dir) })
	return nil
}

// write replaces a file of ours.
func (u *undo) write(name string, content []byte) error {
	before, err := readIfThere(name)
	if err != nil {
		return err
	}
	if before != nil && bytes.Equal(before, content) {
		return nil
	}
	u.add(func() error { return putBack(name, before) })
	return writeFile(name, content)
}

// readIfThere returns nil for a file that is not there.
func readIfThere(name string) ([]byte, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && b == nil {
		b = []byte{}
	}
	return b, err
}

func putBack(name string, before []byte) error {
	if before != nil {
		return writeFile(name, before)
	}
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
