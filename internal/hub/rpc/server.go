package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub/authn"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/memory"
)

// Bounds of a connection. An agent pings every 15 s, and other clients may as often
// as every 5 s, with or without calls. A peer that is gone is noticed within 30 s.
const (
	minPing          = 5 * time.Second
	pingEvery        = 20 * time.Second
	pingTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	maxHeaderBytes   = 16 << 10
	readBuffer       = 16 << 10
	writeBuffer      = 32 << 10
	// maxStreams bounds the calls at a time on one connection.
	maxStreams = 2000
	// DefaultConnections bounds the connections at a time.
	DefaultConnections = 10_000
)

// Options is what a Server is made of.
type Options struct {
	Service     *service.Service
	Auth        *authn.Authenticator
	Logger      *slog.Logger
	Registerer  prometheus.Registerer
	Now         func() time.Time
	TLS         *tls.Config // nil: plaintext
	Connections int         // at a time; 0 is DefaultConnections
}

// Server is the hub's gRPC server.
type Server struct {
	grpc    *grpc.Server
	health  *health.Server
	metrics *metrics
	limit   int
}

// New returns a server. It does not listen yet.
func New(o Options) (*Server, error) {
	if o.Connections <= 0 {
		o.Connections = DefaultConnections
	}
	validate, err := newValidator()
	if err != nil {
		return nil, err
	}
	m := newMetrics(o.Registerer)
	e := &edge{auth: o.Auth, validate: validate, metrics: m, log: o.Logger, now: o.Now}
	opts := []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.UnaryInterceptor(e.unary),
		grpc.StreamInterceptor(e.stream),
		grpc.UnknownServiceHandler(unimplemented),
		grpc.MaxRecvMsgSize(memory.MaxMessageBytes),
		grpc.MaxSendMsgSize(memory.MaxMessageBytes),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.ReadBufferSize(readBuffer),
		grpc.WriteBufferSize(writeBuffer),
		grpc.SharedWriteBuffer(true),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingEvery, Timeout: pingTimeout}),
		grpc.WaitForHandlers(true),
	}
	if o.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(o.TLS)))
	}
	s := &Server{grpc: grpc.NewServer(opts...), health: health.NewServer(), metrics: m, limit: o.Connections}
	memsvcv1.RegisterMemoryServiceServer(s.grpc, &memoryServer{svc: o.Service, now: o.Now})
	memsvcv1.RegisterAdminServiceServer(s.grpc, &adminServer{svc: o.Service})
	healthv1.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	for name := range s.grpc.GetServiceInfo() {
		s.health.SetServingStatus(name, healthv1.HealthCheckResponse_SERVING)
	}
	return s, nil
}

// Serve accepts connections on ln until Drain or Stop; then it returns nil.
func (s *Server) Serve(ln net.Listener) error {
	err := s.grpc.Serve(&boundedListener{Listener: ln, most: s.limit, metrics: s.metrics})
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// NotServing makes health checks fail, before anything else ends.
func (s *Server) NotServing() { s.health.Shutdown() }

// Drain stops accepting and waits for the calls under way; when ctx ends, what is
// left is cut off. Whoever drains ends the watches first, or they hold it up.
func (s *Server) Drain(ctx context.Context) {
	s.NotServing()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.grpc.GracefulStop()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.grpc.Stop()
		<-done
	}
}

// Stop cuts everything off.
func (s *Server) Stop() { s.grpc.Stop() }

// boundedListener closes connections over the bound at once, so that those who are
// connected are not starved of memory and those who are not learn it quickly.
type boundedListener struct {
	net.Listener
	most    int
	metrics *metrics

	mu   sync.Mutex // guards what follows
	open int
}

func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		ok := l.open < l.most
		if ok {
			l.open++
		}
		l.mu.Unlock()
		if ok {
			l.metrics.conns.Inc()
			return &boundedConn{Conn: c, listener: l}, nil
		}
		l.metrics.refused.Inc()
		_ = c.Close() // it was never used
	}
}

type boundedConn struct {
	net.Conn
	listener *boundedListener
	once     sync.Once
}

func (c *boundedConn) Close() error {
	c.once.Do(func() {
		c.listener.mu.Lock()
		c.listener.open--
		c.listener.mu.Unlock()
		c.listener.metrics.conns.Dec()
	})
	return c.Conn.Close()
}
