package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/agent/control"
	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/clients/hooks"
	"github.com/memsvc/memsvc/internal/lifecycle/extract"
	"github.com/memsvc/memsvc/internal/lifecycle/inject"
	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	modelcommand "github.com/memsvc/memsvc/internal/lifecycle/model/command"
	"github.com/memsvc/memsvc/internal/lifecycle/notes"
)

type hookCmd struct {
	Event  string `arg:"" optional:"" help:"The event's name; else the one in the input."`
	Recall bool   `help:"Give memories to conversations." default:"true" negatable:""`
}

// Run answers an event of a coding client, from standard input to standard output.
func (x *hookCmd) Run(c *command) error {
	if os.Getenv(modelcommand.HooksOff) == "1" {
		return nil // a client that we asked ourselves; see package command
	}
	err := x.answer(c)
	if err != nil && c.g.LogLevel == "debug" {
		fmt.Fprintf(c.Stderr, "memsync-agent: %s\n", oneLine(err))
	}
	return nil // whatever it was: a hook never breaks a session
}

// hookTime bounds a hook, whatever holds it up; clients wait longer, people do not like to.
// The end of a session has less: clients give all its hooks 1.5 s together.
const (
	hookTime       = 4 * time.Second
	sessionEndTime = 1400 * time.Millisecond
)

// answer runs the hook and gives up on it when its time is over, or when the client asks
// it to end. What it still does then ends with the process.
func (x *hookCmd) answer(c *command) error {
	limit := hookTime
	if strings.EqualFold(strings.ReplaceAll(x.Event, "-", ""), "SessionEnd") {
		limit = sessionEndTime
	}
	ctx, cancel := context.WithTimeout(c.ctx, cmp.Or(c.HookTime, limit))
	defer cancel()
	out := handover{ctx: ctx, texts: make(chan []byte), wrote: make(chan error, 1)}
	done := make(chan error, 1)
	go func() { done <- hooks.Run(ctx, hookEngine{c, !x.Recall}, x.Event, c.Stdin, out, c.Now()) }()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("hook: no answer in time: %w", ctx.Err())
		case text := <-out.texts:
			_, err := c.Stdout.Write(text)
			out.wrote <- err
		case err := <-done:
			return err
		}
	}
}

// handover is a writer whose texts somebody else writes, until its time is over: what the
// writer hears of is so what the client gets.
type handover struct {
	ctx   context.Context //nolint:containedctx // of the one event that is answered
	texts chan []byte
	wrote chan error
}

// Write returns once the text is written, or is not going to be.
func (h handover) Write(text []byte) (int, error) {
	select {
	case <-h.ctx.Done():
		return 0, h.ctx.Err()
	case h.texts <- text:
	}
	if err := <-h.wrote; err != nil {
		return 0, err
	}
	return len(text), nil
}

// isHook reports whether a command line is that of a hook, even one that cannot be
// understood: clients take an exit code of 2 for a veto.
func isHook(args []string) bool {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case slices.Contains([]string{"--config", "--state-dir", "--log-level", "--log-format"}, a):
			i++ // its value
		case !strings.HasPrefix(a, "-"):
			return a == "hook"
		}
	}
	return false
}

// hookEngine is what hooks ask of this machine.
type hookEngine struct {
	c       *command
	without bool // give no memories
}

// Lookups are the daemon's.
func (e hookEngine) Lookups() hooks.Lookups { return lookupCalls{e.c.state} }

// Saw remembers it by the root of the project.
func (e hookEngine) Saw(_ context.Context, cwd, file string) error {
	if !filepath.IsAbs(cwd) {
		return nil // of whom it is is not known
	}
	return e.c.saw(cwd, file)
}

// Record lies in the state directory.
func (e hookEngine) Record() inject.Record { return inject.Record{Dir: e.c.state.path("sessions")} }

// Shared returns the directories of every link that is known here, whichever project the
// client works on. The state of none is opened for it.
func (e hookEngine) Shared(context.Context) ([]hooks.Shared, error) {
	links, err := e.c.allLinks()
	if err != nil {
		return nil, err
	}
	out := make([]hooks.Shared, 0, len(links))
	for _, l := range links {
		out = append(out, hooks.Shared{
			Dir: l.Dir, Guard: func() memories.Guard { return e.c.state.guardFor(l.Hub, l.Team) }, SyncNow: e.syncNow,
		})
	}
	return out, nil
}

// syncNow has the daemon look as soon as it hears; nobody waits until it has done.
func (e hookEngine) syncNow(ctx context.Context) {
	_ = control.Call(ctx, string(e.c.state), methodSettle, nil, nil)
}

