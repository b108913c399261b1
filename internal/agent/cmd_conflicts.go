package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/agent/control"
	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/config"
	"github.com/memsvc/memsvc/internal/memory"
)

type conflictsCmd struct {
	List    conflictsListCmd    `cmd:"" help:"List open conflicts."`
	Show    conflictsShowCmd    `cmd:"" help:"Show both texts of a conflict."`
	Resolve conflictsResolveCmd `cmd:"" help:"End a conflict by choosing a text: --ours, --theirs or --merged FILE."`
}

type conflictsListCmd struct {
	selectFlags
	All  bool `cmdline:"" help:"List what the hub keeps instead, of all machines; any writer may resolve those."`
	JSON bool `name:"json" help:"Print JSON; see docs/cli.md."`
}

// conflictListEntry is a conflict and the link it belongs to.
type conflictListEntry struct {
	Link string `json:"link"`
	Dir  string `json:"dir"`
	ConflictEntry
}

// Run lists the open conflicts of all links, or of the one that is named.
func (x *conflictsListCmd) Run(c *command) error {
	if x.All {
		return c.listKept(x.selectFlags, x.JSON)
	}
	st, err := (&statusCmd{}).read(c)
	if err != nil {
		return err
	}
	want := x.Link
	if want == "" {
		want = x.Dir
	}
	entries := []conflictListEntry{}
	for _, l := range st.Links {
		if want != "" && !l.matches(want) {
			continue
		}
		for _, e := range l.Conflicts {
			entries = append(entries, conflictListEntry{Link: l.Name(), Dir: l.Dir, ConflictEntry: e})
		}
	}
	if x.JSON {
		return printJSON(c.Stdout, entries)
	}
	if len(entries) == 0 {
		fmt.Fprintln(c.Stdout, c.none(len(st.Links), "no open conflicts"))
	}
	for _, e := range entries {
		fmt.Fprintf(c.Stdout, "%s  %s  %s  %s  %s ago%s\n", e.ID, e.Link, e.Path, e.hub(), age(c.Now(), e.Since), e.alone())
	}
	return nil
}

type conflictsShowCmd struct {
	selectFlags
	ID   string `arg:"" help:"The conflict's id, or the memory's path."`
	JSON bool   `name:"json" help:"Print JSON; see docs/cli.md."`
}

// conflictTexts are the texts of a conflict.
type conflictTexts struct {
	ConflictEntry
	Ours   string  `json:"ours"`   // the text of this machine that lost its place
	Theirs string  `json:"theirs"` // the hub's text then; "" with deleted_on_hub
	Base   *string `json:"base"`   // what both began with; null when that is not known
}

// textsParams ask for the texts of a conflict.
type textsParams struct {
	Link string `json:"link"`
	ID   string `json:"id"`
}

func (p textsParams) do(ctx context.Context, s *syncer.Syncer) (conflictTexts, error) {
	t, err := s.Conflict(ctx, p.ID)
	if err != nil {
		return conflictTexts{}, err
	}
	out := conflictTexts{ConflictEntry: conflictEntry(t.Conflict), Ours: string(t.Ours), Theirs: string(t.Theirs)}
	if t.Base != nil {
		base := string(t.Base)
		out.Base = &base
	}
	return out, nil
}

// Run shows both texts of a conflict and where they differ.
func (x *conflictsShowCmd) Run(c *command) error {
	if k, ok, err := c.keptElsewhere(x.selectFlags, x.ID); err != nil {
		return err
	} else if ok {
		return k.show(c, x.JSON)
	}
	l, err := c.linkOfConflict(x.selectFlags, x.ID)
	if err != nil {
		return err
	}
	var t conflictTexts
	err = c.act(l, methodTexts, textsParams{Link: l.ID(), ID: x.ID}, &t, func(ctx context.Context, s *syncer.Syncer) (err error) {
		t, err = textsParams{ID: x.ID}.do(ctx, s)
		return err
	})
	if err != nil {
		return err
	}
	if x.JSON {
		return printJSON(c.Stdout, t)
	}
	t.print(c, "ours (this machine)")
	return nil
}

// print shows both texts and where they differ; whose names the first.
func (t conflictTexts) print(c *command, whose string) {
	fmt.Fprintf(c.Stdout, "conflict %s at %s\n\n%s:\n%s\n", t.ID, visible(t.Path), whose, closed(t.Ours))
	if t.Deleted {
		fmt.Fprintf(c.Stdout, "theirs: deleted on the hub\n")
		return
	}
	redacted := ""
	if t.Redacted {
		redacted = "redacted by an admin, "
	}
	fmt.Fprintf(c.Stdout, "theirs (%srevision %d, in place now):\n%s\n", redacted, t.HubRevision, closed(t.Theirs))
	var b strings.Builder
	unified(&b, t.Path, "theirs", "ours", []byte(t.Theirs), []byte(t.Ours), true, true)
	fmt.Fprint(c.Stdout, closed(b.String()))
}

