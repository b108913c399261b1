package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/test/bufconn"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub/authn"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/telemetry"
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
	localBuffer      = 256 << 10
	// maxStreams bounds the calls at a time on one connection.
	maxStreams = 2000
)

// Options is what a Server is made of.
type Options struct {
	Service    *service.Service
	Auth       *authn.Authenticator
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	Now        func() time.Time
	TLS        *tls.Config        // nil: plaintext
	Tracing    *telemetry.Tracing // nil: off
}

// Server is the hub's gRPC server: one face for the network, and one without TLS
// inside the process, for REST. Both have the same handlers behind the same edge.
type Server struct {
	grpc   *grpc.Server
	local  *grpc.Server
	inside *bufconn.Listener
	health *health.Server
}

// New returns a server. It does not listen yet.
func New(o Options) (*Server, error) {
	validate, err := newValidator()
	if err != nil {
		return nil, err
	}
	m := newMetrics(o.Registerer)
	e := &edge{auth: o.Auth, validate: validate, metrics: m, log: o.Logger, now: o.Now, secret: o.Service.HoldsSecret, discreet: o.Service.Discreet, refused: o.Service.RefusedCall, methods: map[string]bool{}}
	e.tracing = o.Tracing
	inner := *e
	inner.local = true
	opts := []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.UnknownServiceHandler(unimplemented),
		grpc.MaxRecvMsgSize(memory.MaxMessageBytes),
		grpc.MaxSendMsgSize(memory.MaxMessageBytes),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.ReadBufferSize(readBuffer),
		grpc.WriteBufferSize(writeBuffer),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingEvery, Timeout: pingTimeout}),
		grpc.WaitForHandlers(true),
	}
	s := &Server{
		local: grpc.NewServer(append(slices.Clone(opts), inner.interceptors()...)...), inside: bufconn.Listen(localBuffer),
		health: health.NewServer(),
	}
	opts = append(opts, e.interceptors()...)
	if o.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(o.TLS)))
	}
	s.grpc = grpc.NewServer(opts...)
	for _, g := range []*grpc.Server{s.grpc, s.local} {
		memsvcv1.RegisterMemoryServiceServer(g, &memoryServer{svc: o.Service, now: o.Now, tracing: o.Tracing})
		memsvcv1.RegisterAdminServiceServer(g, &adminServer{svc: o.Service})
		healthv1.RegisterHealthServer(g, s.health)
		reflection.Register(g)
	}
	for name, service := range s.grpc.GetServiceInfo() {
		for _, m := range service.Methods {
			e.methods["/"+name+"/"+m.Name] = true
		}
		s.health.SetServingStatus(name, healthv1.HealthCheckResponse_SERVING)
	}
	return s, nil
}

// Serve accepts connections on ln until Drain or Stop; then it returns nil.
func (s *Server) Serve(ln net.Listener) error {
	err := s.grpc.Serve(ln)
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// ServeLocal serves the connections of DialLocal until Drain or Stop; then it
// returns nil.
func (s *Server) ServeLocal() error {
	err := s.local.Serve(s.inside)
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// DialLocal opens a connection inside the process.
func (s *Server) DialLocal(ctx context.Context) (net.Conn, error) { return s.inside.DialContext(ctx) }

// NotServing makes health checks fail, before anything else ends.
func (s *Server) NotServing() { s.health.Shutdown() }

// Drain stops accepting and waits for the calls under way; when ctx ends, what is
// left is cut off. Whoever drains ends the watches first, or they hold it up.
func (s *Server) Drain(ctx context.Context) {
	s.NotServing()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.local.GracefulStop()
		s.grpc.GracefulStop()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.Stop()
		<-done
	}
}

// Stop cuts everything off.
func (s *Server) Stop() {
	s.local.Stop()
	s.grpc.Stop()
}
