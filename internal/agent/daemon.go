package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncstate"
	"github.com/memsvc/memsvc/internal/agent/watcher"
	"github.com/memsvc/memsvc/internal/agent/workspace"
	"github.com/memsvc/memsvc/internal/buildinfo"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/secretscan"
	"github.com/memsvc/memsvc/internal/telemetry"
)

// DaemonOptions configure a Daemon. Zero fields take their defaults.
type DaemonOptions struct {
	StateDir string // absolute; locked by the caller
	Links    []Link // checked
	Logger   *slog.Logger
	Registry prometheus.Registerer
	Now      func() time.Time
	Watcher  watcher.Options
	Scan     workspace.Options
	// Client is completed with address, credential and labels for each hub.
	Client client.Options
	// Tracing sends spans of uploads and applied commits; nil: none are made. Whoever
	// gives it closes it.
	Tracing *telemetry.Tracing
	// TrashAge is how long trash is kept, and TrashBytes how much of it a link keeps
	// together; 0 = 30 days, 64 MiB.
	TrashAge   time.Duration
	TrashBytes int64
	// model is the language model, whose use is told; nil = none.
	model *liveModel
}

// Daemon runs links. It is what `run` is without its process: tests run several in
// one. Make it with NewDaemon.
type Daemon struct {
	opts    DaemonOptions
	state   stateDir
	agentID string
	machine string
	scanner *secretscan.Scanner
	watch   *watcher.Set
	m       *metrics
	wg      sync.WaitGroup
	ctx     context.Context //nolint:containedctx // ends what Apply starts
	cancel  context.CancelFunc

	mu    sync.Mutex // guards what follows
	hubs  map[hubKey]*hub
	links map[string]*running // by Link.ID
	order []string
}

// running is a link and what ends it.
type running struct {
	r      *runner
	state  *syncstate.State
	hub    *hub
	cancel context.CancelFunc
	done   chan struct{}
}

// NewDaemon returns a daemon that runs no link yet.
func NewDaemon(opts DaemonOptions) (*Daemon, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Registry == nil {
		opts.Registry = prometheus.NewRegistry()
	}
	if opts.Scan.Now == nil {
		opts.Scan.Now = opts.Now
	}
	state := stateDir(opts.StateDir)
	if err := state.create(); err != nil {
		return nil, err
	}
	id, err := state.agentID()
	if err != nil {
		return nil, fmt.Errorf("state directory %s: %w", opts.StateDir, err)
	}
	scanner := secretscan.New(secretscan.Options{CacheEntries: guardCache})
	ctx, cancel := context.WithCancel(context.Background())
	d := &Daemon{
		opts: opts, state: state, agentID: id, machine: machineName(scanner),
		scanner: scanner,
		watch:   watcher.New(opts.Watcher), m: newMetrics(opts.Registry),
		ctx: ctx, cancel: cancel,
		hubs: map[hubKey]*hub{}, links: map[string]*running{},
	}
	opts.Registry.MustRegister(newStatusCollector(d.Status), newModelCollector(state.modelCounter(opts.Now), opts.model.perDay))
	return d, nil
}

// guardCache is how many verdicts are kept: more than the files that change between
// two looks, fewer than would be felt in memory.
const guardCache = 2048

// Apply makes the given links the ones that run: new ones start, missing ones stop,
// the others go on undisturbed, and look once more where they had given up. A link that cannot start is an error of its own, and
// the others run.
func (d *Daemon) Apply(links []Link) error {
	if err := checkLinks(links); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	wanted := map[string]Link{}
	for _, l := range links {
		wanted[l.ID()] = l
	}
	for id, run := range d.links {
		if l, ok := wanted[id]; !ok || l != run.r.link {
			d.stop(id)
		} else {
			run.r.cause() // a person did something about it just now, perhaps
		}
	}
	var errs []error
	d.order = d.order[:0]
	for _, l := range links {
		id := l.ID()
		if d.links[id] == nil {
			if err := d.start(l); err != nil {
				errs = append(errs, fmt.Errorf("link %s: %w", l.Name(), err))
				continue
			}
		}
		d.order = append(d.order, id)
	}
	return errors.Join(errs...)
}

// Serves reports whether this very link runs.
func (d *Daemon) Serves(l Link) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	run := d.links[l.ID()]
	return run != nil && run.r.link == l
}