// closed is a text of others as a terminal may show it, ended with a line break.
func closed(s string) string {
	s = visibleText(strings.ReplaceAll(s, "\r\n", "\n"))
	if s != "" && s[len(s)-1] != '\n' {
		return s + "\n"
	}
	return s
}

type conflictsResolveCmd struct {
	selectFlags
	ID     string `arg:"" help:"The conflict's id, or the memory's path."`
	Ours   bool   `xor:"how" cmdline:"" help:"Take the text of this machine."`
	Theirs bool   `xor:"how" cmdline:"" help:"Keep the hub's text."`
	Merged string `xor:"how" cmdline:"" help:"Take the text in this file; - is standard input." placeholder:"FILE"`
}

// resolveParams end a conflict.
type resolveParams struct {
	Link   string `json:"link"`
	ID     string `json:"id"`
	How    string `json:"how"` // ours, theirs or merged
	Merged []byte `json:"merged,omitempty"`
}

func (p resolveParams) do(ctx context.Context, s *syncer.Syncer) error {
	how, ok := map[string]syncer.Resolution{"ours": syncer.TakeOurs, "theirs": syncer.TakeTheirs, "merged": syncer.TakeMerged}[p.How]
	if !ok {
		return fmt.Errorf("resolve: %q is none of ours, theirs, merged", p.How)
	}
	return s.Resolve(ctx, p.ID, how, p.Merged)
}

// Run ends a conflict.
func (x *conflictsResolveCmd) Run(c *command) error {
	p := resolveParams{ID: x.ID, How: "ours"}
	switch {
	case !x.Ours && !x.Theirs && x.Merged == "":
		return usage("say which text to take: --ours, --theirs or --merged FILE; see 'memsync-agent conflicts resolve --help'")
	case x.Theirs:
		p.How = "theirs"
	case x.Merged != "":
		p.How = "merged"
		var err error
		if p.Merged, err = readMerged(c, x.Merged); err != nil {
			return err
		}
	}
	if k, ok, err := c.keptElsewhere(x.selectFlags, x.ID); err != nil {
		return err
	} else if ok {
		done, warning, err := k.resolve(c, p)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.Stdout, "resolved %s with %s; %s\n", k.id(), p.How, done)
		c.warnResolved(warning)
		return nil
	}
	l, err := c.linkOfConflict(x.selectFlags, x.ID)
	if err != nil {
		return err
	}
	p.Link = l.ID()
	warning := c.warningOf(l, p)
	if err := c.act(l, methodResolve, p, nil, p.do); err != nil {
		if x.Merged != "" {
			err = fmt.Errorf("--merged %s: %w", x.Merged, err)
		}
		return err
	}
	fmt.Fprintf(c.Stdout, "resolved %s with %s; what was given up is in the trash (see 'memsync-agent trash list')\n", x.ID, p.How)
	c.warnResolved(warning)
	return nil
}

func (c *command) warnResolved(warning string) {
	if warning != "" {
		fmt.Fprintf(c.Stderr, "memsync-agent: warning: %s\n", warning)
	}
}

// broughtBack is what whoever gives a text the place of a redacted one has to know.
const broughtBack = "an admin redacted the text that the hub had there, and this one takes its place for the whole team: " +
	"look whether it repeats what was redacted, and if so take that out at once"

// warningOf is what is to be looked at once a conflict of this machine is resolved so; ""
// = nothing. It is asked before.
func (c *command) warningOf(l Link, p resolveParams) string {
	if p.How == "theirs" {
		return ""
	}
	st, err := (&statusCmd{}).read(c)
	if err != nil {
		return "" // resolving says it
	}
	for _, s := range st.Links {
		for _, e := range s.Conflicts {
			if s.ID == l.ID() && (e.ID == p.ID || e.Path == p.ID) {
				if e.Redacted {
					return broughtBack
				}
				return ""
			}
		}
	}
	return ""
}

