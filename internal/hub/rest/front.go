package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/memsvc/memsvc/api/openapi"
	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
)

// Bounds of a connection: a request's head and body must come in time, an answer
// must be taken in time, and idle connections go.
const (
	headTimeout  = 10 * time.Second
	readTimeout  = time.Minute
	writeTimeout = time.Minute
	idleTimeout  = 2 * time.Minute
	maxHead      = 16 << 10
)

// requestIDHeader carries the request's id in both directions.
const requestIDHeader = "X-Request-Id"

// Options is what a Front is made of.
type Options struct {
	Dial       func(context.Context) (net.Conn, error) // to the gRPC server
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	// MayName decides whether a request may name the host; nil lets every name pass.
	MayName func(host string) bool
	// CertKey is the metadata that carries a verified client certificate, in DER, to
	// the gRPC server. Callers cannot set it.
	CertKey string
	// PeerKey is the metadata that carries the address of the HTTP peer to the gRPC
	// server. Callers cannot set it.
	PeerKey string
}

// Front is the REST face. Close it when its server has ended.
type Front struct {
	conn     *grpc.ClientConn
	api      memsvcv1.MemoryServiceClient
	gateway  *runtime.ServeMux
	document []byte
	log      *slog.Logger
	certKey  string
	peerKey  string
	requests *prometheus.CounterVec
	// parameters are those of the gateway's resources; see routeParameters.
	parameters map[string][]string
	resources  []resource
	mayName    func(host string) bool
	origins    *http.CrossOriginProtection
}

// maxBody bounds a request's body: the largest message with its contents in base64.
const maxBody = memory.MaxMessageBytes * 4 / 3

func marshaler() *runtime.JSONPb {
	return &runtime.JSONPb{
		MarshalOptions:   protojson.MarshalOptions{},
		UnmarshalOptions: protojson.UnmarshalOptions{},
	}
}

// New returns a front. It opens no connection yet.
func New(o Options) (*Front, error) {
	conn, err := grpc.NewClient("passthrough:///hub",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return o.Dial(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // inside the process
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(memory.MaxMessageBytes), grpc.MaxCallSendMsgSize(memory.MaxMessageBytes)),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, fmt.Errorf("REST: connection to the gRPC server: %w", err)
	}
	f := &Front{
		conn: conn, api: memsvcv1.NewMemoryServiceClient(conn), document: openapi.Document(), log: o.Logger, certKey: o.CertKey, peerKey: o.PeerKey,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "memsvc_rest_requests_total", Help: "REST requests finished, by HTTP method and status.",
		}, []string{"method", "status"}),
		parameters: routeParameters(memsvcv1.File_memsvc_v1_memory_service_proto, memsvcv1.File_memsvc_v1_admin_service_proto),
	}
	f.mayName, f.origins = o.MayName, http.NewCrossOriginProtection()
	if f.mayName == nil {
		f.mayName = func(string) bool { return true }
	}
	if f.resources, err = published(f.document); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	o.Registerer.MustRegister(f.requests)
	f.gateway = runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, marshaler()),
		// Memory paths come percent-encoded; the path parser judges what they hold.
		runtime.WithUnescapingMode(runtime.UnescapingModeAllCharacters),
		runtime.WithIncomingHeaderMatcher(incomingHeader),
		runtime.WithOutgoingHeaderMatcher(outgoingHeader),
		runtime.WithMetadata(func(_ context.Context, r *http.Request) metadata.MD { return f.seen(r) }),
		runtime.WithMiddlewares(f.checkParameters),
		runtime.WithErrorHandler(f.gatewayError),
		runtime.WithRoutingErrorHandler(f.routingError),
		runtime.WithDisablePathLengthFallback(),
	)
	ctx := context.Background() // registration makes no call
	err = errors.Join(memsvcv1.RegisterMemoryServiceHandler(ctx, f.gateway, conn), memsvcv1.RegisterAdminServiceHandler(ctx, f.gateway, conn))
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return f, nil
}

// Close ends the connection to the gRPC server.
func (f *Front) Close() error { return f.conn.Close() }

// Server returns an HTTP server of the front, with the bounds above.
func (f *Front) Server() *http.Server {
	return &http.Server{
		Handler: f, ReadHeaderTimeout: headTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHead, ErrorLog: slog.NewLogLogger(f.log.Handler(), slog.LevelDebug),
	}
}

// traceHeader carries the W3C trace context that a request belongs to.
const traceHeader = "Traceparent"