// start runs a link; d.mu is held.
func (d *Daemon) start(l Link) error {
	h, err := d.hubOf(l)
	if err != nil {
		return err
	}
	if err := d.state.begin(l); err != nil {
		return err
	}
	st, err := syncstate.Open(string(d.state), l.ID(), syncstate.Options{Now: d.opts.Now})
	if err != nil {
		return err
	}
	scan := d.opts.Scan
	scan.Project = l.Key()
	ws, err := workspace.New(l.Dir, scan)
	if err != nil {
		return errors.Join(err, st.Close())
	}
	w, err := d.watch.Watch(l.Dir)
	if err != nil {
		return errors.Join(err, st.Close())
	}
	log := d.opts.Logger.With("link", l.Name())
	if text := foundState(st.Report()); text != "" {
		log.Warn(text)
	}
	redacted := redactions{state: d.state, link: l, now: d.opts.Now}
	rem := &remote{c: h.c, key: l.Key(), tracing: d.opts.Tracing, redacting: redacted.note}
	redacted.ask = rem.Redacted
	judge := guard{scanner: d.scanner, policy: h.policy(l.Key().Team)}
	gate := d.state.newUploadGate(l, d.opts.Now)
	ports := syncer.Ports{
		Local: ws, State: st, Remote: rem, Clock: syncer.Clock(d.opts.Now), NewID: uuid.NewString, Guard: judge, Uploads: gate,
	}
	build := func() *syncer.Syncer {
		return syncer.New(ports, trashLimits{d.opts.TrashAge, d.opts.TrashBytes}.options())
	}
	r := &runner{
		link: l, hub: h, remote: rem, log: log, m: d.m, now: d.opts.Now, build: build, s: build(),
		watch: w, lock: newRootLock(l.Dir), gate: gate, redacted: redacted, report: &reporter{c: h.c, key: l.Key(), guard: judge, policy: judge.policy},
		remember: func() error { return d.state.remember(l) },
		told:     told{since: d.opts.Now()},
		woken:    make(chan struct{}, 1), moved: make(chan struct{}),
	}
	ctx, cancel := context.WithCancel(d.ctx)
	run := &running{r: r, state: st, hub: h, cancel: cancel, done: make(chan struct{})}
	d.links[l.ID()] = run
	d.wg.Go(func() {
		defer close(run.done)
		r.run(ctx)
	})
	log.Info("link started", "dir", l.Dir, "hub", l.Hub)
	return nil
}

// foundState tells a person what opening a link's state found, if it was not as it
// had been left; "" otherwise.
func foundState(r syncstate.Report) string {
	switch {
	case r.Damage != "" && r.Aside != "":
		return fmt.Sprintf("the sync state is damaged (%s) and was put aside to %s; the directory is compared with the hub anew, and nothing is deleted for it", r.Damage, r.Aside)
	case r.Damage != "":
		return fmt.Sprintf("the sync state is damaged (%s)", r.Damage)
	case r.CutBytes > 0:
		return fmt.Sprintf("the sync state ended in %d bytes of an unfinished step, as after a kill; they were dropped", r.CutBytes)
	}
	return ""
}

// stop ends a link and waits for it; d.mu is held.
func (d *Daemon) stop(id string) {
	run := d.links[id]
	delete(d.links, id)
	run.cancel()
	<-run.done
	_ = run.r.watch.Close()
	run.r.lock.release()
	if err := run.state.Close(); err != nil {
		run.r.log.Warn("state not closed", "error", err)
	}
	d.m.drop(run.r.link.Name())
	run.r.log.Info("link stopped")
}

// hubOf returns the connection that a link shares with others; d.mu is held.
func (d *Daemon) hubOf(l Link) (*hub, error) {
	key := l.hubKey(d.state)
	if h := d.hubs[key]; h != nil {
		return h, nil
	}
	opts := d.opts.Client
	opts.Addr, opts.TokenFile, opts.Plaintext = l.Hub, key.tokenFile, l.Plaintext
	opts.CAFile, opts.CertFile, opts.KeyFile = l.CAFile, l.CertFile, l.KeyFile
	opts.TokenOptional = l.tokenOptional()
	opts.UserAgent, opts.Now = userAgent(), d.opts.Now
	opts.Author = memory.Author{Machine: d.machine, Client: userAgent()}
	opts.Agent = client.AgentInfo{ID: d.agentID, Machine: d.machine, Version: buildinfo.Read().Version}
	c, err := client.New(opts)
	if err != nil {
		return nil, err
	}
	h := newHub(c, d.state, d.opts.Logger, d.opts.Now)
	d.hubs[key] = h
	d.wg.Go(func() { h.run(d.ctx) })
	return h, nil
}