// readMerged reads what is to resolve a conflict. The guard judges it at its path.
func readMerged(c *command, name string) ([]byte, error) {
	in := c.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("--merged: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, size, err := readBounded(in)
	if err != nil {
		return nil, fmt.Errorf("--merged: %w", err)
	}
	if size > memory.MaxMemoryBytes {
		return nil, usage("--merged %s: %s", name, memory.TooLarge(size))
	}
	return text, nil
}

// linkOfConflict finds the link that a conflict belongs to, by its id alone where
// that is enough.
func (c *command) linkOfConflict(f selectFlags, id string) (Link, error) {
	if f.Link == "" && f.Dir == "" && f.Project == "" {
		st, err := (&statusCmd{}).read(c)
		if err != nil {
			return Link{}, err
		}
		var found []Link
		for _, l := range st.Links {
			for _, e := range l.Conflicts {
				if e.ID == id || e.Path == id {
					found = append(found, l.Link)
					break
				}
			}
		}
		switch len(found) {
		case 0:
			return Link{}, usage("no open conflict is called %s; see 'memsync-agent conflicts list'", id)
		case 1:
			return found[0], nil
		}
	}
	f.Hub = "" // a conflict is known to the state alone
	return c.choose(f)
}

// resumeCmd decides what a brake, or a project that is gone from the hub, asks.
type resumeCmd struct {
	selectFlags
	AcceptDeletes bool `xor:"how" cmdline:"" help:"The files were deleted on purpose: delete them on the hub too."`
	Restore       bool `xor:"how" cmdline:"" help:"Bring the missing files back from the hub."`
	Create        bool `xor:"how" cmdline:"" help:"Make the project anew on a hub that does not know it any more, and offer it the files that are here."`
}

// resumeParams end a halt.
type resumeParams struct {
	Link          string `json:"link"`
	AcceptDeletes bool   `json:"accept_deletes"`
}

func (p resumeParams) do(ctx context.Context, s *syncer.Syncer) error {
	mode := syncer.Restore
	if p.AcceptDeletes {
		mode = syncer.AcceptDeletes
	}
	return s.Resume(ctx, mode)
}

// Run ends a halt. The daemon, or the next sync, acts on it.
func (x *resumeCmd) Run(c *command) error {
	if !x.AcceptDeletes && !x.Restore && !x.Create {
		return usage("say what to do: --accept-deletes or --restore, or --create where the project is gone from the hub; see 'memsync-agent resume --help'")
	}
	f := x.selectFlags
	f.Hub = ""
	l, err := c.choose(f)
	if err != nil {
		return err
	}
	if x.Create {
		return x.create(c, l)
	}
	p := resumeParams{Link: l.ID(), AcceptDeletes: x.AcceptDeletes}
	if err := c.act(l, methodResume, p, nil, p.do); err != nil {
		return err
	}
	word := "the files come back"
	if x.AcceptDeletes {
		word = "the deletes go to the hub"
	}
	fmt.Fprintf(c.Stdout, "resumed %s: %s with the next cycle\n", l.Name(), word)
	return nil
}

// create makes the project of a link anew. Whoever purged a project meant it, and a hub
// that was restored from before it was made looks the same from here, so that a person
// decides. What is here is then offered as to any hub that lost it.
func (x *resumeCmd) create(c *command, l Link) error {
	cl, err := c.dialWithToken(l)
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(c.ctx, defaultTimeout)
	defer cancel()
	if err := createProject(ctx, cl, l); err != nil {
		return err
	}
	fmt.Fprintf(c.Stdout, "resumed %s: the project is on the hub; the files that are here are offered to it with the next cycle\n", l.Name())
	if err := c.tellDaemon(); err != nil {
		return fmt.Errorf("the running daemon was not told, and tries again within %v: %w", reprobe, err)
	}
	return nil
}

// act has the daemon do something to a link, or does it here when none runs.
func (c *command) act(l Link, method string, params, result any, here func(context.Context, *syncer.Syncer) error) error {
	ctx, cancel := context.WithTimeout(c.ctx, defaultTimeout)
	defer cancel()
	if !c.state.exists() {
		return usage("no state in %s; give the --state-dir of the agent", string(c.state))
	}
	_, err := c.daemonOr(ctx, method, params, result, func() error {
		one, err := c.open(l, noTrashEnds())
		if err != nil {
			return err
		}
		defer one.close()
		return here(ctx, one.s)
	})
	return plain(err)
}

// startingUp bounds how long a command waits for whoever holds the state directory and
// does not answer yet: a daemon that just starts or ends, or another command.
const startingUp = 5 * time.Second

// daemonOr has the daemon do something, or does it here, with the state directory
// locked, when none runs. asked says which it was.
func (c *command) daemonOr(ctx context.Context, method string, params, result any, here func() error) (asked bool, err error) {
	for since := c.Now(); ; {
		err := control.Call(ctx, string(c.state), method, params, result)
		if !errors.Is(err, control.ErrNoDaemon) {
			return true, plain(err)
		}
		lock, err := control.Acquire(string(c.state))
		switch {
		case err == nil:
			defer func() { _ = lock.Release() }()
			return false, here()
		case !errors.Is(err, control.ErrLocked), c.Now().Sub(since) > max(startingUp, c.Patience), !pause(ctx, 20*time.Millisecond):
			return false, err
		}
	}
}

// plain marks errors that are a person's mistake.
func plain(err error) error {
	var refused *syncer.RefusedError
	if errors.Is(err, syncer.ErrNoConflict) || errors.Is(err, syncer.ErrNotHalted) || errors.Is(err, syncer.ErrNotInTrash) ||
		errors.As(err, &refused) || errors.Is(err, &control.Error{Code: codeUsage}) {
		return &config.UsageError{Err: err}
	}
	return err
}

// act runs a command on the link's syncer and then a cycle.
func (r *runner) act(do func() error) error {
	if err := do(); err != nil {
		return err
	}
	r.wake(wakeKick)
	return nil
}
