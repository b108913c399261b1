package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncstate"
	"github.com/memsvc/memsvc/internal/agent/workspace"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/secretscan"
)

type syncCmd struct {
	linkFlags
	JSON    bool          `name:"json" help:"Print the status as JSON; see docs/cli.md."`
	Timeout time.Duration `help:"Give up after this time." default:"10m"`
}

// Run brings directories in step once. Where a daemon serves the state directory, it
// does the work.
func (x *syncCmd) Run(c *command) error {
	links, err := c.links(x.linkFlags)
	if err != nil {
		return err
	}
	for _, l := range links { // before the lock makes a state directory
		if _, err := c.state.lacksDir(l); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(c.ctx, x.Timeout)
	defer cancel()
	var st Status
	asked, err := c.daemonOr(ctx, methodSettle, nil, &st, func() (err error) {
		st, err = x.here(ctx, c, links)
		return err
	})
	if err == nil && asked {
		st, err = onlyThese(st, links)
	}
	if err != nil {
		return err
	}
	if x.JSON {
		err = printJSON(c.Stdout, st)
	} else {
		err = printSynced(c.Stdout, st, c.Now())
	}
	if err != nil {
		return err
	}
	if code := st.exit(); code != ExitOK {
		return exitCode(code)
	}
	return nil
}

// onlyThese narrows a daemon's status to the links that were asked for. One that the
// daemon does not serve was not synced, and cannot be beside it.
func onlyThese(st Status, links []Link) (Status, error) {
	all := st.Links
	st.Links, st.InStep = []LinkStatus{}, true
	for _, l := range links {
		i := slices.IndexFunc(all, func(s LinkStatus) bool { return s.ID == l.ID() })
		if i < 0 {
			return Status{}, usage("the daemon of this state directory (process %d) does not serve %s; link it there, or give another --state-dir", st.PID, l.Dir)
		}
		st.Links = append(st.Links, all[i])
		st.InStep = st.InStep && all[i].InStep
	}
	return st, nil
}

// printSynced writes one line a link, and more only where something is not in step.
func printSynced(w io.Writer, st Status, now time.Time) error {
	for _, l := range st.Links {
		if l.InStep {
			if _, err := fmt.Fprintf(w, "%s: in step at revision %d, %s\n", l.Name(), l.Revision, count(l.Files, "file")); err != nil {
				return err
			}
			continue
		}
		one := st
		one.Hubs, one.Links = nil, []LinkStatus{l}
		if err := one.printLinks(w, now); err != nil {
			return err
		}
	}
	return nil
}

// here syncs without a daemon, one link after the other.
func (x *syncCmd) here(ctx context.Context, c *command, links []Link) (Status, error) {
	for _, l := range links {
		if made, err := c.state.prepareDir(l); err != nil {
			return Status{}, err
		} else if made {
			fmt.Fprintf(c.Stderr, "made %s\n", l.Dir)
		}
	}
	st := Status{Version: userAgent(), StateDir: string(c.state), Running: true, InStep: true, Hubs: []HubStatus{}, Links: []LinkStatus{}}
	for _, l := range links {
		s := x.syncLink(ctx, c, l)
		st.InStep = st.InStep && s.InStep
		st.Links = append(st.Links, s)
	}
	return st, nil
}

// syncLink runs cycles until nothing is left to do by itself.
func (x *syncCmd) syncLink(ctx context.Context, c *command, l Link) LinkStatus {
	one, err := c.open(l)
	if err != nil {
		s := newLinkStatus(l)
		s.Phase, s.LastError = PhaseFailing, errorInfo(err, c.Now())
		return s
	}
	defer one.close()
	stop := c.progress(l, one.s)
	err = one.cycles(ctx)
	stop()
	s := linkStatus(l, one.s.Status())
	if err != nil {
		s.Phase, s.LastError = phaseOf(err), errorInfo(err, c.Now())
	}
	s.InStep = err == nil && s.Phase == Phase(syncer.PhaseInSync) && s.settled()
	s.HubRevision = s.Revision
	s.Todo = todo(s)
	return s
}

func errorInfo(err error, now time.Time) *ErrorInfo {
	e := &ErrorInfo{Message: err.Error(), Time: now.UTC()}
	var d *memory.Error
	if errors.As(err, &d) {
		e.Reason = string(d.Reason)
	}
	return e
}

// progress shows how a long first sync goes, to a person at a terminal alone.
func (c *command) progress(l Link, s *syncer.Syncer) (stop func()) {
	if !c.terminal() {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		shown := false
		for {
			select {
			case <-done:
				if shown {
					fmt.Fprint(c.Stderr, "\r\x1b[K")
				}
				return
			case <-tick.C:
				shown = true
				fmt.Fprintf(c.Stderr, "\r\x1b[K%s: %s", l.Name(), count(s.Status().Files, "file"))
			}
		}
	}()
	return func() { close(done); <-ended }
}

// opened is a link opened by a command while no daemon runs.
type opened struct {
	link   Link
	s      *syncer.Syncer
	hub    *client.Client
	state  *syncstate.State
	lock   *rootLock
	policy *policyHolder
	keep   func(client.GuardPolicy) error
}

// open opens a link for one command. The state directory is locked by the caller.
func (c *command) open(l Link) (*opened, error) {
	cl, err := c.dial(l)
	if err != nil {
		return nil, err
	}
	if err := c.state.remember(l); err != nil {
		return nil, errors.Join(err, cl.Close())
	}
	st, err := syncstate.Open(string(c.state), l.ID(), syncstate.Options{Now: c.Now})
	if err != nil {
		return nil, errors.Join(err, cl.Close())
	}
	if text := foundState(st.Report()); text != "" {
		fmt.Fprintf(c.Stderr, "%s: %s\n", l.Name(), text)
	}
	ws, err := workspace.New(l.Dir, workspace.Options{Now: c.Now})
	if err != nil {
		return nil, errors.Join(err, st.Close(), cl.Close())
	}
	o := &opened{
		link: l, hub: cl, state: st, lock: newRootLock(l.Dir), policy: &policyHolder{},
		keep: func(p client.GuardPolicy) error { return c.state.storePolicy(l.Hub, p) },
	}
	if saved, ok := c.state.loadPolicy(l.Hub, l.Team); ok {
		o.policy.set(saved)
	}
	o.s = syncer.New(syncer.Ports{
		Local: ws, State: st, Remote: &remote{c: cl, key: l.Key()}, Clock: syncer.Clock(c.Now), NewID: uuid.NewString,
		Guard: guard{scanner: secretscan.New(secretscan.Options{CacheEntries: -1}), policy: o.policy},
	}, syncer.Options{})
	return o, nil
}

func (o *opened) close() {
	o.lock.release()
	_ = o.state.Close()
	_ = o.hub.Close()
}

// maxCycles bounds how often a link is looked at by one command; a directory that is
// written without pause must not keep it for ever.
const maxCycles = 50

// cycles runs cycles until nothing is left to do, trouble comes or time is up.
func (o *opened) cycles(ctx context.Context) error {
	if err := o.lock.hold(); err != nil {
		return err
	}
	if p, err := o.hub.Policy(ctx, o.link.Key().Team); err == nil && o.policy.set(p) {
		if err := o.keep(p); err != nil {
			return err
		}
	}
	created, failures := false, 0
	for range maxCycles {
		res, err := o.s.Cycle(ctx)
		switch {
		case errors.Is(err, memory.ErrNotFound) && o.s.Status().Cursor.Epoch != "":
			return projectGone(o.link)
		case errors.Is(err, memory.ErrNotFound) && !created:
			created = true
			if err := createProject(ctx, o.hub, o.link); err != nil {
				return err
			}
			continue
		case err != nil && syncer.Classify(err) == syncer.Transient && failures < 3 && ctx.Err() == nil:
			failures++
			if !pause(ctx, backoff(minRetry, maxRetry, failures)) {
				return err
			}
			continue
		case err != nil:
			return err
		case res.Again > 0:
			if !pause(ctx, res.Again) {
				return ctx.Err()
			}
		case res.Phase != syncer.PhasePending:
			return nil
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
