package hub

import (
	"context"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/hub/authn"
	"github.com/memsvc/memsvc/internal/hub/changefeed"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/archive"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/secretscan"
)

// guard is the secret guard as the service wants it. Its rules compile when they
// are first needed.
type guard struct {
	scanner *secretscan.Scanner
	m       *guardMetrics
}

func guardPolicy(p service.Policy) secretscan.Policy {
	return secretscan.Policy{
		Version: p.Version, FingerprintKey: p.FingerprintKey, AllowFingerprints: p.AllowFingerprints,
		AllowRules: p.AllowRules, AllowInline: p.AllowInline, RulesTOML: p.RulesTOML,
	}
}

func (g guard) Scan(p service.Policy, path string, content []byte) ([]service.Finding, error) {
	found, err := g.m.scan(func() ([]secretscan.Finding, error) {
		return g.scanner.ScanWith(guardPolicy(p), path, content)
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	// Where the name is the secret, nobody is told the name.
	path = secretscan.SafePath(found, path)
	out := make([]service.Finding, 0, len(found))
	for _, f := range found {
		out = append(out, service.Finding{Path: path, Line: f.Line, Rule: f.Rule, Description: f.Description, Fingerprint: f.Fingerprint})
	}
	return out, nil
}

func (g guard) RulesVersion(p service.Policy) (string, error) {
	return g.scanner.RuleSetVersion(guardPolicy(p))
}

func (g guard) KnowsRule(p service.Policy, rule string) (bool, error) {
	return g.scanner.HasRule(guardPolicy(p), rule)
}

// tokenDirectory is the store's tokens as authentication wants them.
type tokenDirectory struct{ tokens store.Tokens }

func (d tokenDirectory) TokenByHash(ctx context.Context, hash string) (authn.Identity, error) {
	t, err := d.tokens.TokenByHash(ctx, hash)
	if err != nil {
		return authn.Identity{}, err
	}
	return authn.Identity{
		ID: t.ID, Name: t.Name, Hash: t.Hash, Team: t.Team, Project: t.Project, Role: t.Role,
		Expire: t.ExpireTime, Revoked: !t.RevokeTime.IsZero(),
	}, nil
}

// observer counts what the service tells. Outcomes are reasons; rules are ids of the
// guard and the domain, of which a team's own rules could make many: see maxRules.
type observer struct {
	commits   *prometheus.CounterVec
	refusals  *prometheus.CounterVec
	lag       prometheus.Histogram
	auditLost prometheus.Counter
	rescan    prometheus.Counter
	compacted *prometheus.CounterVec
	rules     *labelBound
}

// maxRules bounds the rules that have a label of their own; further ones are "other".
const maxRules = 300

func newObserver(reg prometheus.Registerer, feed *changefeed.Feed) *observer {
	o := &observer{
		commits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memsvc_commits_total", Help: "Commits asked for, by outcome: created, unchanged, valid, or the reason of the refusal.",
		}, []string{"outcome"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memsvc_refusals_total", Help: "Violations in refused commits, by rule.",
		}, []string{"rule"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "memsvc_delivery_seconds", Help: "From a commit, or from the begin of the watch if that was later, to its handing over to a watcher's stream.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30, 300},
		}),
		auditLost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "memsvc_audit_lost_total", Help: "Refusals, and ends of acts, that could not be written to the audit log.",
		}),
		rescan: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "memsvc_rescan_hits_total", Help: "Findings in stored texts when rules had changed; they are served until redacted.",
		}),
		compacted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memsvc_compacted_total", Help: "What retention removed: commits, versions, bytes, audit_events.",
		}, []string{"what"}),
		rules: &labelBound{most: maxRules},
	}
	for _, what := range []string{"versions", "commits", "bytes", "audit_events"} {
		o.compacted.WithLabelValues(what) // it begins at zero, so that the first removal shows
	}
	reg.MustRegister(o.commits, o.refusals, o.lag, o.auditLost, o.rescan, o.compacted,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "memsvc_watchers", Help: "Watches open."},
			func() float64 { return float64(feed.Watchers()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "memsvc_feed_cache_bytes", Help: "Memory of commits kept for all watchers."},
			func() float64 { return float64(feed.CachedBytes()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "memsvc_feed_projects", Help: "Projects that are followed for watchers."},
			func() float64 { return float64(feed.Projects()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "memsvc_feed_polled_commits_total", Help: "Commits that watchers were told of late, because no notice came and the regular look found them.",
		}, func() float64 { return float64(feed.Polled()) }),
	)
	return o
}

func (o *observer) Commit(outcome string)       { o.commits.WithLabelValues(outcome).Inc() }
func (o *observer) Refused(rule string)         { o.refusals.WithLabelValues(o.rules.bound(rule)).Inc() }
func (o *observer) Delivered(lag time.Duration) { o.lag.Observe(lag.Seconds()) }
func (o *observer) AuditLost(n int64)           { o.auditLost.Add(float64(n)) }
func (o *observer) AuditTrimmed(n int64) {
	o.compacted.WithLabelValues("audit_events").Add(float64(n))
}
func (o *observer) RescanHits(_ memory.Team, n int) { o.rescan.Add(float64(n)) }

func (o *observer) Compacted(versions, commits, bytes int64) {
	o.compacted.WithLabelValues("versions").Add(float64(versions))
	o.compacted.WithLabelValues("commits").Add(float64(commits))
	o.compacted.WithLabelValues("bytes").Add(float64(bytes))
}

// archiver moves histories as the service wants it.
type archiver struct {
	backend store.Backend
	now     func() time.Time
	far     archive.Progress // of an import; may be nil
}

func (a archiver) Export(ctx context.Context, team memory.Team, project memory.Project, tokens bool, w io.Writer) error {
	return archive.Export(ctx, a.backend, w, archive.Scope{Team: team, Project: project, Tokens: tokens}, nil)
}

func (a archiver) Import(ctx context.Context, r io.ReadSeeker, judge service.ArchiveJudge) (projects, commits int64, err error) {
	n, err := archive.Import(ctx, a.backend, r, archive.ImportOptions{Epoch: memory.Epoch(uuid.NewString()), Now: a.now(), Judge: judge, Progress: a.far})
	return int64(n.Projects), n.Commits, err
}
