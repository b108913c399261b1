package hub

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/memsvc/memsvc/internal/buildinfo"
	"github.com/memsvc/memsvc/internal/hub/authn"
	"github.com/memsvc/memsvc/internal/hub/changefeed"
	"github.com/memsvc/memsvc/internal/hub/rest"
	"github.com/memsvc/memsvc/internal/hub/rpc"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/observed"
	"github.com/memsvc/memsvc/internal/secretscan"
	"github.com/memsvc/memsvc/internal/telemetry"
)

// Deps are what a hub takes from outside. The zero value serves, except for Logger.
type Deps struct {
	Logger *slog.Logger     // required
	Now    func() time.Time // nil: the system's clock
	// Backend is the store; nil opens the embedded one in the data directory. The
	// hub closes it.
	Backend store.Backend
	// AuthRecheck is how often open streams' tokens are looked at again; 0 is the default.
	AuthRecheck time.Duration
	// IdentityCheck is how often the identity file is looked at again; 0 is the default.
	IdentityCheck time.Duration
	// Bookmarks is how long a watched project may be quiet; 0 is the default.
	Bookmarks time.Duration
	// LoginWithin is how long a connection to the gRPC API may be without a
	// credential; 0 is the default.
	LoginWithin time.Duration
	// TracesEvery is how often spans are sent; 0 is the default.
	TracesEvery time.Duration
}

// Addrs are the addresses that a hub listens on.
type Addrs struct {
	GRPC, HTTP, Ops string
}

// Hub is a running hub.
type Hub struct {
	Addrs Addrs
	// AdminTokenFile holds the first admin token, which the first start made; "" for a
	// hub that shares a database.
	AdminTokenFile string
	Service        *service.Service

	cfg           Config
	log           *slog.Logger
	backend       store.Backend
	feed          *changefeed.Feed
	auth          *authn.Authenticator
	identity      *identityFile // nil: tokens only
	identityCheck time.Duration
	tracing       *telemetry.Tracing // nil: off
	rpc           *rpc.Server
	http          *http.Server
	front         *rest.Front
	conns         *connMetrics
	health        *telemetry.Health
	opsOptions    telemetry.OpsOptions
	loginWithin   time.Duration
	replica       string     // how logs, traces and other replicas name this process
	failed        chan error // what a server ended with before its time

	background func()         // ends the service's background work
	opsEnd     func()         // ends the ops port
	servers    sync.WaitGroup // Serve calls
	works      sync.WaitGroup // the service's background work
	ops        sync.WaitGroup
	once       sync.Once
}

// Run starts a hub, tells its addresses, and drains it when ctx ends.
func Run(ctx context.Context, cfg Config, deps Deps) error {
	h, err := Start(ctx, cfg, deps)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return h.Shutdown(context.WithoutCancel(ctx))
	case err := <-h.failed:
		end := h.Shutdown(context.WithoutCancel(ctx))
		if errors.Is(end, err) {
			return end // the store says it again
		}
		return errors.Join(err, end)
	}
}

