package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/memsvc/memsvc/internal/agent/control"
	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncstate"
	"github.com/memsvc/memsvc/internal/agent/workspace"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/secretscan"
)

type syncCmd struct {
	linkFlags
	trashFlags
	JSON    bool          `name:"json" help:"Print the status as JSON; see docs/cli.md."`
	Timeout time.Duration `help:"Give up after this time." default:"10m"`
}

// negativeTimeout refuses a time to wait that no one can have meant.
func negativeTimeout(d time.Duration) error {
	return usage("--timeout %s: a time to wait is not negative", d)
}

// Run brings directories in step once. Where a daemon serves the state directory, it
// does the work. What cannot work as given changes nothing.
func (x *syncCmd) Run(c *command) error {
	if x.Timeout < 0 {
		return negativeTimeout(x.Timeout)
	}
	if err := x.trashFlags.check(); err != nil {
		return err
	}
	links, err := x.links(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.ctx, x.Timeout)
	defer cancel()
	began := c.Now()
	bad := map[string]error{} // by Link.ID: links that cannot be begun
	if _, err := c.askStatus(); errors.Is(err, control.ErrNoDaemon) {
		for _, l := range links { // before the lock makes a state directory
			if err := c.ready(ctx, l); err != nil {
				bad[l.ID()] = err
				if len(links) == 1 {
					return x.late(ctx, err)
				}
			}
		}
	}
	var st Status
	asked, err := c.daemonOr(ctx, methodSettle, nil, &st, func() (err error) {
		st, err = x.here(ctx, c, links, bad)
		return err
	})
	if err == nil && asked {
		st, err = c.onlyThese(st, links)
	}
	if err != nil {
		return x.late(ctx, err)
	}
	for i, l := range st.Links {
		st.Links[i].Happened = lately(l.Happened, began) // status tells the rest
	}
	if x.JSON {
		err = printJSON(c.Stdout, st)
	} else {
		err = printSynced(c.Stdout, st, c.Now())
	}
	if err != nil {
		return err
	}
	for _, l := range st.Links {
		if l.LastError != nil && !l.InStep {
			fmt.Fprintf(c.Stderr, "memsync-agent: sync %s: %s\n", l.Name(), oneLine(errors.New(l.LastError.Message)))
		}
	}
	if code := st.exit(); code != ExitOK {
		return exitCode(code)
	}
	return nil
}

// links returns what is to be synced: the directory that the flags name, with the
// settings file's, or else everything that is linked. Flags that name no directory must
// fit that: they are not overlooked.
func (x *syncCmd) links(c *command) ([]Link, error) {
	if x.Dir != "" {
		return c.links(x.linkFlags, false)
	}
	var links []Link
	if st, err := c.askStatus(); err == nil {
		for _, l := range st.Links {
			links = append(links, l.Link)
		}
	}
	links, err := c.withLinked(links, x.linkFlags)
	if err != nil {
		return nil, err
	}
	if len(links) == 0 {
		return nil, nothingLinked(x.linkFlags)
	}
	for _, l := range links {
		if len(c.configured) == 0 {
			if err := x.fits(c, l); err != nil {
				return nil, err
			}
		}
		if err := c.state.check(l); err != nil {
			return nil, err
		}
	}
	return links, checkLinks(links)
}

// fits refuses flags that say other than a link which they do not name.
func (x *syncCmd) fits(c *command, l Link) error {
	f, err := absolute(x.link())
	if err != nil {
		return err
	}
	for _, d := range []struct{ flag, want, have string }{
		{"hub", f.Hub, l.Hub}, {"token-file", f.TokenFile, c.state.tokenFileOf(l)}, {"team", f.Team, l.Team},
		{"project", f.Project, l.Project}, {"ca-file", f.CAFile, l.CAFile}, {"cert-file", f.CertFile, l.CertFile}, {"key-file", f.KeyFile, l.KeyFile},
	} {
		if d.want != "" && d.want != d.have {
			return usage("--%s %s is not what %s is linked with; give --dir to say which directory is meant", d.flag, d.want, l.Dir)
		}
	}
	return nil
}

