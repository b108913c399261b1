package rpc

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
)

// metrics counts calls. Methods come from the contract and codes from gRPC, so the
// labels are bounded.
type metrics struct {
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	streams *prometheus.GaugeVec
	panics  prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memsvc_rpc_calls_total", Help: "Calls finished, by method and gRPC code.",
		}, []string{"method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "memsvc_rpc_seconds", Help: "Duration of calls, by method; of streams, how long they were open.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"method"}),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "memsvc_rpc_streams", Help: "Streams open, by method.",
		}, []string{"method"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "memsvc_rpc_panics_total", Help: "Panics in handlers, each answered with INTERNAL.",
		}),
	}
	reg.MustRegister(m.calls, m.seconds, m.streams, m.panics)
	return m
}

// short drops the leading slash and the package: MemoryService/CommitChanges.
func short(method string) string {
	method = strings.TrimPrefix(method, "/")
	return strings.TrimPrefix(method, "memsvc.v1.")
}

func (m *metrics) done(method string, code codes.Code, took time.Duration) {
	m.calls.WithLabelValues(short(method), code.String()).Inc()
	m.seconds.WithLabelValues(short(method)).Observe(took.Seconds())
}

func (m *metrics) open(method string, by float64) {
	m.streams.WithLabelValues(short(method)).Add(by)
}
