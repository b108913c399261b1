package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/memsvc/memsvc/internal/buildinfo"
)

// NewRegistry returns a fresh registry that holds the Go runtime's and the
// process's metrics, and NAMESPACE_build_info with the value 1 and the labels
// version, commit and go. namespace is "memsvc" or "memsync".
func NewRegistry(namespace string, info buildinfo.Info) *prometheus.Registry {
	r := prometheus.NewRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace:   namespace,
		Name:        "build_info",
		Help:        "Always 1; the labels say which build runs.",
		ConstLabels: prometheus.Labels{"version": info.Version, "commit": info.Commit, "go": info.Go},
	})
	build.Set(1)
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		build,
	)
	return r
}