// ready refuses a link that cannot work as given: its files, its address, and, where
// nothing was ever synced, what the hub says of token and project. It changes nothing
// here; a project that the token may make is made.
func (c *command) ready(ctx context.Context, l Link) error {
	if err := l.checkOwner(); err != nil {
		return err
	}
	if _, err := c.state.lacksDir(l); err != nil {
		return err
	}
	cl, err := c.dialWithToken(l)
	if err != nil {
		return err
	}
	defer cl.Close()
	if c.state.has(l) {
		return nil
	}
	_, err = cl.Project(ctx, l.Key(), memory.Cursor{})
	if errors.Is(err, memory.ErrNotFound) {
		err = createProject(ctx, cl, l)
	}
	return err
}

// late says what an end by --timeout was.
func (x *syncCmd) late(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("not in step within %v (--timeout); run it again, it goes on from there", x.Timeout)
	}
	return err
}

// onlyThese narrows a daemon's status to the links that were asked for. One that the
// daemon does not serve, or serves otherwise, was not synced as asked, and cannot be
// beside it.
func (c *command) onlyThese(st Status, links []Link) (Status, error) {
	all := st.Links
	st.Links, st.InStep = []LinkStatus{}, true
	for _, l := range links {
		i := slices.IndexFunc(all, func(s LinkStatus) bool { return s.ID == l.ID() })
		if i < 0 {
			for _, s := range all {
				if realDir(s.Dir) == realDir(l.Dir) {
					return Status{}, usage("the daemon of this state directory (process %d) serves %s as %s, not %s", st.PID, l.Dir, s.Name(), l.Name())
				}
			}
			return Status{}, usage("the daemon of this state directory (process %d) does not serve %s; link it there, or give another --state-dir", st.PID, l.Dir)
		}
		have, want := all[i].hubKey(c.state), l.hubKey(c.state)
		if have != want {
			what := "with other TLS settings"
			switch {
			case have.addr != want.addr:
				what = "with the hub " + have.addr + ", not " + want.addr
			case have.tokenFile != want.tokenFile:
				what = "with the token in " + have.tokenFile + ", not " + want.tokenFile
			}
			return Status{}, usage("the daemon of this state directory (process %d) serves %s %s; restart it with these flags, or leave them out", st.PID, l.Dir, what)
		}
		st.Links = append(st.Links, all[i])
		st.InStep = st.InStep && all[i].InStep
	}
	return st, nil
}

// maxSyncedWarnings bounds the warnings that sync shows of a link in step.
const maxSyncedWarnings = 10

