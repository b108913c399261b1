package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/buildinfo"
)

func TestLogger(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(&out, LogOptions{Format: "json", Level: "warn"})
	if err != nil {
		t.Fatal(err)
	}
	log.Info("not this one")
	log.With("Token", "msv_very-secret").Warn("refused", slog.Group("request", "authorization", "Bearer x", "path", "a.md"))
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v in %q; want one JSON line", err, out.String())
	}
	request, _ := line["request"].(map[string]any)
	if line["level"] != "WARN" || line["Token"] != hidden || request["authorization"] != hidden || request["path"] != "a.md" {
		t.Errorf("got %v", line)
	}

	out.Reset()
	log, err = NewLogger(&out, LogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("not this one")
	log.Info("hello", "n", 1)
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=INFO msg=hello n=1") {
		t.Errorf("got %q", got)
	}
}

func TestLoggerRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, o := range []LogOptions{{Format: "xml"}, {Level: "loud"}} {
		if _, err := NewLogger(io.Discard, o); err == nil || !strings.Contains(err.Error(), "use ") {
			t.Errorf("%+v: got %v, want an error that lists the known values", o, err)
		}
	}
}

// ops serves an ops endpoint on loopback and ends it with the test.
func ops(t *testing.T, health *Health, registry *prometheus.Registry) (url string, stop func() error) {
	t.Helper()
	return opsOn(t, listen(t), health, registry)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func opsOn(t *testing.T, ln net.Listener, health *Health, registry *prometheus.Registry) (url string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- ServeOps(ctx, ln, OpsOptions{Gatherer: registry, Health: health, Logger: slog.New(slog.DiscardHandler)})
	}()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String(), stop
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestOpsEndpoint(t *testing.T) {
	info := buildinfo.Info{Version: "v1", Commit: "c", Go: "go1"}
	registry := NewRegistry("memsvc", info)
	health := NewHealth()
	var storeErr error
	health.AddCheck("store", func(context.Context) error { return storeErr })
	ln := listen(t)
	url, stop := opsOn(t, ln, health, registry)

	expect := func(path string, code int, part string) {
		t.Helper()
		if gotCode, got := get(t, url+path); gotCode != code || !strings.Contains(got, part) {
			t.Errorf("GET %s: %d %.200q; want %d with %q", path, gotCode, got, code, part)
		}
	}
	expect("/livez", 200, "ok")
	expect("/readyz", 503, "not ready: starting")
	health.SetReady()
	expect("/readyz", 200, "ok")
	storeErr = errors.New("disk\nfull")
	expect("/readyz", 503, "not ready: store: disk full\n")
	expect("/livez", 200, "ok")
	storeErr = nil
	health.SetNotReady("draining")
	expect("/readyz", 503, "not ready: draining")

	expect("/metrics", 200, `memsvc_build_info{commit="c",go="go1",version="v1"} 1`)
	expect("/metrics", 200, "go_goroutines")
	expect("/debug/pprof/", 200, "goroutine")
	expect("/debug/pprof/heap?debug=1", 200, "heap profile")
	expect("/", 404, "")
	expect("/debug/", 404, "")

	if err := stop(); err != nil {
		t.Fatalf("orderly end: %v", err)
	}
	// The port itself may be another program's by now.
	if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the port is still open after the end: closed with %v", err)
	}
}

// TestTwoRegistriesAreStrangers: nothing is shared, so a test may build ten hubs.
func TestTwoRegistriesAreStrangers(t *testing.T) {
	for range 2 {
		r := NewRegistry("memsync", buildinfo.Read())
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range families {
			found = found || f.GetName() == "memsync_build_info"
		}
		if !found {
			t.Error("memsync_build_info is missing")
		}
	}
}

func TestGarbageDoesNotStopTheEndpoint(t *testing.T) {
	health := NewHealth()
	health.SetReady()
	url, _ := ops(t, health, prometheus.NewRegistry())
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	// The endpoint hangs up in the middle; how much was taken does not matter.
	_, _ = c.Write(bytes.Repeat([]byte("\x00\xffgarbage"), 1<<19))
	_ = c.Close()
	if code, _ := get(t, url+"/readyz"); code != 200 {
		t.Errorf("/readyz after garbage: %d", code)
	}
}

// TestAbandonedCallDoesNotHoldTheEnd starts a profile far longer than the drain and
// ends the endpoint meanwhile.
func TestAbandonedCallDoesNotHoldTheEnd(t *testing.T) {
	url, stop := ops(t, NewHealth(), prometheus.NewRegistry())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/debug/pprof/trace?seconds=3600", nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	headers := make(chan struct{})
	go func() {
		defer close(ended)
		transport := &http.Transport{DisableKeepAlives: true}
		response, err := transport.RoundTrip(request)
		close(headers)
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}()
	<-headers // the trace is under way
	start := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > opsDrainTimeout+time.Minute {
		t.Errorf("the end took %v", took)
	}
	<-ended
}

func TestSlowCheckIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		health := NewHealth()
		health.SetReady()
		health.AddCheck("store", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		start := time.Now()
		err := health.Ready(t.Context())
		if err == nil || !strings.Contains(err.Error(), "store: context deadline exceeded") {
			t.Errorf("got %v, want the store's deadline", err)
		}
		if took := time.Since(start); took != checkTimeout {
			t.Errorf("took %v, want %v", took, checkTimeout)
		}
	})
}

func TestServeOpsReportsABrokenListener(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	err = ServeOps(t.Context(), ln, OpsOptions{Gatherer: prometheus.NewRegistry(), Health: NewHealth(), Logger: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want the listener's error", err)
	}
}