// Project finds the memories of the project that a client works on.
func (e hookEngine) Project(_ context.Context, cwd, seen string) (hooks.Project, error) {
	c := e.c
	if !filepath.IsAbs(cwd) {
		wd, err := os.Getwd()
		if err != nil {
			return hooks.Project{}, err
		}
		cwd = wd
	}
	p, err := c.placeOf(placeFlags{}, cwd, seen)
	if err != nil {
		return hooks.Project{}, err
	}
	g := c.guardOf(p)
	home, _ := os.UserHomeDir() // without one there is no template of the person's own
	turn := extractParams{Personal: p.Dir, Team: p.team, Project: p.Root, CWD: cwd, Config: (&memdir.Resolver{Getenv: os.Getenv, Home: home}).Config()}
	if p.link != nil {
		turn.Hub, turn.TeamName = p.link.Hub, p.link.Team
	}
	finished := func(ctx context.Context, t hooks.Turn) error {
		turn.Session, turn.Transcript, turn.Compacting = t.Session, t.Transcript, t.Compacting
		return c.finished(ctx, turn)
	}
	out := hooks.Project{Personal: p.Dir, Team: p.team, Store: c.store(p), Guard: g, Finished: finished, Notes: readNotes, Selector: c.hookSelector(), Off: p.Off != "", NoRecall: e.without}
	if p.closed != nil {
		out.ClosedTeam, out.Closed = p.closed.dir, p.closed.why
		turn.Mixed = true
	}
	if p.link == nil {
		return out, nil
	}
	id, name := p.link.ID(), p.link.Name()
	out.Sync = func(ctx context.Context, head bool) (*hooks.Sync, error) {
		var st standing
		err := control.Call(ctx, string(c.state), methodStanding, standingParams{Link: id, Head: head}, &st)
		switch {
		case errors.Is(err, control.ErrNoDaemon):
			return &hooks.Sync{Name: name, Phase: string(PhaseNotRunning), Todo: todoStart}, nil
		case errors.Is(err, &control.Error{Code: codeUsage}):
			return &hooks.Sync{Name: name, Phase: string(PhaseNotRunning), Todo: "the daemon that runs does not serve this directory; restart it"}, nil
		case err != nil:
			return nil, err
		}
		return syncOf(st), nil
	}
	out.Changes = func(ctx context.Context, since time.Time) ([]hooks.Change, error) {
		limited, cancel := context.WithTimeout(ctx, newsWait)
		defer cancel()
		var entries []newsEntry
		if err := control.Call(limited, string(c.state), methodNews, newsParams{Link: id, Since: since}, &entries); err != nil {
			return nil, err
		}
		changes := make([]hooks.Change, 0, len(entries))
		for _, e := range entries {
			changes = append(changes, hooks.Change{Path: e.Path, Time: e.Time, Author: e.Author, Deleted: e.Deleted, Description: e.Description, Grants: e.Grants})
		}
		return changes, nil
	}
	out.SyncNow = e.syncNow
	return out, nil
}

// readNotes returns the notes of a conversation, "" if there are none.
func readNotes(transcript string) string {
	text, err := os.ReadFile(notes.Path(transcript))
	if err != nil {
		return "" // a conversation too short for them has none
	}
	return string(text)
}

// newsWait bounds how long a prompt waits to hear what the team changed.
const newsWait = 200 * time.Millisecond

func syncOf(st standing) *hooks.Sync {
	l := st.Status
	s := &hooks.Sync{Name: l.Name(), Phase: string(l.Phase), InStep: l.InStep, Touch: st.Touch, Todo: l.Todo}
	switch l.Phase {
	case PhaseInSync, PhaseAttention, Phase(syncer.PhaseSyncing), Phase(syncer.PhasePending):
		s.Moves = true
	}
	if s.Todo == todoConflicts {
		s.Todo = todoConflictsEither
	}
	for _, r := range l.Refusals {
		for _, f := range r.Findings {
			where := r.Path
			if f.Line > 0 {
				where = fmt.Sprintf("%s:%d", r.Path, f.Line)
			}
			s.Refused = append(s.Refused, where+": "+f.Message+" ("+f.Rule+")")
		}
	}
	for _, k := range l.Conflicts {
		s.Conflicts = append(s.Conflicts, k.Path+" (conflict "+k.ID+")")
	}
	return s
}

// handOver bounds how long a client waits to hand a finished turn over.
const handOver = 500 * time.Millisecond

// finished hands a finished turn to the daemon. Where none runs, what a person said in so
// many words is taken at once; anything longer would be in the client's way.
func (c *command) finished(ctx context.Context, p extractParams) error {
	limited, cancel := context.WithTimeout(ctx, handOver)
	defer cancel()
	err := control.Call(limited, string(c.state), methodExtract, p, nil)
	if !errors.Is(err, control.ErrNoDaemon) {
		return err
	}
	if err := p.check(); err != nil {
		return err
	}
	e := newEngine(c.state, nil, c.Now).extractor(p, nil, false)
	_, err = e.Run(limited, extract.Conversation{Session: p.Session, Transcript: p.Transcript}, false)
	return err
}
