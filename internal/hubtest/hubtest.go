// Package hubtest runs a real hub inside a test's process: its store, its servers on
// free ports of loopback, its tokens. It can be stopped, killed and started again on
// the same ports and data.
package hubtest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/inmem"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/porttest"
)

// Options says what kind of hub to start. The zero value is a hub on the store in
// memory.
type Options struct {
	// SQLite uses the embedded store, on disk, instead of the one in memory.
	SQLite bool
	// DatabaseURL uses a PostgreSQL database, which other hubs may share, instead of either.
	DatabaseURL string
	// DataDir is where the hub keeps its files; "" is a new temporary directory.
	DataDir string
	// Quiet logs warnings only, for benchmarks.
	Quiet bool
	// Now is the hub's clock; nil is the system's.
	Now func() time.Time
	// Config changes the configuration before each start.
	Config func(*hub.Config)
	// Deps changes what the hub is built from before each start.
	Deps func(*hub.Deps)
}

// Hub is a running hub.
type Hub struct {
	GRPCAddr   string
	HTTPAddr   string
	OpsAddr    string
	AdminToken string // of the whole hub
	DataDir    string
	// Log is everything that the hub has logged, at level debug.
	Log *Buffer

	t      testing.TB
	opts   Options
	memory store.Backend // of a hub in memory; it outlives restarts

	mu  sync.Mutex // guards hub
	hub *hub.Hub   // nil while stopped
}

// Start starts a hub and ends it with the test.
func Start(t testing.TB, opts Options) *Hub {
	t.Helper()
	h := &Hub{t: t, opts: opts, DataDir: opts.DataDir, Log: &Buffer{}, GRPCAddr: porttest.Free(t), HTTPAddr: porttest.Free(t), OpsAddr: porttest.Free(t)}
	if h.DataDir == "" {
		h.DataDir = t.TempDir()
	}
	if !opts.SQLite && opts.DatabaseURL == "" {
		h.memory = keepOpen{inmem.New(inmem.Options{})}
	}
	t.Cleanup(h.Stop)
	h.StartAgain()
	return h
}

// StartAgain starts a stopped hub on its former addresses and data.
func (h *Hub) StartAgain() {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hub != nil {
		h.t.Fatal("hubtest: the hub runs already")
	}
	cfg := hub.Config{
		DataDir: h.DataDir, GRPCAddr: h.GRPCAddr, HTTPAddr: h.HTTPAddr, OpsAddr: h.OpsAddr,
		Retention: memory.Retention, AuditRetention: memory.AuditRetention, MaxProjectFiles: memory.MaxProjectFiles, MaxProjectBytes: memory.MaxProjectBytes,
		MaxConnections: 10_000, MaxPerPeer: 10_000, MaxWatchers: 50_000, Rate: 0, RateBurst: 1, DrainTimeout: 5 * time.Second,
	}
	level := slog.LevelDebug
	if h.opts.Quiet {
		level = slog.LevelWarn
	}
	deps := hub.Deps{
		Logger: slog.New(slog.NewTextHandler(h.Log, &slog.HandlerOptions{Level: level})),
		Now:    h.opts.Now, Backend: h.memory,
	}
	cfg.DatabaseURL, cfg.Migrate = h.opts.DatabaseURL, h.opts.DatabaseURL != ""
	if h.opts.Config != nil {
		h.opts.Config(&cfg)
	}
	if h.opts.Deps != nil {
		h.opts.Deps(&deps)
	}
	var running *hub.Hub
	var err error
	// A program that a test starts at the same moment holds what this process had open, such
	// as a listener that is closed since, until its own code is loaded.
	Eventually(h.t, time.Minute, "the addresses are free", func() bool {
		running, err = hub.Start(context.Background(), cfg, deps)
		return !errors.Is(err, syscall.EADDRINUSE)
	})
	if err != nil {
		h.t.Fatalf("hubtest: %v", err)
	}
	h.hub = running
	h.GRPCAddr, h.HTTPAddr, h.OpsAddr = running.Addrs.GRPC, running.Addrs.HTTP, running.Addrs.Ops
	if h.AdminToken == "" {
		h.AdminToken, err = adminToken(running)
	}
	if err != nil {
		h.t.Fatalf("hubtest: %v", err)
	}
}

