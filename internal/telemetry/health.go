package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Health answers whether a program may be sent work. It starts not ready. Safe for
// concurrent use.
type Health struct {
	mu     sync.Mutex
	reason string // why not ready; "" = ready. Guarded by mu.
	checks []check
}

type check struct {
	name string
	ask  func(context.Context) error
}

// checkTimeout bounds all checks of one question together, below the timeouts that
// probes usually have.
const checkTimeout = 2 * time.Second

// NewHealth returns a Health that is not ready because the program is starting.
func NewHealth() *Health { return &Health{reason: "starting"} }

// SetReady says that work is welcome, as far as the checks agree.
func (h *Health) SetReady() { h.set("") }

// SetNotReady says that no new work is welcome, and why ("draining"). It is the
// first step of a shutdown, so that load balancers look away before listeners close.
func (h *Health) SetNotReady(reason string) {
	if reason == "" {
		reason = "not ready"
	}
	h.set(reason)
}

func (h *Health) set(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reason = reason
}

// AddCheck adds a condition of readiness, such as "store": ask returns nil if it
// holds. Its error is shown to whoever asks the ops port.
func (h *Health) AddCheck(name string, ask func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = append(h.checks, check{name: name, ask: ask})
}

// Ready returns nil if the program may be sent work, else an error that says in one
// line what stands against it.
func (h *Health) Ready(ctx context.Context) error {
	h.mu.Lock()
	reason, checks := h.reason, slices.Clone(h.checks)
	h.mu.Unlock()
	if reason != "" {
		return fmt.Errorf("not ready: %s", reason)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var failed []string
	for _, c := range checks {
		if err := c.ask(ctx); err != nil {
			failed = append(failed, c.name+": "+strings.ReplaceAll(err.Error(), "\n", " "))
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("not ready: %s", strings.Join(failed, "; "))
	}
	return nil
}

func (h *Health) serveLive(w http.ResponseWriter, _ *http.Request) {
	writeLine(w, http.StatusOK, "ok")
}

func (h *Health) serveReady(w http.ResponseWriter, r *http.Request) {
	if err := h.Ready(r.Context()); err != nil {
		writeLine(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	writeLine(w, http.StatusOK, "ok")
}

func writeLine(w http.ResponseWriter, code int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	fmt.Fprintln(w, line)
}
