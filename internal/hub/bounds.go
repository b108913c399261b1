package hub

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Bounds of the ops port. Probes and scrapes are short and come from few addresses.
const (
	maxOpsConnections = 200
	maxOpsPerPeer     = 100
)

// loginWithin is how long a connection to the gRPC API may do without a call that
// brings a credential. Agents bring one with their first call.
const loginWithin = 30 * time.Second

// peerBits is what counts as one peer in IPv6: whoever has one address there has the
// 64 bits after the prefix to choose from.
const peerBits = 64

// Why a connection was closed; labels of memsvc_connections_refused_total.
const (
	refusedPort  = "port"  // the bound of the port
	refusedPeer  = "peer"  // the bound of one address
	refusedLogin = "login" // no credential in time
)

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
			Name: "memsvc_connections_refused_total",
			Help: "Connections closed by the hub, by port and bound: port and peer at once, login because no credential came in time.",
		}, []string{"port", "bound"}),
	}
	reg.MustRegister(m.open, m.refused)
	return m
}

// connBounds are the bounds of one port.
type connBounds struct {
	most    int           // connections at a time
	perPeer int           // of them from one peer; 0 is no bound of its own
	login   time.Duration // how long a connection may be without a credential; 0 is for ever
}

// bound returns ln within bounds. Connections over them are closed at once: who is
// connected is not starved of memory, who is not learns it quickly, and one peer does
// not shut the others out.
func (m *connMetrics) bound(ln net.Listener, port string, b connBounds) net.Listener {
	l := &boundedListener{Listener: ln, bounds: b, gauge: m.open.WithLabelValues(port), refused: map[string]prometheus.Counter{}, peers: map[netip.Prefix]int{}}
	for _, why := range []string{refusedPort, refusedPeer, refusedLogin} {
		l.refused[why] = m.refused.WithLabelValues(port, why)
	}
	return l
}

type boundedListener struct {
	net.Listener
	bounds  connBounds
	gauge   prometheus.Gauge
	refused map[string]prometheus.Counter

	mu    sync.Mutex // guards what follows
	open  int
	peers map[netip.Prefix]int // connections of each that has any
}

// Accept returns the next connection within the bounds.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer := peerOf(c.RemoteAddr())
		if why := l.enter(peer); why != "" {
			l.refused[why].Inc()
			_ = c.Close() // nothing was said on it
			continue
		}
		bc := &boundedConn{Conn: c, listener: l, peer: peer}
		bc.await(l.bounds.login)
		return bc, nil
	}
}

// enter takes room for a connection of peer, or says which bound leaves none.
func (l *boundedListener) enter(peer netip.Prefix) (refused string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.open >= l.bounds.most:
		return refusedPort
	case l.bounds.perPeer > 0 && l.peers[peer] >= l.bounds.perPeer:
		return refusedPeer
	}
	l.open++
	l.peers[peer]++
	l.gauge.Inc()
	return ""
}

func (l *boundedListener) leave(peer netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.peers[peer]--; l.peers[peer] == 0 {
		delete(l.peers, peer)
	}
	l.gauge.Dec()
}

// peerOf returns whom an address counts for. What is no address is all one peer.
func peerOf(a net.Addr) netip.Prefix {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := t.AddrPort().Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = peerBits
	}
	p, _ := ip.Prefix(bits) // the bits are right
	return p
}

type boundedConn struct {
	net.Conn
	listener *boundedListener
	peer     netip.Prefix
	once     sync.Once

	mu    sync.Mutex  // guards login
	login *time.Timer // fires when no credential came in time; nil: none is wanted any more
}

// await closes the connection unless a credential comes within d; 0 waits for ever.
func (c *boundedConn) await(d time.Duration) {
	if d <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.login = time.AfterFunc(d, c.expire)
}

// settle ends the waiting, and reports whether it was still on.
func (c *boundedConn) settle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.login == nil {
		return false
	}
	c.login.Stop()
	c.login = nil
	return true
}

// RemoteAddr returns the peer's address, which takes the word that the peer is known:
// the address is what a gRPC handler gets to see of its connection.
func (c *boundedConn) RemoteAddr() net.Addr { return peerAddr{c.Conn.RemoteAddr(), c} }

// Close closes the connection and gives its room back.
func (c *boundedConn) Close() error {
	c.once.Do(func() {
		c.settle()
		c.listener.leave(c.peer)
	})
	return c.Conn.Close()
}

// expire closes a connection that brought no credential in time.
func (c *boundedConn) expire() {
	if !c.settle() {
		return
	}
	c.listener.refused[refusedLogin].Inc()
	_ = c.Close() // the server sees it when it reads
}

type peerAddr struct {
	net.Addr
	conn *boundedConn
}

// Known says that a credential came over the connection and was good.
func (a peerAddr) Known() { a.conn.settle() }