// incomingHeader lets only the request's id and trace through; the gateway adds the
// credential.
func incomingHeader(name string) (string, bool) {
	if strings.EqualFold(name, traceHeader) {
		return strings.ToLower(traceHeader), true
	}
	return strings.ToLower(requestIDHeader), strings.EqualFold(name, requestIDHeader)
}

func outgoingHeader(name string) (string, bool) {
	return requestIDHeader, strings.EqualFold(name, requestIDHeader)
}

// ServeHTTP answers one request.
func (f *Front) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w := &counted{ResponseWriter: rw}
	defer func() { f.requests.WithLabelValues(boundMethod(r.Method), strconv.Itoa(w.code())).Inc() }()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	// A client that does not take its answer must not hold it for ever.
	control := http.NewResponseController(rw)
	if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		f.log.Debug("REST: no write deadline", "error", err.Error())
	}
	if !f.admit(w, r) || !f.readable(w, r) {
		return
	}
	if r.ContentLength > maxBody {
		f.fail(w, r, http.StatusRequestEntityTooLarge, codes.InvalidArgument, fmt.Sprintf("the body has %d bytes, the limit is %d", r.ContentLength, int64(maxBody)))
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if r.URL.Path == "/openapi.json" {
		if f.takes(w, r, nil) {
			f.serveDocument(w, r)
		}
		return
	}
	if m, ok := matchMemory(r.URL.EscapedPath()); ok {
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			if f.takes(w, r, readParameters) {
				f.getMemory(w, r, m)
			}
			return
		case http.MethodPut:
			if f.takes(w, r, writeParameters) {
				f.putMemory(w, r, m)
			}
			return
		case http.MethodDelete:
			if f.takes(w, r, writeParameters) {
				f.deleteMemory(w, r, m)
			}
			return
		}
	}
	if project, ok := matchCollection(r.URL.EscapedPath(), "memories"); ok && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		if f.takes(w, r, f.parameters[listPattern]) {
			f.listMemories(w, r, project)
		}
		return
	}
	if project, ok := matchCollection(r.URL.EscapedPath(), "memories:watch"); ok && r.Method == http.MethodGet {
		if f.takes(w, r, watchParameters) {
			f.watch(w, r, project)
		}
		return
	}
	if r.Method == http.MethodHead {
		r = r.Clone(r.Context())
		r.Method = http.MethodGet // the server leaves the body out
	}
	f.gateway.ServeHTTP(w, r)
}

func (f *Front) serveDocument(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		f.fail(w, r, http.StatusMethodNotAllowed, codes.Unimplemented, "only GET")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(f.document); err != nil {
		f.log.Debug("REST: client went away", "error", err.Error())
	}
}

// seen returns the metadata of what only this side sees of r: the peer's address, and its
// client certificate, if one was verified and stands alone.
func (f *Front) seen(r *http.Request) metadata.MD {
	md := metadata.MD{}
	if f.peerKey != "" {
		md.Set(f.peerKey, r.RemoteAddr)
	}
	if f.certKey != "" && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && r.Header.Get("Authorization") == "" {
		md.Set(f.certKey, string(r.TLS.VerifiedChains[0][0].Raw))
	}
	return md
}

// outgoing returns the context of a call on behalf of r.
func (f *Front) outgoing(r *http.Request) context.Context {
	md := f.seen(r)
	if v := r.Header.Get("Authorization"); v != "" {
		md.Set("authorization", v)
	}
	if v := r.Header.Get(traceHeader); v != "" && isPrintable(v) {
		md.Set(strings.ToLower(traceHeader), v)
	}
	if v := r.Header.Get(requestIDHeader); v != "" && isPrintable(v) {
		md.Set(strings.ToLower(requestIDHeader), v)
	}
	return metadata.NewOutgoingContext(r.Context(), md)
}

func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// boundMethod keeps a metric's label to the methods that HTTP knows.
func boundMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}

// counted remembers the status of an answer.
type counted struct {
	http.ResponseWriter
	status int
}

func (c *counted) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *counted) Write(p []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	return c.ResponseWriter.Write(p)
}

func (c *counted) code() int {
	if c.status == 0 {
		return http.StatusOK
	}
	return c.status
}

// Unwrap lets http.ResponseController reach the connection.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Flush sends what is buffered.
func (c *counted) Flush() {
	if fl, ok := c.ResponseWriter.(http.Flusher); ok {
		fl.Flush()
	}
}