// Start builds and starts a hub. When it returns, the hub answers on all its ports.
// ctx bounds the starting only.
func Start(ctx context.Context, cfg Config, deps Deps) (_ *Hub, err error) {
	if err := cfg.Check(); err != nil {
		return nil, &ConfigError{Err: err}
	}
	now := deps.Now
	if now == nil {
		now = func() time.Time { return time.Now().UTC() }
	}
	if err := cfg.checkPlace(); err != nil && deps.Backend == nil {
		return nil, &ConfigError{Err: err}
	}
	var files *tlsFiles
	if cfg.TLSCert != "" {
		if files, err = newTLSFiles(cfg.TLSCert, cfg.TLSKey, cfg.TLSClientCA, deps.Logger, now); err != nil {
			return nil, &ConfigError{Err: err}
		}
	}
	if cfg.IdentityFile != "" {
		if _, err := readTrust(cfg.IdentityFile, cfg.TLSClientCA != ""); err != nil {
			return nil, &ConfigError{Err: err}
		}
	}
	failed := make(chan error, 4)
	lost := func(err error) { // the store's files are no longer its own
		deps.Logger.Error("data files replaced under the running hub; it stops", "error", err.Error())
		select {
		case failed <- err:
		default: // it ends already
		}
	}
	var closers []func() error
	defer func() {
		if err != nil {
			for i := len(closers) - 1; i >= 0; i-- {
				err = errors.Join(err, closers[i]())
			}
		}
	}()
	replica := rand.Text()
	tracing, err := telemetry.NewTracing(ctx, telemetry.TracingOptions{
		Service: "memsvc", Instance: replica, Host: hostName,
		Endpoint: cfg.OTLPEndpoint, Logger: deps.Logger, Every: deps.TracesEvery,
	})
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	closers = append(closers, func() error { endTracing(tracing, deps.Logger); return nil })
	backend := deps.Backend
	if backend != nil {
		closers = append(closers, backend.Close)
	}
	// The addresses come first: a hub that cannot have them makes nothing on disk.
	lns, err := listen(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for _, ln := range lns {
		closers = append(closers, ln.Close)
	}
	if backend == nil {
		if backend, err = openBackend(ctx, cfg, deps.Logger, now(), lost); err != nil {
			return nil, err
		}
		closers = append(closers, backend.Close)
	}
	h := &Hub{
		cfg: cfg, log: deps.Logger, backend: backend, health: telemetry.NewHealth(), failed: failed,
		loginWithin: deps.LoginWithin, replica: replica,
		Addrs: Addrs{GRPC: lns[0].Addr().String(), HTTP: lns[1].Addr().String(), Ops: lns[2].Addr().String()},
	}
	h.tracing = tracing
	closers = append(closers, h.endAuth)
	if err := h.build(cfg, deps, now, files, lns[1].Addr()); err != nil {
		return nil, err
	}
	if h.AdminTokenFile, err = h.bootstrap(ctx); err != nil {
		h.feed.Close()
		return nil, err
	}
	h.warn()
	h.serve(ctx, lns, files)
	h.health.SetReady()
	epoch, err := h.backend.Epoch(ctx)
	if err != nil { // it is for the log alone
		h.log.Warn("the epoch is not known yet", "error", err.Error())
	}
	place := slog.String("data_dir", cfg.DataDir)
	if cfg.DatabaseURL != "" {
		place = slog.String("store", "postgres")
		if cfg.DataDir != defaultDataDir {
			h.log.Info("--data-dir is not used beside --database-url; everything is in the database", "data_dir", cfg.DataDir)
		}
	}
	h.log.Info("listening", "grpc", h.Addrs.GRPC, "http", h.Addrs.HTTP, "ops", h.Addrs.Ops,
		"tls", files != nil, place, "epoch", epoch, "replica", h.replica, "version", buildinfo.Read().Version)
	return h, nil
}

// maxHostName is the longest name of a machine that a commit's author can carry, in bytes.
const maxHostName = 256

// hostName is the machine's name as traces and commits have it; "" where it cannot be
// told, where no label holds it, or where the guard takes it for a secret.
func hostName() string {
	name, err := os.Hostname()
	if err != nil || len(name) > maxHostName || strings.IndexFunc(name, unicode.IsControl) >= 0 || !utf8.ValidString(name) {
		return ""
	}
	if found, err := secretscan.New(secretscan.Options{}).Scan("", []byte(name)); err != nil || len(found) > 0 {
		return ""
	}
	return name
}

// lastTraces is how long the end of the hub waits for its last spans to be sent.
const lastTraces = 2 * time.Second

func endTracing(t *telemetry.Tracing, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), lastTraces)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.Warn("traces: the last ones were not sent", "error", err.Error())
	}
}

// endAuth ends the fetching of issuers' keys.
func (h *Hub) endAuth() error {
	if h.auth != nil {
		h.auth.Close()
	}
	return nil
}

// warn tells in the log what works and lessens the protection.
func (h *Hub) warn() {
	if h.cfg.Insecure {
		what := "listening beyond loopback without TLS is allowed; tokens and memories travel in the clear unless something else protects them"
		if h.cfg.TLSCert != "" {
			what = "the ops port may listen beyond loopback, without TLS and credentials"
		}
		h.log.Warn("--insecure: " + what)
	}
	for _, name := range []string{h.AdminTokenFile, h.cfg.TLSKey} {
		if text := openToOthers(name); text != "" {
			h.log.Warn(text)
		}
	}
}

