package telemetry

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestHostRule tries every kind of name against every kind of listener.
func TestHostRule(t *testing.T) {
	loopback4, loopback6 := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7422}, &net.TCPAddr{IP: net.IPv6loopback, Port: 7422}
	all, pod := &net.TCPAddr{IP: net.IPv6unspecified, Port: 7422}, &net.TCPAddr{IP: net.IPv4(10, 42, 0, 7), Port: 7422}
	inside, outside := []net.Addr{loopback4, loopback6}, []net.Addr{all, pod}
	for _, tc := range []struct {
		host    string
		at      []net.Addr
		allowed []string
		want    bool
	}{
		{"127.0.0.1:7422", inside, nil, true},
		{"127.0.0.1", inside, nil, true},
		{"127.8.9.10:1", inside, nil, true},
		{"localhost:7422", inside, nil, true},
		{"LocalHost.:7422", inside, nil, true},
		{"[::1]:7422", inside, nil, true},
		{"[::1]", inside, nil, true},
		{"[::ffff:127.0.0.1]:7422", inside, nil, true},
		{"", inside, nil, true},
		{"evil.example:7422", inside, nil, false},
		{"evil.example", inside, nil, false},
		{"localhost.evil.example", inside, nil, false},
		{"127.0.0.1.evil.example:7422", inside, nil, false},
		{"127.0.0.1@evil.example", inside, nil, false},
		{"10.42.0.7:7422", inside, nil, false},
		{"0.0.0.0:7422", inside, nil, false},
		{"[::]:7422", inside, nil, false},
		{"0x7f000001", inside, nil, false},
		{"hub.example:7422", inside, []string{"Hub.Example."}, true},
		{"evil.example", inside, []string{"hub.example"}, false},

		{"10.42.0.7:7422", outside, nil, true}, // kubelet and Prometheus
		{"[fd00::7]:7422", outside, nil, true},
		{"hub.example", outside, nil, true},
		{"10.42.0.7:7422", outside, []string{"hub.example"}, true},
		{"hub.example:443", outside, []string{"hub.example"}, true},
		{"localhost:7422", outside, []string{"hub.example"}, true}, // a forwarded port
		{"evil.example", outside, []string{"hub.example"}, false},
		{"hub.example.evil.example", outside, []string{"hub.example"}, false},
	} {
		for _, at := range tc.at {
			if got := HostRule(at, tc.allowed)(tc.host); got != tc.want {
				t.Errorf("host %q at %v, allowed %v: %t, want %t", tc.host, at, tc.allowed, got, tc.want)
			}
		}
	}
}

// TestOpsRefusesOtherNames asks every path of an ops port on loopback as a page with a
// rebound name would, and as a page of another site would: nothing is told.
func TestOpsRefusesOtherNames(t *testing.T) {
	health := NewHealth()
	health.SetReady()
	url, _ := ops(t, health, prometheus.NewRegistry())
	ask := func(path, host string, header ...string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if v := res.Header.Get("Access-Control-Allow-Origin"); v != "" {
			t.Errorf("%s: answers %q to other origins", path, v)
		}
		return res.StatusCode
	}
	for _, path := range []string{"/metrics", "/livez", "/readyz", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline", "/none"} {
		if code := ask(path, "evil.example:7422"); code != http.StatusMisdirectedRequest {
			t.Errorf("%s by a foreign name: %d", path, code)
		}
		if code := ask(path, "", "Sec-Fetch-Site", "cross-site"); code != http.StatusForbidden {
			t.Errorf("%s for a page of another site: %d", path, code)
		}
		if code := ask(path, "", "Origin", "http://evil.example"); code != http.StatusForbidden {
			t.Errorf("%s for a foreign origin: %d", path, code)
		}
	}
	for _, host := range []string{"", "localhost:1234", "[::1]:1234"} {
		if code := ask("/metrics", host, "Sec-Fetch-Site", "none"); code != http.StatusOK {
			t.Errorf("/metrics by %q: %d", host, code)
		}
	}
}

// TestOpsBeyondLoopback is called by a pod's address, as kubelet and Prometheus do,
// and by the names that it was told.
func TestOpsBeyondLoopback(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- ServeOps(ctx, elsewhere{ln}, OpsOptions{Gatherer: prometheus.NewRegistry(), Health: NewHealth(), Logger: slog.New(slog.DiscardHandler), AllowHosts: []string{"hub.example"}})
	}()
	for host, want := range map[string]int{"10.42.0.7:7422": 200, "hub.example:7422": 200, "evil.example": http.StatusMisdirectedRequest} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+ln.Addr().String()+"/livez", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", host, res.StatusCode, want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// elsewhere is a listener on loopback that says it listens everywhere.
type elsewhere struct{ net.Listener }

func (elsewhere) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv6unspecified, Port: 7422} }
