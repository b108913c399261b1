package rpc

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub/authn"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/telemetry"
	"github.com/memsvc/memsvc/internal/wire"
)

// RequestIDHeader carries the request's id in both directions.
const RequestIDHeader = "x-request-id"

// maxRequestID bounds an id that a caller brings; others get one of ours.
const maxRequestID = 64

// edge is what every call passes on its way in and out.
type edge struct {
	auth     *authn.Authenticator
	validate func(any) error
	metrics  *metrics
	methods  map[string]bool // that the servers have, by full name; see Server
	log      *slog.Logger
	now      func() time.Time
	// secret reports whether a text must not be logged, and discreet returns an error
	// without what must not be told.
	secret   func(text string) bool
	discreet func(error) error
	// refused puts on record that a known identity was refused at the edge.
	refused func(ctx context.Context, c service.Call, method string, err error)
	// local says that the edge is the one inside the process, whose only caller tells
	// truly which client certificate and which address it has seen.
	local   bool
	tracing *telemetry.Tracing // nil: off
}

// ClientCertKey is the metadata in which REST hands a verified client certificate, in
// DER, over to the server inside the process. From the network it means nothing.
const ClientCertKey = "memsvc-client-cert-bin"

// PeerKey is the metadata in which REST hands the address of its peer over to the server
// inside the process. From the network it means nothing.
const PeerKey = "memsvc-peer"

// unknownMethod stands in logs, metrics and records for every method that the contract
// does not have: names of them are anybody's.
const unknownMethod = "unknown"

// known returns method, or unknownMethod.
func (e *edge) known(method string) string {
	if e.methods[method] {
		return method
	}
	return unknownMethod
}

type callKey struct{}

// call returns who asks, as the interceptors found out.
func call(ctx context.Context) service.Call {
	c, _ := ctx.Value(callKey{}).(service.Call)
	return c
}

func (e *edge) interceptors() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.UnaryInterceptor(e.unary), grpc.StreamInterceptor(e.stream)}
}

// unary is the interceptor of calls with one request and one answer.
func (e *edge) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	begin := e.now()
	id := e.requestID(ctx)
	_ = grpc.SetHeader(ctx, metadata.Pairs(RequestIDHeader, id)) // a broken stream needs no header
	c := service.Call{RequestID: id}
	var span *telemetry.Span
	if e.tracing != nil && !open(info.FullMethod) {
		span = e.tracing.Start(traceParent(ctx), strings.TrimPrefix(info.FullMethod, "/"))
	}
	defer func() {
		if r := recover(); r != nil {
			err = e.panicked(info.FullMethod, id, r)
		}
		resp, err = e.leave(ctx, info.FullMethod, c, begin, resp, err)
		if span != nil {
			span.Set("request_id", id)
			span.End(failure(err))
		}
	}()
	if !open(info.FullMethod) {
		if _, err := e.admit(ctx, &c, info.FullMethod, priceOf(req)); err != nil {
			return nil, err
		}
		if !fits(req) {
			if err := e.validate(req); err != nil {
				e.refused(ctx, c, short(info.FullMethod), err)
				return nil, err
			}
		}
	}
	return handler(context.WithValue(ctx, callKey{}, c), req)
}

// TraceHeader is the metadata of a W3C trace context, which a call belongs to.
const TraceHeader = "traceparent"

func traceParent(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	if v := md.Get(TraceHeader); len(v) == 1 {
		return v[0]
	}
	return ""
}

// failure is why a call failed, as a span may say it.
func failure(err error) string {
	if err == nil {
		return ""
	}
	st := status.Convert(err)
	if r := wire.ReasonOf(st); r != "" {
		return string(r)
	}
	return st.Code().String()
}

