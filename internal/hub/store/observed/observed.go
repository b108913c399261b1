// Package observed wraps a store so that its operations are counted, timed and,
// when slow, logged. It changes no answer.
package observed

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// DefaultSlow is how long an operation may take before it is logged.
const DefaultSlow = 250 * time.Millisecond

// Options of the wrapper. All fields may be zero.
type Options struct {
	// Registerer takes the metrics; nil means none are kept.
	Registerer prometheus.Registerer
	// Logger takes a line for each slow operation and each that failed for the
	// store's own reasons; nil means none.
	Logger *slog.Logger
	// Slow is how long is too long; 0 means DefaultSlow.
	Slow time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// TeamLabel returns how a team is named in a label; it must return a bounded set
	// of values. nil counts nothing by team.
	TeamLabel func(memory.Team) string
}

// Backend is a store.Backend that is watched.
type Backend struct {
	next     store.Backend
	log      *slog.Logger
	slow     time.Duration
	now      func() time.Time
	duration *prometheus.HistogramVec
	errors   *prometheus.CounterVec
	bytes    prometheus.Counter
	teams    *prometheus.CounterVec
	label    func(memory.Team) string // nil: nothing is counted by team
}

var (
	_ store.Backend  = (*Backend)(nil)
	_ store.Backuper = (*Backend)(nil)
	_ store.Totaler  = (*Backend)(nil)
)

// New wraps next. It panics if the registerer holds metrics of these names already,
// as prometheus does: two stores in one process need two registries.
func New(next store.Backend, opts Options) *Backend {
	b := &Backend{
		next: next, log: opts.Logger, slow: opts.Slow, now: opts.Now,
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "memsvc_store_operation_seconds",
			Help:    "How long operations of the store took, by operation and outcome.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5},
		}, []string{"op", "outcome"}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "memsvc_store_committed_bytes_total",
			Help: "Bytes of contents in commits that made a revision.",
		}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memsvc_store_errors_total",
			Help: "Operations of the store that failed for its own reasons, by reason: UNAVAILABLE may pass, INTERNAL is a fault.",
		}, []string{"reason"}),
		teams: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memsvc_team_revisions_total",
			Help: "Revisions made through this hub, by team.",
		}, []string{"team"}),
		label: opts.TeamLabel,
	}
	// A series that begins with its first error hides that error from rate().
	b.errors.WithLabelValues(string(memory.ReasonInternal))
	b.errors.WithLabelValues(string(memory.ReasonUnavailable))
	if b.slow <= 0 {
		b.slow = DefaultSlow
	}
	if b.now == nil {
		b.now = time.Now
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if opts.Registerer != nil {
		opts.Registerer.MustRegister(b.duration, b.errors, b.bytes, newTotals(b))
		if b.label != nil {
			opts.Registerer.MustRegister(b.teams)
		}
	}
	return b
}

// Unwrap returns the store within.
func (b *Backend) Unwrap() store.Backend { return b.next }

// outcome names an error for a label: a bounded set, one value a reason.
func outcome(err error) string {
	var e *memory.Error
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &e):
		return string(e.Reason)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "CANCELLED"
	case errors.Is(err, store.ErrClosed):
		return "CLOSED"
	}
	return string(memory.ReasonInternal)
}

// ours reports whether an outcome is the store's own trouble rather than an answer.
func ours(outcome string) bool {
	return outcome == string(memory.ReasonInternal) || outcome == string(memory.ReasonUnavailable)
}

// watch runs f as operation op on subject, a resource name or "".
func (b *Backend) watch(ctx context.Context, op, subject string, f func() error) error {
	start := b.now()
	err := f()
	took := b.now().Sub(start)
	out := outcome(err)
	b.duration.WithLabelValues(op, out).Observe(took.Seconds())
	attrs := []slog.Attr{
		slog.String("op", op), slog.String("subject", subject), slog.String("outcome", out), slog.Duration("took", took),
	}
	switch {
	case ours(out):
		b.errors.WithLabelValues(out).Inc()
		b.log.LogAttrs(ctx, slog.LevelError, "store operation failed", append(attrs, slog.Any("error", err))...)
	case took >= b.slow:
		b.log.LogAttrs(ctx, slog.LevelWarn, "store operation was slow", attrs...)
	}
	return err
}