// adminToken returns the token that a hub's first start made. Where several share a
// database nobody does, and each gets one of its own.
func adminToken(h *hub.Hub) (string, error) {
	if h.AdminTokenFile != "" {
		text, err := os.ReadFile(h.AdminTokenFile)
		return strings.TrimSpace(string(text)), err
	}
	_, text, err := h.Service.CreateToken(context.Background(), Admin(), service.NewToken{Name: "test-admin", Role: service.Admin})
	return text, err
}

// Stop drains the hub. A stopped one stays so.
func (h *Hub) Stop() {
	h.t.Helper()
	if running := h.take(); running != nil {
		if err := running.Shutdown(context.Background()); err != nil {
			h.t.Errorf("hubtest: stop: %v", err)
		}
	}
}

// Kill ends the hub abruptly: connections are cut, nothing is drained.
func (h *Hub) Kill() {
	h.t.Helper()
	if running := h.take(); running != nil {
		if err := running.Kill(); err != nil {
			h.t.Errorf("hubtest: kill: %v", err)
		}
	}
}

// Restart stops the hub and starts it again.
func (h *Hub) Restart() {
	h.t.Helper()
	h.Stop()
	h.StartAgain()
}

func (h *Hub) take() *hub.Hub {
	h.mu.Lock()
	defer h.mu.Unlock()
	running := h.hub
	h.hub = nil
	return running
}

// Service returns the running hub's service, for what a test wants to do behind the
// border.
func (h *Hub) Service() *service.Service {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hub == nil {
		h.t.Fatal("hubtest: the hub is stopped")
	}
	return h.hub.Service
}

// Admin is the call of an admin of the whole hub.
func Admin() service.Call {
	return service.Call{Principal: service.Principal{Name: "test", Role: service.Admin}, RequestID: "hubtest"}
}

// Token makes a token; team and project are created if they are new. project ""
// reaches the whole team. role is reader, writer or admin.
func (h *Hub) Token(team, project, role string) string {
	h.t.Helper()
	text, _ := h.TokenWithID(team, project, role)
	return text
}

// TokenWithID is Token, and returns the id to revoke it by, too.
func (h *Hub) TokenWithID(team, project, role string) (text, id string) {
	h.t.Helper()
	r, err := service.ParseRole(role)
	if err != nil {
		h.t.Fatal(err)
	}
	t, text, err := h.Service().CreateToken(context.Background(), Admin(), service.NewToken{
		Name: strings.Trim(team+"-"+project+"-"+role, "-"), Team: memory.Team(team), Project: memory.Project(project), Role: r,
	})
	if err != nil {
		h.t.Fatalf("hubtest: token: %v", err)
	}
	return text, t.ID
}

// TokenFile is Token, written to a file.
func (h *Hub) TokenFile(team, project, role string) string {
	h.t.Helper()
	name := filepath.Join(h.t.TempDir(), "token")
	if err := os.WriteFile(name, []byte(h.Token(team, project, role)+"\n"), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return name
}

// keepOpen is a store that a hub's end does not close.
type keepOpen struct{ store.Backend }

func (keepOpen) Close() error { return nil }

// Buffer keeps what is written to it. It is safe for concurrent use.
type Buffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

// Write appends p.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns everything written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Eventually asks ok again and again until it says true, or fails the test after
// the given time. It is for what a real hub does in its own time.
func Eventually(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), within, errors.New(what))
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			if ok() { // a machine that stood still has not looked since
				return
			}
			t.Fatalf("not within %v: %s", within, what)
		case <-tick.C:
		}
	}
}