// build makes everything that stands on the store.
func (h *Hub) build(cfg Config, deps Deps, now func() time.Time, files *tlsFiles, web net.Addr) error {
	registry := telemetry.NewRegistry("memsvc", buildinfo.Read())
	auth := authn.New(tokenDirectory{h.backend}, authn.Options{
		Now: now, RecheckEvery: deps.AuthRecheck, RatePerSecond: cfg.callRate(), Burst: cfg.RateBurst,
		Logger: h.log, Registerer: registry,
	})
	h.auth = auth
	if cfg.IdentityFile != "" {
		h.identity = &identityFile{name: cfg.IdentityFile, clientCA: cfg.TLSClientCA != "", auth: auth, log: h.log}
		if err := h.identity.load(); err != nil {
			return &ConfigError{Err: err}
		}
		h.identityCheck = cmp.Or(deps.IdentityCheck, identityCheckEvery)
	}
	// Durations are the machine's, whatever clock the hub is given.
	teams := newTeamLabel()
	watched := observed.New(h.backend, observed.Options{Registerer: registry, Logger: h.log, TeamLabel: teams})
	h.feed = changefeed.New(watched, changefeed.Options{Logger: h.log, BookmarkEvery: deps.Bookmarks})
	shared, _ := h.backend.(store.Shared)
	h.Service = service.New(service.Config{
		Backend: watched, Shared: shared, Feed: h.feed, Guard: guard{secretscan.New(secretscan.Options{}), newGuardMetrics(registry)},
		Observer: newObserver(registry, h.feed), Logger: h.log, Now: now,
		Archive: archiver{watched, now, nil}, MintToken: authn.Mint, Revoked: auth.Revoked, TempDir: cfg.tempDir(), Replica: h.replica,
		Limits: service.Limits{
			Quota:     store.Quota{Files: cfg.MaxProjectFiles, Bytes: cfg.MaxProjectBytes},
			Retention: cfg.Retention, AuditRetention: cfg.AuditRetention, Watchers: cfg.MaxWatchers,
		},
	})
	opts := rpc.Options{
		Service: h.Service, Auth: auth, Logger: h.log, Registerer: registry, Now: now, Tracing: h.tracing,
	}
	if files != nil {
		opts.TLS = files.config("h2")
		files.register(registry)
	}
	var err error
	if h.rpc, err = rpc.New(opts); err != nil {
		return err
	}
	h.front, err = rest.New(rest.Options{
		Dial: h.rpc.DialLocal, Logger: h.log, Registerer: registry, MayName: telemetry.HostRule(web, cfg.AllowHosts),
		CertKey: rpc.ClientCertKey, PeerKey: rpc.PeerKey,
	})
	if err != nil {
		return err
	}
	h.http = h.front.Server()
	h.conns = newConnMetrics(registry)
	ready := h.Service.Ready
	if p, ok := h.backend.(store.Prober); ok {
		ready = p.Probe
	}
	h.health.AddCheck("store", ready)
	registry.MustRegister(newAgentCollector(h.Service.ConnectedAgents, teams), newReadiness(h.health), newDisk(cfg.DataDir))
	registerHints(registry, h.backend)
	h.opsOptions = telemetry.OpsOptions{Gatherer: registry, Health: h.health, Logger: h.log, AllowHosts: cfg.AllowHosts}
	return nil
}

// bootstrap makes the first admin token, on the first start. The file comes first:
// a start that dies in between finds it again and goes on with it. Hubs that share a
// database leave that to a person: only one of them would have the file.
func (h *Hub) bootstrap(ctx context.Context) (string, error) {
	if h.cfg.DatabaseURL != "" {
		has, err := h.Service.HasTokens(ctx)
		if err == nil && !has {
			h.log.Warn("nobody has a token yet; make the first one with memsvc token bootstrap --database-url")
		}
		return "", err
	}
	name := filepath.Join(h.cfg.DataDir, "admin.token")
	if has, err := h.Service.HasTokens(ctx); err != nil || has {
		return name, err
	}
	text, err := readSecretFile(name)
	if err != nil {
		return name, fmt.Errorf("first admin token: %w", err)
	}
	if text == "" {
		if text, _, _, err = authn.Mint(); err != nil {
			return name, err
		}
		if err := writeSecretFile(name, text+"\n"); err != nil {
			return name, fmt.Errorf("first admin token: %w", err)
		}
	}
	if !authn.WellFormed(text) {
		return name, fmt.Errorf("first admin token: %s exists and holds no token; move it away", name)
	}
	if err := h.Service.Bootstrap(ctx, authn.Hash(text)); err != nil {
		return name, fmt.Errorf("first admin token: %w", err)
	}
	h.log.Info("first start: admin token written", "file", name)
	return name, nil
}