// stream is the interceptor of streams.
func (e *edge) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	begin := e.now()
	ctx := ss.Context()
	method := e.known(info.FullMethod)
	id := e.requestID(ctx)
	_ = ss.SetHeader(metadata.Pairs(RequestIDHeader, id))
	c := service.Call{RequestID: id}
	e.metrics.open(method, 1)
	defer func() {
		if r := recover(); r != nil {
			err = e.panicked(method, id, r)
		}
		e.metrics.open(method, -1)
		_, err = e.leave(ctx, method, c, begin, nil, err)
	}()
	if open(method) {
		return handler(srv, ss)
	}
	who, err := e.admit(ctx, &c, method, 1)
	if err != nil {
		return err
	}
	held, stop := e.auth.Hold(ctx, who)
	defer stop()
	err = handler(srv, &stream{ServerStream: ss, ctx: context.WithValue(held, callKey{}, c), validate: e.validate})
	if held.Err() != nil && ctx.Err() == nil {
		return context.Cause(held) // the credential ended, not the caller
	}
	return err
}

// stream carries the caller's context and validates what is received.
type stream struct {
	grpc.ServerStream
	ctx      context.Context //nolint:containedctx // gRPC hands contexts to handlers this way
	validate func(any) error
}

func (s *stream) Context() context.Context { return s.ctx }

func (s *stream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.validate(m)
}

// open reports whether a method needs no credential: health, and reflection, which
// tells the published contract only.
func open(method string) bool {
	return strings.HasPrefix(method, "/grpc.health.v1.") || strings.HasPrefix(method, "/grpc.reflection.")
}

// fingerprintsACall is how many fingerprints may be asked about for the price of a call:
// few enough that guessing texts takes long, and enough for all that an agent keeps.
const fingerprintsACall = 10

// priceOf is as how many calls a request counts.
func priceOf(req any) int {
	if r, ok := req.(*memsvcv1.FindRedactedRequest); ok {
		return max(1, len(r.GetFingerprints())/fingerprintsACall)
	}
	return 1
}

// admit finds out who calls, tells c, and lets no call in that is past its caller's rate.
// That a known identity is not let in is put on record. The call counts as price calls.
func (e *edge) admit(ctx context.Context, c *service.Call, method string, price int) (authn.Identity, error) {
	who, err := e.enter(ctx)
	if known := nameOf(who); known != "" {
		c.Principal = principalOf(who)
	}
	if err == nil {
		err = e.auth.Allow(who, price)
	}
	if err != nil && c.Principal.Name != "" {
		e.refused(ctx, *c, short(method), err)
	}
	return who, err
}

func (e *edge) enter(ctx context.Context) (authn.Identity, error) {
	bearer := ""
	switch v := metadata.ValueFromIncomingContext(ctx, "authorization"); len(v) {
	case 1:
		bearer = v[0]
	case 0:
		// A certificate may stand for someone where no other credential is sent.
		if cert := e.certificate(ctx); cert != nil {
			who, err := e.auth.Certified(cert)
			if err == nil {
				knowPeer(ctx)
			}
			return who, err
		}
	}
	who, err := e.auth.Authenticate(ctx, bearer)
	if err == nil {
		knowPeer(ctx)
	}
	return who, err
}

// header returns what the caller sent under key, or "" if it was not sent once. It does
// not copy the other headers, as metadata.FromIncomingContext does.
func header(ctx context.Context, key string) string {
	if v := metadata.ValueFromIncomingContext(ctx, key); len(v) == 1 {
		return v[0]
	}
	return ""
}

// knowPeer tells the connection, if it wants to know, that its peer has a credential:
// a listener may close those that bring none.
func knowPeer(ctx context.Context) {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(interface{ Known() }); ok {
			a.Known()
		}
	}
}

// certificate returns the caller's client certificate, if one was verified.
func (e *edge) certificate(ctx context.Context) *x509.Certificate {
	if e.local {
		if der := header(ctx, ClientCertKey); der != "" {
			if cert, err := x509.ParseCertificate([]byte(der)); err == nil {
				return cert
			}
		}
		return nil
	}
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.VerifiedChains) > 0 {
			return info.State.VerifiedChains[0][0]
		}
	}
	return nil
}

// nameOf is how the log names who was refused, where that is known.
func nameOf(who authn.Identity) string {
	if who.Name == "" {
		return ""
	}
	return who.Principal()
}