// Close ends every link, each after the cycle under way, and then the connections.
func (d *Daemon) Close() error {
	d.cancel()
	d.wg.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.links {
		d.stop(id)
	}
	err := d.watch.Close()
	for _, h := range d.hubs {
		err = errors.Join(err, h.c.Close())
	}
	return err
}

// runners returns the links in the order they were given.
func (d *Daemon) runners() []*runner {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []*runner
	for _, id := range d.order {
		if run := d.links[id]; run != nil {
			out = append(out, run.r)
		}
	}
	return out
}

// find returns the link that a command names by id.
func (d *Daemon) find(id string) (*runner, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if run := d.links[id]; run != nil {
		return run.r, nil
	}
	return nil, usage("the running daemon has no such link; restart it, or run 'memsync-agent links'")
}

// Resolve ends a conflict of a link: how is "ours", "theirs" or "merged".
func (d *Daemon) Resolve(ctx context.Context, link, idOrPath, how string, merged []byte) error {
	r, err := d.find(link)
	if err != nil {
		return err
	}
	p := resolveParams{Link: link, ID: idOrPath, How: how, Merged: merged}
	return r.act(func() error { return p.do(ctx, r.syncer()) })
}

// Resume ends a halt of a link: the deletes go out, or the files come back.
func (d *Daemon) Resume(ctx context.Context, link string, acceptDeletes bool) error {
	r, err := d.find(link)
	if err != nil {
		return err
	}
	p := resumeParams{Link: link, AcceptDeletes: acceptDeletes}
	return r.act(func() error { return p.do(ctx, r.syncer()) })
}

// Settle waits until every link has looked at its directory and nothing more will
// happen by itself, or until ctx ends.
func (d *Daemon) Settle(ctx context.Context) {
	var wg sync.WaitGroup
	for _, r := range d.runners() {
		wg.Go(func() { r.settle(ctx) })
	}
	wg.Wait()
}

// settled settles all links and says how everything is then. What comes in between the
// two, such as a policy told by the hub, is waited for as well.
func (d *Daemon) settled(ctx context.Context) Status {
	for {
		d.Settle(ctx)
		s := d.Status()
		moving := slices.ContainsFunc(s.Links, func(l LinkStatus) bool { return l.Phase == Phase(syncer.PhaseSyncing) })
		if !moving || !pause(ctx, 5*time.Millisecond) {
			return s
		}
	}
}

// Status says how everything is.
func (d *Daemon) Status() Status {
	m, wrong := d.opts.model.read()
	s := Status{
		Version: buildinfo.Read().Version, Running: true, PID: os.Getpid(), StateDir: string(d.state),
		InStep: true, Hubs: []HubStatus{}, Links: []LinkStatus{}, Model: d.state.modelStatus(m, wrong, d.opts.Now), Dreams: d.state.dreams(),
	}
	for _, r := range d.runners() {
		l := r.status()
		s.InStep = s.InStep && l.InStep
		s.Links = append(s.Links, l)
	}
	d.mu.Lock()
	for _, h := range d.hubs {
		s.Hubs = append(s.Hubs, h.status())
	}
	d.mu.Unlock()
	slices.SortFunc(s.Hubs, func(a, b HubStatus) int { return strings.Compare(a.Addr, b.Addr) })
	return s
}

// prepareDir makes the directory of a link that has no state yet, if its parent is
// there. A link that has a state and no directory is a brake, not a new beginning.
func (s stateDir) prepareDir(l Link) (made bool, err error) {
	if lacks, err := s.lacksDir(l); err != nil || !lacks {
		return false, err
	}
	if err := os.Mkdir(l.Dir, 0o777); errors.Is(err, os.ErrExist) {
		return false, nil // another program of this link made it just now
	} else if err != nil {
		return false, fmt.Errorf("--dir %s: %w", l.Dir, err)
	}
	return true, nil
}

// lacksDir reports whether prepareDir would make the directory. It touches nothing.
func (s stateDir) lacksDir(l Link) (bool, error) {
	if _, err := os.Stat(l.Dir); !errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if s.has(l) {
		return false, nil
	}
	if fi, err := os.Stat(filepath.Dir(l.Dir)); err != nil || !fi.IsDir() {
		return false, usage("--dir %s: neither it nor the directory above is there; make it, or correct the path", l.Dir)
	}
	return true, nil
}
