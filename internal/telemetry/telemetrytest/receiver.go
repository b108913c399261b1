// Package telemetrytest is a receiver of traces for tests: a real OTLP server on
// loopback that decodes what comes.
package telemetrytest

import (
	"context"
	"encoding/hex"
	"net"
	"sync"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Span is a span as it came.
type Span struct {
	Service, Name     string
	Trace, ID, Parent string // hex; Parent "" is none
	Failure           string // the status's message
	Attributes        map[string]string
	Resource          map[string]string // of the process
	Start, End        uint64            // ns since the epoch
}

// Receiver is a running receiver.
type Receiver struct {
	collectorv1.UnimplementedTraceServiceServer
	URL string

	mu    sync.Mutex // guards what follows
	spans []Span
	raw   []byte // everything that came
}

// New starts a receiver and ends it with the test.
func New(t testing.TB) *Receiver {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Receiver{URL: "http://" + ln.Addr().String()}
	s := grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(s, r)
	var served sync.WaitGroup
	served.Go(func() {
		if err := s.Serve(ln); err != nil {
			t.Errorf("telemetrytest: %v", err)
		}
	})
	t.Cleanup(func() {
		s.Stop()
		served.Wait()
	})
	return r
}

// Export takes spans.
func (r *Receiver) Export(_ context.Context, req *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	raw, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.raw = append(r.raw, raw...)
	for _, rs := range req.GetResourceSpans() {
		resource := texts(rs.GetResource().GetAttributes())
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				r.spans = append(r.spans, Span{
					Service: resource["service.name"], Resource: resource, Name: s.GetName(), Failure: s.GetStatus().GetMessage(),
					Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
					Attributes: texts(s.GetAttributes()), Start: s.GetStartTimeUnixNano(), End: s.GetEndTimeUnixNano(),
				})
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

func texts(in []*commonv1.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range in {
		if v, ok := kv.GetValue().GetValue().(*commonv1.AnyValue_StringValue); ok {
			out[kv.GetKey()] = v.StringValue
			continue
		}
		out[kv.GetKey()] = kv.GetValue().String()
	}
	return out
}

// Spans returns what has come so far.
func (r *Receiver) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Span(nil), r.spans...)
}

// Raw returns every byte that has come.
func (r *Receiver) Raw() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.raw)
}