func principalOf(id authn.Identity) service.Principal {
	role, err := service.ParseRole(id.Role)
	if err != nil {
		role = service.NoRole // a record that nobody understands allows nothing
	}
	p := service.Principal{Name: id.Principal(), Team: id.Team, Project: id.Project, Role: role}
	if id.Kind == authn.Token {
		p.TokenID = id.ID
	}
	return p
}

// requestID returns the id that the caller brought, if it is harmless in a log, or a
// new one.
func (e *edge) requestID(ctx context.Context) string {
	if id := header(ctx, RequestIDHeader); harmless(id) && (isHex(id) || !e.secret(id)) {
		return id
	}
	return uuid.NewString()
}

// isHex reports whether id is hex digits and dashes, as UUIDs and trace ids are: no
// credential is known by such a form, so the guard need not be asked.
func isHex(id string) bool { return strings.Trim(id, "0123456789abcdefABCDEF-") == "" }

func harmless(id string) bool {
	// A token or a JWT that landed in the wrong header stays out of the log.
	if id == "" || len(id) > maxRequestID || strings.HasPrefix(id, authn.Prefix) || strings.HasPrefix(id, "eyJ") {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return true
}

// panicked turns a panic into an internal error with its stack for the log. The
// value of the panic could hold a caller's text, so only its type is kept.
func (e *edge) panicked(method, id string, r any) error {
	e.metrics.panics.Inc()
	kind := fmt.Sprintf("%T", r)
	if err, ok := r.(interface {
		error
		RuntimeError()
	}); ok {
		kind = err.Error()
	}
	e.log.Error("panic in a handler", "method", method, "request_id", id, "panic", kind, "stack", string(debug.Stack()))
	return &memory.Error{Reason: memory.ReasonInternal}
}

// leave translates the error, counts the call and logs it: the one place for each.
func (e *edge) leave(ctx context.Context, method string, c service.Call, begin time.Time, resp any, err error) (any, error) {
	took := e.now().Sub(begin)
	if err != nil {
		err = e.discreet(err)
	}
	st := wire.ToStatus(err, c.RequestID)
	code := codes.OK
	if st != nil {
		code = st.Code()
	}
	e.metrics.done(method, code, took)
	if code == codes.OK {
		if e.log.Enabled(ctx, slog.LevelDebug) {
			e.log.DebugContext(ctx, "call", "method", method, "request_id", c.RequestID, "principal", c.Principal.Name, "took", took)
		}
		return resp, nil
	}
	level, attrs := slog.LevelInfo, []any{
		"method", method, "request_id", c.RequestID, "principal", c.Principal.Name,
		"code", code.String(), "reason", string(wire.ReasonOf(st)), "took", took,
	}
	switch code {
	case codes.Internal, codes.Unknown, codes.DataLoss:
		// Only here does the cause matter, and only the log gets it.
		level = slog.LevelError
		attrs = append(attrs, "cause", err.Error())
	case codes.Canceled:
		level = slog.LevelDebug
	case codes.Unavailable:
		// The hub's own word ends a watch when it drains: nothing has failed.
		level = slog.LevelDebug
		var e *memory.Error
		if !errors.As(err, &e) {
			level = slog.LevelWarn
			attrs = append(attrs, "cause", err.Error())
		}
	}
	if code == codes.Unauthenticated {
		attrs = append(attrs, "peer", e.peer(ctx))
		if why := authn.Why(err); why != "" {
			attrs = append(attrs, "why", why)
		}
	}
	e.log.Log(ctx, level, "call failed", attrs...)
	return nil, st.Err()
}

// peer returns the address that the call came from; "" if nobody knows.
func (e *edge) peer(ctx context.Context) string {
	if e.local {
		return header(ctx, PeerKey)
	}
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}

// unimplemented answers a method that does not exist.
func unimplemented(_ any, ss grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(ss)
	return status.Errorf(codes.Unimplemented, "unknown method %.100q; the hub speaks memsvc.v1", method)
}
