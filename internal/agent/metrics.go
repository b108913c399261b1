package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/lifecycle/dream"
)

// metrics are the agent's. Labels are bounded: links by configuration, rules by the
// guard, reasons by the contract. No label holds a path.
type metrics struct {
	pushes      *prometheus.CounterVec   // link
	pulls       *prometheus.CounterVec   // link
	refusals    *prometheus.GaugeVec     // link, rule
	conflicts   *prometheus.GaugeVec     // link
	halts       *prometheus.GaugeVec     // link
	pending     *prometheus.GaugeVec     // link
	errors      *prometheus.CounterVec   // link, reason
	lastSuccess *prometheus.GaugeVec     // link
	cycles      *prometheus.HistogramVec // kind: a cycle's duration
	dreams      *prometheus.CounterVec   // result
	dreamFiles  *prometheus.CounterVec   // kind
	dreamTime   prometheus.Histogram
	propagation prometheus.Histogram
	endToEnd    prometheus.Histogram
}

// promptly is how soon a saved file must have come to the hub for its way to be
// measured end to end. What took longer waited for an offline author, or carried an
// old time from where it was copied.
const promptly = time.Minute

// fast buckets fit what happens on one machine or within a network: 1 ms to 30 s.
var fast = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// slow buckets fit what a language model may work on: 100 ms to 10 min.
var slow = []float64{.1, .5, 1, 5, 15, 30, 60, 120, 300, 600}

// How a dream ended.
const (
	dreamDone   = "done"
	dreamFailed = "failed"
)

func newMetrics(r prometheus.Registerer) *metrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "memsync", Name: name, Help: help}, labels)
		r.MustRegister(g)
		return g
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "memsync", Name: name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	m := &metrics{
		pushes:      counter("pushes_total", "Commits made on the hub.", "link"),
		pulls:       counter("pulls_total", "Files written or removed here because the hub changed.", "link"),
		refusals:    gauge("refused_files", "Files that stay on this machine, by the first rule they break.", "link", "rule"),
		conflicts:   gauge("conflicts", "Open conflicts.", "link"),
		halts:       gauge("halted", "1 while a brake holds the link.", "link"),
		pending:     gauge("pending_changes", "Changes that wait: local ones that are not on the hub yet, as far as the hub is known, and the hub's that cannot be put in place.", "link"),
		errors:      counter("cycle_errors_total", "Cycles that ended with an error, by reason.", "link", "reason"),
		lastSuccess: gauge("last_success_timestamp_seconds", "When a cycle last ended without error.", "link"),
		dreams:      counter("dreams_total", "Dreams of this daemon: done or failed. One that its gates did not let pass is none.", "result"),
		dreamFiles:  counter("dream_files_total", "Files that dreams of this daemon created, edited or deleted.", "kind"),
	}
	m.dreamTime = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: "memsync", Name: "dream_seconds", Help: "Duration of a dream.", Buckets: slow,
	})
	for _, result := range []string{dreamDone, dreamFailed} {
		m.dreams.WithLabelValues(result)
	}
	for _, k := range []dream.Kind{dream.Create, dream.Edit, dream.Delete} {
		m.dreamFiles.WithLabelValues(string(k))
	}
	m.cycles = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "memsync", Name: "cycle_seconds", Help: "Duration of a cycle, the scan of the directory included.", Buckets: fast,
	}, []string{"link"})
	m.propagation = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: "memsync", Name: "propagation_seconds", Buckets: fast,
		Help: "From the commit on the hub, by the hub's clock, to the file in place here.",
	})
	m.endToEnd = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: "memsync", Name: "end_to_end_seconds", Buckets: fast,
		Help: "From the author's saving of a file to the file in place here, by the hub's clock; only edits that came to the hub within a minute.",
	})
	r.MustRegister(m.cycles, m.propagation, m.endToEnd, m.dreamTime)
	return m
}

// applied notes that a commit of someone else is in place now.
func (m *metrics) applied(a arrival, now time.Time, offset time.Duration) {
	now = now.Add(offset)
	m.propagation.Observe(max(0, now.Sub(a.time).Seconds()))
	if !a.saved.IsZero() && a.time.Sub(a.saved) <= promptly {
		m.endToEnd.Observe(max(0, now.Sub(a.saved).Seconds()))
	}
}

// dreamt counts a dream that ran.
func (m *metrics) dreamt(r dream.Report, failed error) {
	if m == nil {
		return
	}
	if failed != nil {
		m.dreams.WithLabelValues(dreamFailed).Inc()
		return
	}
	m.dreams.WithLabelValues(dreamDone).Inc()
	m.dreamTime.Observe(r.Took.Seconds())
	for _, c := range r.Changes {
		if c.Skipped == "" {
			m.dreamFiles.WithLabelValues(string(c.Kind)).Inc()
		}
	}
}

// refused counts a link's refused files by the first rule each breaks.
func (m *metrics) refused(link string, held []syncer.Held) {
	m.refusals.DeletePartialMatch(prometheus.Labels{"link": link})
	for _, h := range held {
		rule := h.By
		if len(h.Violations) > 0 {
			rule = h.Violations[0].Rule
		}
		m.refusals.WithLabelValues(link, rule).Inc()
	}
}

// drop forgets a link that is no more.
func (m *metrics) drop(link string) {
	l := prometheus.Labels{"link": link}
	for _, g := range []*prometheus.GaugeVec{m.refusals, m.conflicts, m.halts, m.pending, m.lastSuccess} {
		g.DeletePartialMatch(l)
	}
	m.pushes.DeletePartialMatch(l)
	m.pulls.DeletePartialMatch(l)
	m.errors.DeletePartialMatch(l)
	m.cycles.DeletePartialMatch(l)
}
