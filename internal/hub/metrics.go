package hub

import (
	"context"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/secretscan"
	"github.com/memsvc/memsvc/internal/telemetry"
)

const (
	// maxTeams bounds the teams that have a label of their own; further ones are
	// "other".
	maxTeams = 200
	// maxVersions bounds the versions of agents that have one.
	maxVersions = 20
	// noTeam is the label of what belongs to the hub as a whole; no team is called so.
	noTeam = "-"
)

// newTeamLabel returns what names teams in labels, the same for all metrics of a hub.
func newTeamLabel() func(memory.Team) string {
	teams := &labelBound{most: maxTeams}
	return func(t memory.Team) string {
		if t == "" {
			return noTeam
		}
		return teams.bound(string(t))
	}
}

// versionForm is what versions of agents look like: a release, or a commit. An agent
// says its version of itself, and what looks otherwise is not repeated.
var versionForm = regexp.MustCompile(`^(v?\d{1,4}\.\d{1,4}\.\d{1,4}([-+][0-9A-Za-z.-]{1,40})?|[0-9a-f]{7,12}(-dirty)?|dev)$`)

// versionLabel names a version in a label.
func versionLabel(seen *labelBound, version string) string {
	if !versionForm.MatchString(version) {
		return "other"
	}
	return seen.bound(version)
}

// guardMetrics tell how the secret guard does.
type guardMetrics struct {
	seconds prometheus.Histogram
	errors  prometheus.Counter
}

func newGuardMetrics(reg prometheus.Registerer) *guardMetrics {
	m := &guardMetrics{
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "memsvc_guard_seconds", Help: "How long the secret guard took to judge one text.",
			Buckets: []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1},
		}),
		errors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "memsvc_guard_errors_total", Help: "Texts that the secret guard could not judge, and that were refused for it.",
		}),
	}
	reg.MustRegister(m.seconds, m.errors)
	return m
}

func (m *guardMetrics) scan(f func() ([]secretscan.Finding, error)) ([]secretscan.Finding, error) {
	begin := time.Now()
	found, err := f()
	m.seconds.Observe(time.Since(begin).Seconds())
	if err != nil {
		m.errors.Inc()
	}
	return found, err
}

// agentCollector counts the connected agents whenever metrics are asked for.
type agentCollector struct {
	count           func() []service.AgentCount
	team            func(memory.Team) string
	version         *labelBound
	teams, versions *prometheus.Desc
}

func newAgentCollector(count func() []service.AgentCount, team func(memory.Team) string) *agentCollector {
	return &agentCollector{
		count: count, team: team, version: &labelBound{most: maxVersions},
		teams:    prometheus.NewDesc("memsvc_team_agents", "Agents that watch through this hub, by team; - is a credential of the whole hub.", []string{"team"}, nil),
		versions: prometheus.NewDesc("memsvc_agents", "Agents that watch through this hub, by version.", []string{"version"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *agentCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.teams; ch <- c.versions }

// Collect implements prometheus.Collector.
func (c *agentCollector) Collect(ch chan<- prometheus.Metric) {
	teams, versions := map[string]int{}, map[string]int{}
	for _, n := range c.count() {
		teams[c.team(n.Team)] += n.Agents
		versions[versionLabel(c.version, n.Version)] += n.Agents
	}
	for label, n := range teams {
		ch <- prometheus.MustNewConstMetric(c.teams, prometheus.GaugeValue, float64(n), label)
	}
	for label, n := range versions {
		ch <- prometheus.MustNewConstMetric(c.versions, prometheus.GaugeValue, float64(n), label)
	}
}

func newReadiness(h *telemetry.Health) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "memsvc_ready", Help: "1 if the hub may be sent work, as /readyz says, else 0.",
	}, func() float64 {
		if h.Ready(context.Background()) != nil { // bounded by the health's own timeout
			return 0
		}
		return 1
	})
}

// disk tells, whenever metrics are asked for, how much room the data directory has.
// Where the system does not say, there are no such metrics.
type disk struct {
	dir        string
	size, free *prometheus.Desc
}

func newDisk(dir string) disk {
	return disk{
		dir:  dir,
		size: prometheus.NewDesc("memsvc_data_size_bytes", "Size of the file system that holds the data directory.", nil, nil),
		free: prometheus.NewDesc("memsvc_data_free_bytes", "Room left on the file system that holds the data directory.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (d disk) Describe(ch chan<- *prometheus.Desc) { ch <- d.size; ch <- d.free }

// Collect implements prometheus.Collector.
func (d disk) Collect(ch chan<- prometheus.Metric) {
	size, free, ok := diskSpace(d.dir)
	if !ok {
		return
	}
	ch <- prometheus.MustNewConstMetric(d.size, prometheus.GaugeValue, size)
	ch <- prometheus.MustNewConstMetric(d.free, prometheus.GaugeValue, free)
}

// registerHints counts the hints to other replicas that could not be sent: none, ever, where
// a store has no replicas.
func registerHints(r prometheus.Registerer, b store.Backend) {
	r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "memsvc_store_hints_failed_total",
		Help: "Hints (NOTIFY) that this hub could not send to the other replicas, which notice its commits later then; 0 with the embedded store.",
	}, func() float64 {
		if h, ok := b.(interface{ HintsFailed() int64 }); ok {
			return float64(h.HintsFailed())
		}
		return 0
	}))
}
