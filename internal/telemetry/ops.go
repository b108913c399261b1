package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// OpsOptions is what the ops endpoint shows. All fields but AllowHosts are required.
type OpsOptions struct {
	Gatherer prometheus.Gatherer
	Health   *Health
	Logger   *slog.Logger
	// AllowHosts are names by which ServeOps may be called; see HostRule.
	AllowHosts []string
}

// Bounds of the ops endpoint. A CPU profile of 30 seconds, the usual, must fit.
const (
	opsReadTimeout  = 10 * time.Second
	opsWriteTimeout = 2 * time.Minute
	opsIdleTimeout  = 2 * time.Minute
	opsDrainTimeout = time.Second
	opsHeaderBytes  = 16 << 10
	opsScrapes      = 4 // at the same time
)

// OpsHandler returns the ops endpoint: /metrics, /livez, /readyz and
// /debug/pprof/. It shows no memory's content, but profiles and metrics are nobody
// else's business: it belongs on a port of its own, on loopback unless told.
func OpsHandler(o OpsOptions) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{
		MaxRequestsInFlight: opsScrapes,
		ErrorLog:            slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
	}))
	mux.HandleFunc("GET /livez", o.Health.serveLive)
	mux.HandleFunc("GET /readyz", o.Health.serveReady)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// ServeOps serves the ops endpoint on ln until ctx ends, lets calls under way
// finish for a second, and closes ln. It returns nil after an orderly end. Requests
// that name a host which HostRule refuses get 421, those that a browser sends for a
// page of another site 403.
//
// A program ends it last, so that /readyz says "draining" while it drains.
func ServeOps(ctx context.Context, ln net.Listener, o OpsOptions) error {
	server := &http.Server{
		Handler:        guarded(HostRule(ln.Addr(), o.AllowHosts), OpsHandler(o)),
		ReadTimeout:    opsReadTimeout,
		WriteTimeout:   opsWriteTimeout,
		IdleTimeout:    opsIdleTimeout,
		MaxHeaderBytes: opsHeaderBytes,
		ErrorLog:       slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	select {
	case err := <-served:
		return fmt.Errorf("ops endpoint on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), opsDrainTimeout)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		// A profile is still being taken; it is not worth waiting for. Close can
		// only repeat what Shutdown said of the listener.
		_ = server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("ops endpoint on %s: %w", ln.Addr(), err)
	}
	return nil
}
