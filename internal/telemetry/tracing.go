package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/memsvc/memsvc/internal/buildinfo"
)

// TracingOptions says where traces go.
type TracingOptions struct {
	// Service is the name of the program, where OTEL_SERVICE_NAME says nothing.
	Service string
	// Endpoint is the URL of an OTLP receiver that speaks gRPC: http:// for plaintext,
	// https:// for TLS. "": OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, then
	// OTEL_EXPORTER_OTLP_ENDPOINT; without them there is no tracing.
	Endpoint string
	Logger   *slog.Logger // required
	// Instance tells processes of one service apart (service.instance.id); "" is not told.
	Instance string
	// Host returns the machine's name (host.name), or ""; it is asked only if there is
	// tracing. What OTEL_RESOURCE_ATTRIBUTES says of either wins.
	Host func() string
	// Every is how often spans are sent; 0 is OpenTelemetry's default, 5 s.
	Every time.Duration
}

// Tracing makes spans and sends them. A nil Tracing makes none, at no cost: the calls
// of nil Tracings and nil Spans allocate nothing. Safe for concurrent use.
type Tracing struct {
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider
}

// NewTracing returns what the options and the OTEL_ variables ask for (headers,
// certificates, timeouts, sampler, resource); nil if that is nothing. It does not
// connect: a receiver that is away costs spans, told in the log, and nothing else.
func NewTracing(ctx context.Context, o TracingOptions) (*Tracing, error) {
	endpoint, name := o.Endpoint, "--otlp-endpoint"
	for _, env := range []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		if endpoint == "" {
			endpoint, name = os.Getenv(env), env
		}
	}
	if endpoint == "" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}
	if err := CheckEndpoint(endpoint); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, env := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := os.Getenv(env); p != "" && p != "grpc" {
			return nil, fmt.Errorf("%s=%.40s: only grpc is spoken here", env, p)
		}
	}
	exporter, err := otlptrace.New(ctx, otlptracegrpc.NewClient(otlptracegrpc.WithEndpointURL(endpoint)))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	// Later ones win: what OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME say.
	attributes := []attribute.KeyValue{attribute.String("service.name", o.Service), attribute.String("service.version", buildinfo.Read().Version)}
	host := ""
	if o.Host != nil {
		host = o.Host()
	}
	for _, a := range []struct{ key, value string }{{"service.instance.id", o.Instance}, {"host.name", host}} {
		if a.value != "" {
			attributes = append(attributes, attribute.String(a.key, a.value))
		}
	}
	res, err := resource.New(ctx, resource.WithAttributes(attributes...), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: %w", errors.Join(err, exporter.Shutdown(ctx)))
	}
	var batch []sdktrace.BatchSpanProcessorOption
	if o.Every > 0 {
		batch = append(batch, sdktrace.WithBatchTimeout(o.Every))
	}
	p := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&telling{SpanExporter: exporter, log: o.Logger}, batch...),
		sdktrace.WithResource(res),
	)
	return &Tracing{tracer: p.Tracer("github.com/memsvc/memsvc"), provider: p}, nil
}

// CheckEndpoint refuses what cannot be the URL of a receiver. The error does not repeat
// it: it may hold a credential.
func CheckEndpoint(text string) error {
	if u, err := url.Parse(text); err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("want http://HOST:PORT, or https:// for TLS, of an OTLP receiver")
	}
	return nil
}

// Close sends what is left, until ctx ends.
func (t *Tracing) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Start begins a span now. parent is the W3C trace context that it belongs to; "", or
// what is none, begins a trace. No name or value may hold content, a path or a secret.
func (t *Tracing) Start(parent, name string) *Span {
	if t == nil {
		return nil
	}
	if s := t.Follow(parent, name); s != nil {
		return s
	}
	_, s := t.tracer.Start(context.Background(), name)
	return &Span{s}
}

const (
	parentKey  = "traceparent"
	contextLen = 55 // of a W3C trace context of version 00
)

// Span is a part of a trace. A nil Span is none.
type Span struct{ span trace.Span }

// IsTraceContext reports whether text is a W3C trace context of version 00, in its 55
// characters.
func IsTraceContext(text string) bool { return within(text) != nil }

// within returns a context that belongs to the trace of parent; nil if parent is no
// trace context.
func within(parent string) context.Context {
	if len(parent) != contextLen {
		return nil
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{parentKey: parent})
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	return ctx
}

// Follow begins a span now in the trace of parent; nil if parent is no trace context.
func (t *Tracing) Follow(parent, name string) *Span {
	if t == nil {
		return nil
	}
	ctx := within(parent)
	if ctx == nil {
		return nil
	}
	_, s := t.tracer.Start(ctx, name)
	return &Span{s}
}

// Context returns the W3C trace context by which others become part of the trace: 55
// characters of hex digits and dashes. "" is none.
func (s *Span) Context() string {
	if s == nil || !s.span.SpanContext().IsValid() {
		return ""
	}
	m := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), s.span), m)
	return m[parentKey]
}

// Set notes a value.
func (s *Span) Set(key, value string) {
	if s != nil {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// SetInt notes a number.
func (s *Span) SetInt(key string, value int64) {
	if s != nil {
		s.span.SetAttributes(attribute.Int64(key, value))
	}
}

// End ends the span. failure is why it failed, a code or reason of the contract; "" is
// success.
func (s *Span) End(failure string) {
	if s == nil {
		return
	}
	if failure != "" {
		s.span.SetStatus(codes.Error, failure)
	}
	s.span.End()
}

// telling logs that spans cannot be sent, once until they can be again, in the
// program's log; OpenTelemetry itself has one place for all of a process.
type telling struct {
	sdktrace.SpanExporter
	log *slog.Logger

	mu   sync.Mutex // guards away
	away bool
}

// ExportSpans sends spans. Those that cannot be sent are lost.
func (t *telling) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := t.SpanExporter.ExportSpans(ctx, spans)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil && !t.away:
		t.log.Warn("traces cannot be sent and are lost meanwhile", "error", err.Error())
	case err == nil && t.away:
		t.log.Info("traces are sent again")
	}
	t.away = err != nil
	return nil
}
