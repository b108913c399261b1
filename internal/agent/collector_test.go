package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// gathered returns the registry's metrics by name and labels; of a histogram, the sum.
func gathered(t *testing.T, r prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			out[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum()
		}
	}
	return out
}

func TestStatusInMetrics(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	link := func(project, dir string) LinkStatus {
		l := newLinkStatus(Link{Team: "acme", Project: project, Dir: dir})
		l.Phase, l.Watching.How = PhaseInSync, "events"
		return l
	}
	// Two directories of one project on one machine are told as one, the worst.
	good, bad, other := link("pay", "/a"), link("pay", "/b"), link("web", "/c")
	good.Files, good.Revision, good.HubRevision = 12, 41, 41
	bad.Files, bad.Revision, bad.HubRevision, bad.Phase, bad.Watching.How = 9, 38, 41, PhaseAttention, "polling"
	bad.Conflicts = []ConflictEntry{{Since: at(2000)}, {Since: at(1000)}}
	bad.Unreadable = []string{"a.md"}
	other.Revision, other.HubRevision = 7, 0 // the hub's is not known
	status := Status{
		Links: []LinkStatus{good, bad, other},
		Hubs: []HubStatus{
			{Addr: "h:1", Connected: true, Since: at(100), OffsetMS: 1500},
			{Addr: "h:1", Connected: false, Since: at(300), OffsetMS: -250},
			{Addr: "h:1", Connected: false, Since: at(400)},
			{Addr: "h:2", Connected: true, Since: at(100)},
		},
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(newStatusCollector(func() Status { return status }))
	want := map[string]float64{
		"memsync_links phase=in-sync":                              2,
		"memsync_links phase=attention":                            1,
		"memsync_links_watching how=events":                        2,
		"memsync_links_watching how=polling":                       1,
		"memsync_link_phase link=acme/pay phase=in-sync":           1,
		"memsync_link_phase link=acme/pay phase=attention":         1,
		"memsync_link_phase link=acme/web phase=in-sync":           1,
		"memsync_files link=acme/pay":                              9,
		"memsync_files link=acme/web":                              0,
		"memsync_revision link=acme/pay":                           38,
		"memsync_revision link=acme/web":                           7,
		"memsync_revisions_behind link=acme/pay":                   3,
		"memsync_revisions_behind link=acme/web":                   0,
		"memsync_unreadable_files link=acme/pay":                   1,
		"memsync_unreadable_files link=acme/web":                   0,
		"memsync_oldest_conflict_timestamp_seconds link=acme/pay":  1000,
		"memsync_hub_connected hub=h:1":                            0,
		"memsync_hub_connected hub=h:2":                            1,
		"memsync_hub_disconnected_since_timestamp_seconds hub=h:1": 300,
		"memsync_hub_clock_offset_seconds hub=h:1":                 -0.25,
		"memsync_hub_clock_offset_seconds hub=h:2":                 0,
	}
	if d := cmp.Diff(want, gathered(t, r)); d != "" {
		t.Errorf("metrics (-want +got):\n%s", d)
	}
}

func TestTheWayIsMeasured(t *testing.T) {
	r := prometheus.NewRegistry()
	m := newMetrics(r)
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	// The hub's clock is 10 s ahead: it is 1012 there.
	m.applied(arrival{time: at(11), saved: at(10)}, at(2), 10*time.Second)
	m.applied(arrival{time: at(11)}, at(2), 10*time.Second)                  // a delete was not saved
	m.applied(arrival{time: at(11), saved: at(-100)}, at(2), 10*time.Second) // an author who was offline
	m.applied(arrival{time: at(20), saved: at(20)}, at(2), 10*time.Second)   // clocks that do not agree
	got := gathered(t, r)
	if got["memsync_propagation_seconds"] != 3 || got["memsync_end_to_end_seconds"] != 2 {
		t.Errorf("got %v, want 3 s from the hub in three ways of one second, and 2 s end to end", got)
	}
}
