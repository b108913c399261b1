package telemetry_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/telemetry"
	"github.com/memsvc/memsvc/internal/telemetry/telemetrytest"
)

func tracing(t *testing.T, o telemetry.TracingOptions) *telemetry.Tracing {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	tr, err := telemetry.NewTracing(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestTracing sends what was begun and ended, each span in its trace.
func TestTracing(t *testing.T) {
	r := telemetrytest.New(t)
	for name, tc := range map[string]struct {
		env      map[string]string
		endpoint string
		service  string
	}{
		"flag":                 {nil, r.URL, "prog"},
		"variable":             {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL}, "", "prog"},
		"variable for traces":  {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": r.URL}, "", "prog"},
		"flag before variable": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, r.URL, "prog"},
		"named otherwise":      {map[string]string{"OTEL_SERVICE_NAME": "other"}, r.URL, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			before := len(r.Spans())
			tr := tracing(t, telemetry.TracingOptions{Service: "prog", Endpoint: tc.endpoint})
			root := tr.Start("", "root")
			child := tr.Start(root.Context(), "child")
			sibling := tr.Follow(root.Context(), "sibling")
			child.Set("key", "value")
			child.End("NOT_FOUND")
			sibling.End("")
			root.End("")
			if err := tr.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := map[string]telemetrytest.Span{}
			for _, s := range r.Spans()[before:] {
				got[s.Name] = s
			}
			c, top := got["child"], got["root"]
			if len(got) != 3 || c.Trace != top.Trace || c.Parent != top.ID || got["sibling"].Parent != top.ID || top.Parent != "" {
				t.Errorf("spans %+v", got)
			}
			if c.Failure != "NOT_FOUND" || c.Attributes["key"] != "value" || c.Service != tc.service {
				t.Errorf("child %+v", c)
			}
		})
	}
}

// TestTracingOff makes nothing unless asked, and refuses what it cannot do.
func TestTracingOff(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"nothing":     {},
		"disabled":    {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		"no exporter": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range env {
				t.Setenv(k, v)
			}
			if tr := tracing(t, telemetry.TracingOptions{Service: "x"}); tr != nil {
				t.Error("tracing is on")
			}
		})
	}
	for _, endpoint := range []string{"127.0.0.1:4317", "ftp://x", "http://", "https://user:secret@host"} {
		_, err := telemetry.NewTracing(t.Context(), telemetry.TracingOptions{Endpoint: endpoint})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	if _, err := telemetry.NewTracing(t.Context(), telemetry.TracingOptions{Endpoint: "http://127.0.0.1:1"}); err == nil {
		t.Error("another protocol is taken")
	}
}

// TestTracingOffCostsNothing counts the allocations of what runs on every call.
func TestTracingOffCostsNothing(t *testing.T) {
	var tr *telemetry.Tracing
	parent := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if n := testing.AllocsPerRun(1000, func() {
		s := tr.Start(parent, "x")
		s.Set("k", parent)
		s.SetInt("n", 1)
		_ = s.Context()
		s.End("")
		tr.Follow(parent, "x").End("")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestFollow takes trace contexts and nothing else for one.
func TestFollow(t *testing.T) {
	r := telemetrytest.New(t)
	tr := tracing(t, telemetry.TracingOptions{Endpoint: r.URL})
	defer func() {
		if err := tr.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for parent, want := range map[string]bool{
		good: true, "": false, "conversation-7": false, strings.ToUpper(good): false, good + "-x": false,
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": false,
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": false,
		strings.Repeat("x", 55):                                   false,
	} {
		s := tr.Follow(parent, "x")
		if (s != nil) != want {
			t.Errorf("%q: %v", parent, s)
		}
		s.End("")
	}
}

// TestReceiverAway loses spans, says so once, and keeps nothing from going on.
func TestReceiverAway(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "200")
	var out bytes.Buffer
	tr := tracing(t, telemetry.TracingOptions{Endpoint: "http://127.0.0.1:1", Logger: slog.New(slog.NewTextHandler(&out, nil)), Every: 10 * time.Millisecond})
	tr.Start("", "x").End("")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := tr.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	if n := strings.Count(out.String(), "cannot be sent"); n != 1 {
		t.Errorf("told %d times: %s", n, out.String())
	}
}