// printSynced writes one line a link, what is to be told of its files, and more only where
// something waits for a person.
func printSynced(w io.Writer, st Status, now time.Time) error {
	for _, l := range st.Links {
		switch {
		case l.InStep:
			if _, err := fmt.Fprintf(w, "%s: in step at revision %d, %s\n%s%s", l.Name(), l.Revision, count(l.Files, "file"), l.happenedLine(), visibleText(l.warningLines(maxSyncedWarnings))); err != nil {
				return err
			}
			continue
		case l.LastError != nil && l.settled():
			continue // the error stream has it
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
func (x *syncCmd) here(ctx context.Context, c *command, links []Link, bad map[string]error) (Status, error) {
	for _, l := range links {
		if bad[l.ID()] != nil {
			continue
		}
		if made, err := c.state.prepareDir(l); err != nil {
			return Status{}, err
		} else if made {
			fmt.Fprintf(c.Stderr, "made %s\n", l.Dir)
		}
	}
	st := Status{Version: userAgent(), StateDir: string(c.state), Running: true, InStep: true, Hubs: []HubStatus{}, Links: []LinkStatus{}}
	for _, l := range links {
		s := x.syncLink(ctx, c, l, bad[l.ID()])
		st.InStep = st.InStep && s.InStep
		st.Links = append(st.Links, s)
	}
	return st, nil
}

// syncLink runs cycles until nothing is left to do by itself.
func (x *syncCmd) syncLink(ctx context.Context, c *command, l Link, bad error) LinkStatus {
	failed := func(err error) LinkStatus {
		s := newLinkStatus(l)
		s.Phase, s.LastError = PhaseFailing, errorInfo(err, c.Now())
		return s
	}
	if bad != nil {
		return failed(bad)
	}
	one, err := c.open(l, x.trashFlags.limits())
	if err != nil {
		return failed(err)
	}
	defer one.close()
	stop := c.progress(l, one.s)
	err = one.cycles(ctx)
	stop()
	if len(one.gaveUp) > 0 {
		fmt.Fprintf(c.Stderr, "memsync-agent: sync %s: %s\n", l.Name(), visible(givenUp(one.gaveUp)))
	}
	if err == nil {
		// Only now is it known that the hub and the credential are the link's.
		if rerr := c.state.remember(l); rerr != nil {
			return failed(rerr)
		}
		if rerr := one.redacted.settle(ctx); rerr != nil {
			fmt.Fprintf(c.Stderr, "memsync-agent: sync %s: %s; the next sync tries again\n", l.Name(), oneLine(rerr))
		}
		if _, rerr := one.report.round(ctx, one.s, c.Now()); rerr != nil {
			fmt.Fprintf(c.Stderr, "memsync-agent: sync %s: the hub does not know of all conflicts yet: %s\n", l.Name(), oneLine(rerr))
		}
	}
	s := linkStatus(l, one.s.Status(), c.Now())
	s.UploadsWait = one.gate.waiting()
	if err != nil {
		err = x.late(ctx, err)
		s.Phase, s.LastError = phaseOf(err), errorInfo(err, c.Now())
	}
	s.InStep = err == nil && s.Phase == PhaseInSync && s.settled()
	s.HubRevision = s.Revision
	s.Phase = s.outward()
	s.Todo = todo(s)
	if s.Phase == PhaseStopped && !s.gone() {
		s.Todo = "put right what the error says, and sync again"
	}
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
	gate   *uploadGate
	policy *policyHolder
	report *reporter

	redacted redactions
	gaveUp   []syncer.Trashed // of the trash, for room
	keep     func(client.GuardPolicy) error
}

// noTrashEnds is for commands that give no trash up.
func noTrashEnds() trashLimits { return trashLimits{age: math.MaxInt64, bytes: math.MaxInt64} }

// open opens a link for one command. The state directory is locked by the caller. Trash
// past its limits is given up.
func (c *command) open(l Link, trash trashLimits) (*opened, error) {
	cl, err := c.dial(l)
	if err != nil {
		return nil, err
	}
	if err := c.state.begin(l); err != nil {
		return nil, errors.Join(err, cl.Close())
	}
	st, err := syncstate.Open(string(c.state), l.ID(), syncstate.Options{Now: c.Now})
	if err != nil {
		return nil, errors.Join(err, cl.Close())
	}
	if text := foundState(st.Report()); text != "" {
		fmt.Fprintf(c.Stderr, "%s: %s\n", l.Name(), text)
	}
	ws, err := workspace.New(l.Dir, workspace.Options{Now: c.Now, Project: l.Key()})
	if err != nil {
		return nil, errors.Join(err, st.Close(), cl.Close())
	}
	o := &opened{
		link: l, hub: cl, state: st, lock: newRootLock(l.Dir), gate: c.state.newUploadGate(l, c.Now), policy: &policyHolder{},
		keep: func(p client.GuardPolicy) error { return c.state.storePolicy(l.Hub, p) },
	}
	if saved, ok := c.state.loadPolicy(l.Hub, l.Team); ok {
		o.policy.set(saved)
	}
	judge := guard{scanner: secretscan.New(secretscan.Options{CacheEntries: -1}), policy: o.policy}
	o.report = &reporter{c: cl, key: l.Key(), guard: judge, policy: o.policy}
	o.redacted = redactions{state: c.state, link: l, now: c.Now}
	rem := &remote{c: cl, key: l.Key(), redacting: o.redacted.note}
	o.redacted.ask = rem.Redacted
	o.s = syncer.New(syncer.Ports{
		Local: ws, State: st, Remote: rem, Clock: syncer.Clock(c.Now), NewID: uuid.NewString, Guard: judge, Uploads: o.gate,
	}, trash.options())
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
	for n := 0; n < maxCycles; n++ {
		res, err := o.s.Cycle(ctx)
		o.gaveUp = append(o.gaveUp, res.GivenUp...)
		if w := o.gate.waiting(); err == nil && w != nil {
			if w.Stuck {
				return nil // status says so
			}
			n-- // what waits for a dream is waited for until time is up
		}
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
