package hub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// listen takes the hub's addresses, all or none: gRPC, HTTP, ops.
func listen(ctx context.Context, cfg Config) (lns [3]net.Listener, err error) {
	for i, at := range []struct{ flag, addr string }{
		{"--grpc-addr", cfg.GRPCAddr}, {"--http-addr", cfg.HTTPAddr}, {"--ops-addr", cfg.OpsAddr},
	} {
		if lns[i], err = (&net.ListenConfig{}).Listen(ctx, "tcp", at.addr); err != nil {
			for _, ln := range lns[:i] {
				err = errors.Join(err, ln.Close())
			}
			return lns, fmt.Errorf("%s %s: cannot listen there; is a hub running already? %w", at.flag, at.addr, err)
		}
	}
	return lns, nil
}

// maxOpsConnections bounds the connections to the ops port.
const maxOpsConnections = 200

// connMetrics counts connections by port: grpc, http, ops.
type connMetrics struct {
	open    *prometheus.GaugeVec
	refused *prometheus.CounterVec
}

func newConnMetrics(reg prometheus.Registerer) *connMetrics {
	m := &connMetrics{
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "memsvc_connections", Help: "Connections open, by port.",
		}, []string{"port"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memsvc_connections_refused_total", Help: "Connections closed at once because of the bound, by port.",
		}, []string{"port"}),
	}
	reg.MustRegister(m.open, m.refused)
	return m
}

// bound returns ln with at most most connections at a time. Those over the bound are
// closed at once: who is connected is not starved of memory, and who is not learns it
// quickly.
func (m *connMetrics) bound(ln net.Listener, port string, most int) net.Listener {
	return &boundedListener{
		Listener: ln, room: make(chan struct{}, most),
		gauge: m.open.WithLabelValues(port), refused: m.refused.WithLabelValues(port),
	}
}

type boundedListener struct {
	net.Listener
	room    chan struct{}
	gauge   prometheus.Gauge
	refused prometheus.Counter
}

func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.room <- struct{}{}:
			l.gauge.Inc()
			return &boundedConn{Conn: c, listener: l}, nil
		default:
			l.refused.Inc()
			_ = c.Close() // nothing was said on it
		}
	}
}

type boundedConn struct {
	net.Conn
	listener *boundedListener
	once     sync.Once
}

func (c *boundedConn) Close() error {
	c.once.Do(func() {
		<-c.listener.room
		c.listener.gauge.Dec()
	})
	return c.Conn.Close()
}
