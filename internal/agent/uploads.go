package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/agent/workspace"
	"github.com/memsvc/memsvc/internal/lifecycle/dream"
)

// longWait is when the log mentions that uploads wait.
const longWait = time.Minute

// uploadGate lets a link send files while nobody tidies them (SPEC 9), and ends what a
// dream that died left half done before anything is sent. It is the link's syncer.Uploads.
type uploadGate struct {
	dir string
	now func() time.Time
	// end brings what a dream that died began to its end.
	end func(ctx context.Context, left workspace.Holder) error

	mu    sync.Mutex // guards what follows
	since time.Time  // since when files may not be sent; zero = they may
	why   string
	stuck bool // nobody works on it: a person has to
	told  bool // the log said so
}

// newUploadGate returns the gate of a link's directory.
func (s stateDir) newUploadGate(l Link, now func() time.Time) *uploadGate {
	return &uploadGate{dir: l.Dir, now: now, end: func(ctx context.Context, left workspace.Holder) error {
		return s.endLeft(ctx, left, l.Dir, s.guardFor(l.Hub, l.Team), now)
	}}
}

// Enter implements syncer.Uploads.
func (g *uploadGate) Enter(ctx context.Context) (leave func(), ok bool) {
	leave, holder, left, err := workspace.EnterUploads(g.dir)
	if left {
		if err = g.end(ctx, *holder); err == nil {
			leave, holder, _, err = workspace.EnterUploads(g.dir)
		}
	}
	if err == nil {
		g.wait(time.Time{}, "", false)
		return leave, true
	}
	since := g.now()
	if holder != nil && !holder.Since.IsZero() && holder.Since.Before(since) {
		since = holder.Since
	}
	why, stuck := oneLine(err), true
	if errors.Is(err, workspace.ErrHeldBack) || errors.Is(err, dream.ErrBusy) {
		stuck = false
		why = "a dream tidies the memories; what it does goes up as one commit"
		if holder != nil && holder.PID > 0 {
			why = fmt.Sprintf("a dream (process %d) tidies the memories; what it does goes up as one commit", holder.PID)
		}
	}
	g.wait(since, why, stuck)
	return nil, false
}

func (g *uploadGate) wait(since time.Time, why string, stuck bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.since.IsZero() || since.IsZero() {
		g.since = since
	}
	g.why, g.stuck = why, stuck
}

// UploadsWait says since when a link sends nothing, and why.
type UploadsWait struct {
	Since time.Time `json:"since"`
	Why   string    `json:"why"`
	// Stuck says that it does not end by itself: a person has to do what Why says.
	Stuck bool `json:"stuck"`
}

// waiting returns nil while files may be sent, as they always may without a gate.
func (g *uploadGate) waiting() *UploadsWait {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.since.IsZero() {
		return nil
	}
	return &UploadsWait{Since: g.since.UTC(), Why: g.why, Stuck: g.stuck}
}

// tell logs once that uploads wait for long, and once that they go on.
func (g *uploadGate) tell(log *slog.Logger) {
	w, now := g.waiting(), g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case w == nil && g.told:
		log.Info("uploads go on")
		g.told = false
	case w != nil && !g.told && now.Sub(w.Since) > longWait:
		log.Warn("uploads wait", "since", w.Since, "why", w.Why)
		g.told = true
	}
}
