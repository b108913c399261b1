package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/config"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/secretscan"
)

// dial returns a client for a link, for one command. What cannot work whatever the hub
// says is a usage error.
func (c *command) dial(l Link) (*client.Client, error) {
	machine := machineName(secretscan.New(secretscan.Options{}))
	cl, err := client.New(client.Options{
		Addr: l.Hub, TokenFile: c.state.tokenFileOf(l), TokenOptional: l.tokenOptional(), Plaintext: l.Plaintext, CAFile: l.CAFile, CertFile: l.CertFile,
		KeyFile: l.KeyFile, UserAgent: userAgent(), Now: c.Now, Author: memory.Author{Machine: machine, Client: userAgent()},
	})
	if err != nil {
		return nil, &config.UsageError{Err: err}
	}
	return cl, nil
}

// dialWithToken is dial, and refuses a token file that holds no token. None is needed
// where a client certificate may say who calls.
func (c *command) dialWithToken(l Link) (*client.Client, error) {
	cl, err := c.dial(l)
	if err != nil {
		return nil, err
	}
	if err := cl.CheckToken(); err != nil {
		_ = cl.Close()
		return nil, &config.UsageError{Err: err}
	}
	return cl, nil
}

// workable refuses a link that a daemon could not even try.
func (c *command) workable(l Link) error {
	if err := l.checkOwner(); err != nil {
		return err
	}
	cl, err := c.dial(l)
	if err != nil {
		return err
	}
	return cl.Close()
}

// ask runs one command's questions to the hub of the chosen link.
func (c *command) ask(f selectFlags, do func(context.Context, *client.Client, Link) error) error {
	l, err := c.choose(f)
	if err != nil {
		return err
	}
	cl, err := c.dialWithToken(l)
	if err != nil {
		return err
	}
	defer cl.Close()
	return do(c.ctx, cl, l)
}