// serve starts the servers.
func (h *Hub) serve(ctx context.Context, lns [3]net.Listener, files *tlsFiles) {
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	h.background = end
	opsCtx, opsEnd := context.WithCancel(context.WithoutCancel(ctx))
	h.opsEnd = opsEnd
	api := connBounds{most: h.cfg.MaxConnections, perPeer: h.cfg.MaxPerPeer, login: cmp.Or(h.loginWithin, loginWithin)}
	h.works.Go(func() { h.Service.Run(work) })
	if h.identity != nil {
		h.works.Go(func() { h.identity.follow(work, h.identityCheck) })
	}
	h.ops.Go(func() {
		h.report(telemetry.ServeOps(opsCtx, h.conns.bound(lns[2], "ops", connBounds{most: maxOpsConnections, perPeer: maxOpsPerPeer}), h.opsOptions))
	})
	h.servers.Go(func() { h.report(h.rpc.ServeLocal()) })
	h.servers.Go(func() { h.report(h.rpc.Serve(h.conns.bound(lns[0], "grpc", api))) })
	// Without a request, or between two, HTTP has its own times; see package rest.
	web := h.conns.bound(lns[1], "http", connBounds{most: h.cfg.MaxConnections, perPeer: h.cfg.MaxPerPeer})
	if files != nil {
		web = tls.NewListener(web, files.config("h2", "http/1.1"))
	}
	h.servers.Go(func() {
		if err := h.http.Serve(web); !errors.Is(err, http.ErrServerClosed) {
			h.report(fmt.Errorf("REST server: %w", err))
		}
	})
}

// report notes that a server ended before its time.
func (h *Hub) report(err error) {
	if err == nil {
		return
	}
	select {
	case h.failed <- err:
	default: // the first ones say enough
	}
}

// Shutdown drains the hub: not ready, watches end after their last whole commit, no
// new calls, those under way finish, the store closes. What takes longer than the
// configured time is cut off.
func (h *Hub) Shutdown(ctx context.Context) (err error) {
	h.once.Do(func() {
		h.log.Info("draining")
		h.health.SetNotReady("draining")
		h.rpc.NotServing()
		ctx, cancel := context.WithTimeout(ctx, h.cfg.DrainTimeout)
		defer cancel()
		h.feed.Close()
		if herr := h.http.Shutdown(ctx); herr != nil {
			herr = h.http.Close() // what was too slow is cut off
			if herr != nil {
				h.log.Warn("REST server did not close", "error", herr.Error())
			}
		}
		h.rpc.Drain(ctx)
		err = h.close()
		h.log.Info("stopped")
	})
	return err
}

// Kill ends the hub abruptly, as far as a test can within its process: connections
// are cut, nothing is drained. Only the store is closed, since its file is locked.
func (h *Hub) Kill() error {
	var err error
	h.once.Do(func() {
		h.rpc.Stop()
		err = h.http.Close()
		h.feed.Close()
		err = errors.Join(err, h.close())
	})
	return err
}

func (h *Hub) close() error {
	h.servers.Wait()
	if err := h.front.Close(); err != nil {
		h.log.Warn("REST connection did not close", "error", err.Error())
	}
	h.background()
	h.works.Wait()
	err := errors.Join(h.endAuth(), h.backend.Close())
	endTracing(h.tracing, h.log)
	h.opsEnd()
	h.ops.Wait()
	return err
}

// ConfigError is a mistake of whoever configured the hub: exit code 2.
type ConfigError struct{ Err error }

// Error returns what is wrong.
func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }
