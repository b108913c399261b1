package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/agent/control"
	"github.com/memsvc/memsvc/internal/agent/watcher"
	"github.com/memsvc/memsvc/internal/buildinfo"
	"github.com/memsvc/memsvc/internal/config"
	"github.com/memsvc/memsvc/internal/secretscan"
	"github.com/memsvc/memsvc/internal/telemetry"
)

type runCmd struct {
	linkFlags
	watchFlags
	trashFlags
	notesFlags
	dreamFlags
	Extract      bool          `help:"Make memories of what conversations said." default:"true" negatable:""`
	Drain        time.Duration `help:"How long a stop waits for work of the memory engine that is under way." default:"60s"`
	Dream        bool          `help:"Tidy the memories of a project between sessions; see docs/lifecycle.md." default:"true" negatable:""`
	OpsAddr      string        `help:"Where to serve metrics, health and profiles; empty is nowhere. On loopback, unless --insecure-ops." empty:"" placeholder:"HOST:PORT"`
	OTLPEndpoint string        `name:"otlp-endpoint" help:"Where to send traces by OTLP over gRPC, http:// or https://; else where OTEL_EXPORTER_OTLP_ENDPOINT says; by default nowhere." empty:"" placeholder:"URL"`
	InsecureOps  bool          `help:"Let the ops port, which has neither TLS nor credentials, listen beyond loopback, because something else protects it."`
}

// Run keeps directories in step until the program is asked to stop.
func (r *runCmd) Run(c *command) error {
	log, err := c.logger()
	if err != nil {
		return err
	}
	for _, line := range c.warnings {
		log.Warn(line)
	}
	if err := c.models.check(); err != nil {
		return err
	}
	how, err := r.tuning()
	if err != nil {
		return err
	}
	links, err := c.links(r.linkFlags, true)
	if err != nil {
		return err
	}
	if len(links) == 1 {
		if err := c.workable(links[0]); err != nil {
			return err
		}
	}
	var ops net.Listener
	if r.OpsAddr != "" {
		if !loopback(r.OpsAddr) && !r.InsecureOps {
			return usage("--ops-addr %s: not on loopback; profiles and metrics are nobody else's business, unless --insecure-ops says that something else protects the port", r.OpsAddr)
		}
		if ops, err = net.Listen("tcp", r.OpsAddr); err != nil {
			return fmt.Errorf("--ops-addr: %w", err)
		}
		defer ops.Close()
		log.Info("ops endpoint", "addr", ops.Addr().String())
	}
	if len(links) == 1 {
		if err := c.prepare(links[0], log); err != nil {
			return err
		}
	}
	lock, err := c.acquire(log)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }()
	if len(links) == 1 {
		if err := isFree(links[0].Dir); err != nil {
			return err
		}
	}
	debug.SetGCPercent(gcPercent)
	registry := telemetry.NewRegistry("memsync", buildinfo.Read())
	id, err := c.state.agentID()
	if err != nil {
		return fmt.Errorf("state directory %s: %w", string(c.state), err)
	}
	tracing, err := telemetry.NewTracing(c.ctx, telemetry.TracingOptions{
		Service: "memsync-agent", Instance: id, Host: func() string { return machineName(secretscan.New(secretscan.Options{})) },
		Endpoint: r.OTLPEndpoint, Logger: log,
	})
	if err != nil {
		return usage("%v", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), lastTraces)
		defer cancel()
		if err := tracing.Close(ctx); err != nil {
			log.Warn("traces: the last ones were not sent", "error", err)
		}
	}()
	live, err := c.liveModel(log)
	if err != nil {
		return err
	}
	d, err := NewDaemon(DaemonOptions{StateDir: string(c.state), Logger: log, Registry: registry, Now: c.Now, Tracing: tracing, Watcher: how.watcher, TrashAge: r.TrashAge, TrashBytes: r.trashFlags.limits().bytes, model: live})
	if err != nil {
		return err
	}
	server, err := control.Listen(lock)
	if err != nil {
		return errors.Join(err, d.Close())
	}
	// A link made before there was a socket could tell nobody of itself.
	if links, err = c.links(r.linkFlags, true); err != nil {
		return errors.Join(err, server.Close(), d.Close())
	}
	if len(links) > 1 {
		for _, l := range links {
			if err := c.prepare(l, log); err != nil {
				log.Error("link", "link", l.Name(), "error", err)
			}
		}
	}
	if err := d.Apply(links); err != nil {
		if len(links) == 1 {
			return errors.Join(err, server.Close(), d.Close())
		}
		log.Error("a link does not run", "error", err)
	}
	eng := newEngine(c.state, log, c.Now)
	eng.live, eng.m, eng.engineTuning = live, d.m, how.engine
	return c.serve(d, eng, server, ops, registry, log, r.linkFlags)
}

// tuning checks the flags that have numbers.
func (r *runCmd) tuning() (how struct {
	watcher watcher.Options
	engine  engineTuning
}, err error,
) {
	if r.Drain < 0 {
		return how, usage("--drain %s: a time to wait is not negative", r.Drain)
	}
	if err = r.trashFlags.check(); err != nil {
		return how, err
	}
	if how.watcher, err = r.watchFlags.options(); err != nil {
		return how, err
	}
	how.engine = engineTuning{extract: r.Extract, notes: r.Notes, dream: r.Dream, drain: r.Drain}
	if how.engine.notesDue, err = r.notesFlags.due(); err != nil {
		return how, err
	}
	how.engine.dreamDue, err = r.dreamFlags.due()
	return how, err
}

// lastTraces is how long the end of the program waits for its last spans to be sent.
const lastTraces = 2 * time.Second

// acquire locks the state directory for a daemon. A command that holds it is waited
// for; another daemon, which answers, is not.
func (c *command) acquire(log *slog.Logger) (*control.Lock, error) {
	for told := false; ; {
		lock, err := control.Acquire(string(c.state))
		if !errors.Is(err, control.ErrLocked) {
			return lock, err
		}
		if _, asked := c.askStatus(); !errors.Is(asked, control.ErrNoDaemon) {
			return nil, err
		}
		if !told {
			told = true
			log.Info("waiting until the command that uses the state directory is done", "dir", string(c.state))
		}
		if !pause(c.ctx, 20*time.Millisecond) {
			return nil, err
		}
	}
}

// reload takes up what was linked and unlinked since. It stops what is gone whatever
// else is wrong, goes on with no link at all, and leaves running links alone; a new one
// that cannot work is an error, and the others run.
func (c *command) reload(d *Daemon, flags linkFlags) error {
	links, err := c.wanted(flags, true)
	if err != nil {
		return err
	}
	var errs []error
	links = slices.DeleteFunc(links, func(l Link) bool {
		if d.Serves(l) {
			return false
		}
		err := c.state.check(l)
		errs = append(errs, err)
		return err != nil
	})
	return errors.Join(append(errs, d.Apply(links))...)
}

// isFree refuses a directory that another agent keeps in step. Whoever starts a second
// one by mistake is told at once; one that gets hold of the directory between this look
// and the first cycle is waited for, as where one of many links is taken.
func isFree(dir string) error {
	lock := newRootLock(dir)
	defer lock.release()
	if err := lock.hold(); err != nil {
		return fmt.Errorf("%w; stop it, or link another directory", err)
	}
	return nil
}

// prepare makes a new link's directory and says so.
func (c *command) prepare(l Link, log *slog.Logger) error {
	made, err := c.state.prepareDir(l)
	if made {
		log.Info("directory made", "dir", l.Dir)
	}
	return err
}

// serve answers commands and the ops endpoint until the program is asked to stop.
func (c *command) serve(d *Daemon, eng *engine, server *control.Server, ops net.Listener, registry prometheus.Gatherer, log *slog.Logger, flags linkFlags) error {
	health := telemetry.NewHealth()
	health.SetReady()
	bg, stopOps := context.WithCancel(context.Background())
	defer stopOps()
	look := newLookups(eng.live.chooser, eng.live.strict(), log, c.Now)
	var wg sync.WaitGroup
	if ops != nil {
		wg.Go(func() {
			if err := telemetry.ServeOps(bg, ops, telemetry.OpsOptions{Gatherer: registry, Health: health, Logger: log}); err != nil {
				log.Error("ops endpoint ended", "error", err)
			}
		})
	}
	wg.Go(func() {
		var reloading sync.Mutex // what was read last is what runs
		h := handler{d: d, engine: eng, lookup: look, reload: func() error {
			reloading.Lock()
			defer reloading.Unlock()
			return c.reload(d, flags)
		}}
		if err := server.Serve(bg, h.handle); err != nil {
			log.Error("command socket ended", "error", err)
		}
	})
	wg.Go(func() { giveBack(bg) })
	if c.Ready != nil {
		c.Ready()
	}
	<-c.ctx.Done()
	log.Info("stopping")
	health.SetNotReady("draining")
	look.close()
	eng.close()
	err := d.Close()
	stopOps()
	wg.Wait()
	log.Info("stopped")
	return err
}