// pathIn turns what a person typed into a path of the link: a path below team/ as it
// is, or a file inside the directory.
func pathIn(l Link, arg string) (memory.Path, error) {
	if l.Dir != "" {
		if abs, err := absDir(arg); err == nil && within(abs, l.Dir) && (filepath.IsAbs(arg) || exists(abs)) {
			arg = filepath.ToSlash(strings.TrimPrefix(abs, l.Dir+string(filepath.Separator)))
		}
	}
	p, err := memory.ParsePath(memory.NormalizePath(arg))
	if err != nil {
		return "", usage("%v", err)
	}
	return p, nil
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// noSuchMemory says that neither hub nor machine has a memory of this path.
func noSuchMemory(l Link, p memory.Path) error {
	return &memory.Error{Reason: memory.ReasonNotFound, Message: fmt.Sprintf("%s: no such memory in %s", p, l.Name())}
}

type logCmd struct {
	selectFlags
	Path  string `arg:"" optional:"" help:"Only commits that touch this memory, renames followed."`
	Limit int    `help:"At most this many entries." default:"20"`
	Local bool   `cmdline:"" help:"What happened on this machine instead, of all links or the one that is named: undone deletes, index lines that gave way, texts that grant permissions and the like; no network."`
	JSON  bool   `name:"json" help:"Print JSON; see docs/cli.md."`
}

// commitEntry is the outward shape of a commit.
type commitEntry struct {
	Revision  int64         `json:"revision"`
	CommitID  string        `json:"commit_id"`
	Time      time.Time     `json:"time"`
	Principal string        `json:"principal"`
	Machine   string        `json:"machine,omitempty"`
	Client    string        `json:"client,omitempty"`
	Session   string        `json:"session,omitempty"`
	Message   string        `json:"message,omitempty"`
	Changes   []changeEntry `json:"changes"`
	Unfit     []string      `json:"unfit,omitempty"` // paths that this program cannot hold
}

type changeEntry struct {
	Kind        string `json:"kind"`
	Path        string `json:"path"`
	ETag        string `json:"etag,omitempty"`
	Size        int64  `json:"size,omitempty"`
	RenamedFrom string `json:"renamed_from,omitempty"`
}

// Run prints the newest commits first.
func (x *logCmd) Run(c *command) error {
	if x.Limit < 1 {
		return usage("--limit %d: want at least 1", x.Limit)
	}
	if x.Local {
		return x.local(c)
	}
	return c.ask(x.selectFlags, func(ctx context.Context, cl *client.Client, l Link) error {
		var path memory.Path
		if x.Path != "" {
			var err error
			if path, err = pathIn(l, x.Path); err != nil {
				return err
			}
		}
		entries := []commitEntry{}
		var pages client.Pages
		for page := ""; len(entries) < x.Limit; {
			commits, next, err := cl.Log(ctx, l.Key(), path, x.Limit-len(entries), page)
			if err != nil {
				return err
			}
			for _, commit := range commits {
				entries = append(entries, entryOf(commit))
			}
			if page, err = pages.Next(next, len(commits)); err != nil {
				return err
			}
			if page == "" {
				break
			}
		}
		if path != "" && len(entries) == 0 {
			return noSuchMemory(l, path)
		}
		if x.JSON {
			return printJSON(c.Stdout, entries)
		}
		for _, e := range entries {
			e.print(c)
		}
		return nil
	})
}

func entryOf(commit memory.Commit) commitEntry {
	a := commit.Author
	e := commitEntry{Revision: int64(commit.Revision), CommitID: string(commit.ID), Time: commit.Time.UTC(), Principal: a.Principal,
		Machine: a.Machine, Client: a.Client, Session: a.Session, Message: commit.Message, Changes: []changeEntry{}}
	for _, u := range commit.Unfit {
		e.Unfit = append(e.Unfit, u.Path)
	}
	for _, ch := range commit.Changes {
		e.Changes = append(e.Changes, changeEntry{Kind: ch.Kind.String(), Path: string(ch.Path), ETag: string(ch.ETag), Size: ch.Size, RenamedFrom: string(ch.RenamedFrom)})
	}
	return e
}

func (e commitEntry) print(c *command) {
	who := e.Principal
	if e.Machine != "" {
		who += " on " + e.Machine
	}
	fmt.Fprintf(c.Stdout, "%d  %s  %s", e.Revision, e.Time.Local().Format(time.DateTime), visible(who))
	if e.Message != "" {
		fmt.Fprintf(c.Stdout, "  %s", visible(strings.ReplaceAll(e.Message, "\n", " ")))
	}
	fmt.Fprintln(c.Stdout)
	for _, ch := range e.Changes {
		from := ""
		if ch.RenamedFrom != "" {
			from = " (was " + ch.RenamedFrom + ")"
		}
		fmt.Fprintf(c.Stdout, "    %-6s %s%s\n", ch.Kind, ch.Path, from)
	}
	for _, p := range e.Unfit {
		fmt.Fprintf(c.Stdout, "    a path that this agent cannot hold: %.256q\n", p)
	}
}

type showCmd struct {
	selectFlags
	Path     string `arg:"" help:"The memory."`
	Revision int64  `help:"As of this revision; 0 is now."`
}

// Run prints a memory's bytes as the hub has them.
func (x *showCmd) Run(c *command) error {
	if x.Revision < 0 {
		return usage("--revision %d: revisions count from 1", x.Revision)
	}
	return c.ask(x.selectFlags, func(ctx context.Context, cl *client.Client, l Link) error {
		path, err := pathIn(l, x.Path)
		if err != nil {
			return err
		}
		m, err := cl.Get(ctx, l.Key(), path, memory.Revision(x.Revision))
		if err != nil {
			return err
		}
		_, err = c.Stdout.Write(m.Content)
		return err
	})
}

type diffCmd struct {
	selectFlags
	Paths    []string `arg:"" optional:"" help:"Only these memories."`
	Revision int64    `help:"Compare with this revision; 0 is now."`
}

// Run prints how local files differ from the hub's. Like diff it exits 1 when they do.
func (x *diffCmd) Run(c *command) error {
	if x.Revision < 0 {
		return usage("--revision %d: revisions count from 1", x.Revision)
	}
	if x.Revision > 0 && len(x.Paths) == 0 {
		return usage("--revision needs the memories to compare")
	}
	return c.ask(x.selectFlags, func(ctx context.Context, cl *client.Client, l Link) error {
		if l.Dir == "" {
			return usage("no directory: give --dir")
		}
		differs, err := x.compare(ctx, c, cl, l)
		if err == nil && differs {
			err = exitCode(ExitTrouble)
		}
		return err
	})
}

func (x *diffCmd) compare(ctx context.Context, c *command, cl *client.Client, l Link) (differs bool, err error) {
	local, err := c.localTexts(ctx, l)
	if err != nil {
		return false, err
	}
	paths := map[memory.Path]bool{}
	for _, arg := range x.Paths {
		p, err := pathIn(l, arg)
		if err != nil {
			return false, err
		}
		paths[p] = true
	}
	hub := map[memory.Path]memory.ETag{}
	if len(paths) == 0 {
		listing, err := cl.List(ctx, l.Key(), client.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, m := range listing.Memories {
			hub[m.Path] = m.ETag
			paths[m.Path] = true
		}
		for p := range local {
			paths[p] = true
		}
	}
	var ask []memory.Path
	for p := range paths {
		if e, known := hub[p]; !known && len(x.Paths) == 0 || known && e == memory.ETagOf(local[p]) {
			continue
		}
		ask = append(ask, p)
	}
	texts := map[memory.Path][]byte{}
	slices.Sort(ask)
	for rest := ask; len(rest) > 0; {
		batch, err := cl.BatchGet(ctx, l.Key(), rest, memory.Revision(x.Revision))
		if err != nil {
			return false, err
		}
		for _, m := range batch.Memories {
			texts[m.Path] = m.Content
			hub[m.Path] = m.ETag
		}
		if len(batch.Remaining) >= len(rest) {
			return false, errors.New("the hub answered none of the memories asked for")
		}
		rest = batch.Remaining
	}
	at := "hub"
	if x.Revision > 0 {
		at = fmt.Sprintf("revision %d", x.Revision)
	}
	sorted := make([]memory.Path, 0, len(paths))
	for p := range paths {
		sorted = append(sorted, p)
	}
	slices.Sort(sorted)
	for _, p := range sorted {
		here, isHere := local[p]
		e, isThere := hub[p]
		if !isHere && !isThere && len(x.Paths) > 0 {
			return differs, noSuchMemory(l, p)
		}
		if isHere == isThere && (!isHere || memory.ETagOf(here) == e) {
			continue
		}
		differs = true
		unified(c.Stdout, string(p), at, "here", texts[p], here, isThere, isHere)
	}
	return differs, nil
}

type restoreCmd struct {
	selectFlags
	Paths    []string `arg:"" optional:"" help:"The memories to bring back."`
	Revision int64    `required:"" cmdline:"" help:"What they were at this revision."`
	All      bool     `cmdline:"" help:"Bring the whole project back."`
	DryRun   bool     `cmdline:"" help:"Say what would be done, and do nothing."`
}

// Run makes a commit on the hub that brings memories back; the agents of all machines
// then get it like any other.
func (x *restoreCmd) Run(c *command) error {
	switch {
	case x.Revision < 1:
		return usage("--revision %d: revisions count from 1", x.Revision)
	case x.All == (len(x.Paths) > 0):
		return usage("name the memories to bring back, or give --all for the whole project")
	}
	return c.ask(x.selectFlags, func(ctx context.Context, cl *client.Client, l Link) error {
		req := client.RestoreRequest{Project: l.Key(), Revision: memory.Revision(x.Revision), ValidateOnly: x.DryRun}
		for _, arg := range x.Paths {
			p, err := pathIn(l, arg)
			if err != nil {
				return err
			}
			req.Paths = append(req.Paths, p)
		}
		res, err := cl.Restore(ctx, req)
		if err != nil {
			return err
		}
		switch {
		case !res.Created && !x.DryRun:
			fmt.Fprintf(c.Stdout, "nothing to restore: all is as at revision %d\n", x.Revision)
		case x.DryRun:
			fmt.Fprintf(c.Stdout, "would restore %s\n", count(len(res.Commit.Changes), "change"))
		default:
			fmt.Fprintf(c.Stdout, "restored as revision %d\n", res.Commit.Revision)
		}
		for _, ch := range entryOf(res.Commit).Changes {
			if res.Created || x.DryRun {
				fmt.Fprintf(c.Stdout, "    %-6s %s\n", ch.Kind, ch.Path)
			}
		}
		return nil
	})
}
