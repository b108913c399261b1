package agent

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// statusCollector tells in metrics, whenever they are asked for, what `status` tells a
// person. Links of one project are one link here, the worst of them; labels hold
// neither a directory nor a path.
type statusCollector struct {
	status func() Status

	links, watching, phase          *prometheus.Desc
	files, revision, behind         *prometheus.Desc
	unreadable, oldestConflict      *prometheus.Desc
	connected, offset, disconnected *prometheus.Desc
}

func newStatusCollector(status func() Status) *statusCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("memsync_"+name, help, labels, nil)
	}
	return &statusCollector{
		status:         status,
		links:          desc("links", "Links by phase.", "phase"),
		watching:       desc("links_watching", "Links by how changes of their directory are noticed.", "how"),
		phase:          desc("link_phase", "Always 1; the label is the phase that the link is in.", "link", "phase"),
		files:          desc("files", "Files that hub and machine agree on.", "link"),
		revision:       desc("revision", "The project's revision that is applied here.", "link"),
		behind:         desc("revisions_behind", "How many revisions the hub is known to be ahead.", "link"),
		unreadable:     desc("unreadable_files", "Paths that could not be looked at.", "link"),
		oldestConflict: desc("oldest_conflict_timestamp_seconds", "When the oldest open conflict arose; absent while there is none.", "link"),
		connected:      desc("hub_connected", "1 while the watch stream to the hub stands.", "hub"),
		offset:         desc("hub_clock_offset_seconds", "The hub's clock minus this machine's.", "hub"),
		disconnected:   desc("hub_disconnected_since_timestamp_seconds", "Since when there is no watch stream; absent while there is one.", "hub"),
	}
}

// Describe implements prometheus.Collector.
func (c *statusCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.links, c.watching, c.phase, c.files, c.revision, c.behind,
		c.unreadable, c.oldestConflict, c.connected, c.offset, c.disconnected,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *statusCollector) Collect(ch chan<- prometheus.Metric) {
	tell := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	s := c.status()
	phases, ways, links := map[Phase]int{}, map[string]int{}, map[string]linkFigures{}
	for _, l := range s.Links {
		phases[l.Phase]++
		ways[l.Watching.How]++
		f, seen := links[l.Name()]
		links[l.Name()] = f.worse(l, !seen)
	}
	for p, n := range phases {
		tell(c.links, float64(n), string(p))
	}
	for how, n := range ways {
		tell(c.watching, float64(n), how)
	}
	for name, f := range links {
		for p := range f.phases {
			tell(c.phase, 1, name, string(p))
		}
		tell(c.files, float64(f.files), name)
		tell(c.revision, float64(f.revision), name)
		tell(c.behind, float64(f.behind), name)
		tell(c.unreadable, float64(f.unreadable), name)
		if f.oldest > 0 {
			tell(c.oldestConflict, f.oldest, name)
		}
	}
	c.hubs(s.Hubs, tell)
}

// hubs tells how the hubs can be reached: where there are several connections to one,
// as with several credentials, the worst of them.
func (c *statusCollector) hubs(hubs []HubStatus, tell func(d *prometheus.Desc, v float64, labels ...string)) {
	worst := map[string]HubStatus{}
	for _, h := range hubs {
		w, seen := worst[h.Addr]
		if !seen || w.Connected && !h.Connected || !h.Connected && h.Since.Before(w.Since) {
			worst[h.Addr] = h
		}
	}
	for _, addr := range slices.Sorted(maps.Keys(worst)) {
		h := worst[addr]
		up := 0.0
		if h.Connected {
			up = 1
		} else {
			tell(c.disconnected, float64(h.Since.UnixMilli())/1000, addr)
		}
		tell(c.connected, up, addr)
		tell(c.offset, float64(h.OffsetMS)/1000, addr)
	}
}

// linkFigures are the figures of the links of one name.
type linkFigures struct {
	phases            map[Phase]bool
	files, unreadable int
	revision, behind  int64
	oldest            float64 // seconds since 1970; 0 = no conflict
}

// worse takes in one more link.
func (f linkFigures) worse(l LinkStatus, first bool) linkFigures {
	if first {
		f = linkFigures{phases: map[Phase]bool{}, files: l.Files, revision: l.Revision}
	}
	f.phases[l.Phase] = true
	f.files, f.revision = min(f.files, l.Files), min(f.revision, l.Revision)
	f.behind = max(f.behind, l.HubRevision-l.Revision)
	f.unreadable = max(f.unreadable, len(l.Unreadable))
	for _, e := range l.Conflicts {
		if at := float64(e.Since.UnixMilli()) / 1000; f.oldest == 0 || at < f.oldest {
			f.oldest = at
		}
	}
	return f
}