func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// handler answers what commands ask of a running daemon.
type handler struct {
	d      *Daemon
	engine *engine
	lookup *lookups
	reload func() error
}

// The methods of the control socket.
const (
	methodStatus  = "status"  // → Status
	methodSettle  = "settle"  // looks everywhere, waits until nothing moves → Status
	methodReload  = "reload"  // takes links made and removed
	methodResume  = "resume"  // resumeParams
	methodResolve = "resolve" // resolveParams
	methodTexts   = "texts"   // textsParams → conflictTexts
	methodNews    = "news"    // newsParams → []newsEntry
	methodExtract = "extract" // extractParams; returns at once

	methodStanding = "standing" // standingParams → standing; waits headWait at most

	methodLookup     = "lookup"      // lookupParams → lookupResult; waits hookModelTimeout at most
	methodLookupLate = "lookup-late" // lookupSession → lookupResult
	methodLookupEnd  = "lookup-end"  // lookupSession

	methodTrash        = "trash"         // trashParams → []trashEntry
	methodTrashText    = "trash-text"    // trashParams → trashText
	methodTrashRestore = "trash-restore" // trashParams → trashEntry
)

// codeUsage marks errors that are a person's mistake, on the socket.
const codeUsage control.Code = "USAGE"

// handle answers one call. A person's mistake arrives as one.
func (h handler) handle(ctx context.Context, method string, params json.RawMessage) (any, error) {
	result, err := h.do(ctx, method, params)
	var use *config.UsageError
	if errors.As(plain(err), &use) {
		return nil, &control.Error{Code: codeUsage, Message: err.Error()}
	}
	return result, err
}

func (h handler) do(ctx context.Context, method string, params json.RawMessage) (any, error) {
	decode := func(into any) error {
		if err := json.Unmarshal(params, into); err != nil {
			return &control.Error{Code: control.CodeBadRequest, Message: "the request cannot be read; the running daemon and this command differ in version, restart it"}
		}
		return nil
	}
	switch method {
	case methodStatus:
		return h.d.Status(), nil
	case methodSettle:
		return h.d.settled(ctx), nil
	case methodReload:
		return nil, h.reload()
	case methodResume:
		var p resumeParams
		if err := decode(&p); err != nil {
			return nil, err
		}
		return nil, h.d.Resume(ctx, p.Link, p.AcceptDeletes)
	case methodResolve:
		var p resolveParams
		if err := decode(&p); err != nil {
			return nil, err
		}
		return nil, h.d.Resolve(ctx, p.Link, p.ID, p.How, p.Merged)
	case methodTexts:
		var p textsParams
		if err := decode(&p); err != nil {
			return nil, err
		}
		r, err := h.d.find(p.Link)
		if err != nil {
			return nil, err
		}
		return p.do(ctx, r.syncer())
	case methodExtract:
		var p extractParams
		if err := decode(&p); err != nil {
			return nil, err
		}
		return nil, h.engine.take(p)
	case methodLookup:
		var p lookupParams
		if err := decode(&p); err != nil {
			return nil, err
		}
		return h.lookup.begin(ctx, p, hookModelTimeout)
	case methodLookupLate, methodLookupEnd:
		var p lookupSession
		if err := decode(&p); err != nil {
			return nil, err
		}
		if method == methodLookupLate {
			return h.lookup.late(p.Session), nil
		}
		h.lookup.end(p.Session, p.Turn)
		return nil, nil
	case methodNews:
		var p newsParams
		if err := decode(&p); err != nil {
			return nil, err
		}
		r, err := h.d.find(p.Link)
		if err != nil {
			return nil, err
		}
		return r.news.since(p.Since), nil
	case methodStanding:
		var p standingParams
		if err := decode(&p); err != nil {
			return nil, err
		}
		r, err := h.d.find(p.Link)
		if err != nil {
			return nil, err
		}
		return p.do(ctx, r), nil
	case methodTrash, methodTrashText, methodTrashRestore:
		var p trashParams
		if err := decode(&p); err != nil {
			return nil, err
		}
		r, err := h.d.find(p.Link)
		if err != nil {
			return nil, err
		}
		switch method {
		case methodTrash:
			return p.list(ctx, r.syncer())
		case methodTrashText:
			return p.text(ctx, r.syncer())
		}
		var e trashEntry
		return &e, r.act(func() (err error) { e, err = p.restore(ctx, r.syncer()); return err })
	}
	return nil, control.UnknownMethod(method)
}
