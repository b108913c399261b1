package observed

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

const (
	// totalsEvery is how long an answer of the store serves, at least.
	totalsEvery = 10 * time.Second
	// totalsShare bounds what the asking costs: the store works on it for one part of
	// the time and is left alone for this many.
	totalsShare = 50
	// totalsTimeout bounds one asking, so that a scrape outlives a store that hangs.
	totalsTimeout = 2 * time.Second
)

// Totals passes on to a store that counts; another is an ErrUnavailable.
func (b *Backend) Totals(ctx context.Context) (out store.Totals, err error) {
	t, ok := b.next.(store.Totaler)
	if !ok {
		return out, &memory.Error{Reason: memory.ReasonUnavailable, Message: "totals: this store does not count"}
	}
	err = b.watch(ctx, "totals", "", func() (err error) {
		out, err = t.Totals(ctx)
		return err
	})
	return out, err
}

// totals tells, whenever metrics are asked for, what this process sees of the store as
// a whole. Replicas of one store see the same; that they do is what these metrics let
// one check. A store that does not answer makes them absent rather than old.
type totals struct {
	b                           *Backend
	projects, revisions, epochs *prometheus.Desc

	mu    sync.Mutex // guards what follows
	until time.Time  // when to ask again
	seen  []prometheus.Metric
}

func newTotals(b *Backend) *totals {
	return &totals{
		b:         b,
		projects:  prometheus.NewDesc("memsvc_store_projects", "Projects in the store.", nil, nil),
		revisions: prometheus.NewDesc("memsvc_store_revisions", "Sum of all projects' head revisions as this hub sees it; replicas of one database agree.", nil, nil),
		epochs:    prometheus.NewDesc("memsvc_store_epoch_info", "Always 1; the label is the epoch of the history that this hub serves.", []string{"epoch"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (t *totals) Describe(ch chan<- *prometheus.Desc) {
	ch <- t.projects
	ch <- t.revisions
	ch <- t.epochs
}

// Collect implements prometheus.Collector.
func (t *totals) Collect(ch chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if begin := t.b.now(); !begin.Before(t.until) {
		t.seen = t.ask()
		took := t.b.now().Sub(begin)
		t.until = begin.Add(max(totalsEvery, totalsShare*took))
	}
	for _, m := range t.seen {
		ch <- m
	}
}

// ask goes past the wrapper: what metrics cost is not what callers cost.
func (t *totals) ask() (out []prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), totalsTimeout)
	defer cancel()
	if epoch, err := t.b.next.Epoch(ctx); err == nil {
		out = append(out, prometheus.MustNewConstMetric(t.epochs, prometheus.GaugeValue, 1, string(epoch)))
	}
	counter, ok := t.b.next.(store.Totaler)
	if !ok {
		return out
	}
	if n, err := counter.Totals(ctx); err == nil {
		out = append(out, prometheus.MustNewConstMetric(t.projects, prometheus.GaugeValue, float64(n.Projects)),
			prometheus.MustNewConstMetric(t.revisions, prometheus.GaugeValue, float64(n.Revisions)))
	}
	return out
}
