package hub_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// needFiles skips a test that opens more files than the process may.
func needFiles(t *testing.T, n uint64) {
	t.Helper()
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		t.Fatal(err)
	}
	if l.Cur < n {
		t.Skipf("needs %d open files, the limit is %d; raise it with ulimit -n", n, l.Cur)
	}
}

// secondPeer is a client that comes from 127.0.0.2.
func secondPeer(t *testing.T, h *hubtest.Hub, token string) caller {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+h.GRPCAddr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext(ctx, "tcp", addr)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return caller{memsvcv1.NewMemoryServiceClient(conn), memsvcv1.NewAdminServiceClient(conn), token}
}

// TestOnePeerDoesNotShutOthersOut has one peer open as many connections as the port
// takes at all, on both APIs, and say no more on them than it takes to keep them: another
// peer still commits, and what the hub holds of the first stays small.
func TestOnePeerDoesNotShutOthersOut(t *testing.T) {
	const many = 10_000
	needFiles(t, 15_000)
	for _, port := range []string{"grpc", "http"} {
		t.Run(port, func(t *testing.T) {
			h := hubtest.Start(t, hubtest.Options{Config: func(c *hub.Config) { c.MaxConnections, c.MaxPerPeer = many, 2500 }})
			token := h.Token("acme", "app", "writer")
			addr := map[string]string{"grpc": h.GRPCAddr, "http": h.HTTPAddr}[port]
			say := map[string]string{"grpc": greeting, "http": "HEAD /openapi.json HTTP/1.1\r\nHost: " + addr + "\r\n\r\n"}[port]
			before := heap()
			conns := make([]net.Conn, many)
			var wg sync.WaitGroup
			for part := range 10 {
				wg.Go(func() {
					for i := part; i < many; i += 10 {
						c, err := net.Dial("tcp", addr)
						if err != nil {
							t.Error(err)
							return
						}
						conns[i] = c
						_, _ = io.WriteString(c, say) // the hub may have hung up already
					}
				})
			}
			wg.Wait()
			defer func() {
				for _, c := range conns {
					if c != nil {
						_ = c.Close()
					}
				}
			}()
			hubtest.Eventually(t, patience, "the peer's connections over its bound are closed", func() bool {
				return strings.Contains(metricsText(t, h), `memsvc_connections_refused_total{bound="peer",port="`+port+`"} 7500`)
			})
			grown := heap() - before
			t.Logf("%d connections, 2500 of them held: %d MiB", many, grown>>20)
			if grown > 300<<20 {
				t.Errorf("the connections take %d MiB", grown>>20)
			}
			c := secondPeer(t, h, token)
			c.mustCommit(t, put("a.md", "still here"))
			web := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext}}
			res, err := web.Get("http://" + h.HTTPAddr + "/openapi.json")
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			web.CloseIdleConnections()
		})
	}
}

// TestRoomComesBack counts a peer's connections down again: as many as were closed
// may be opened anew, and the bound holds on.
func TestRoomComesBack(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{Config: func(c *hub.Config) { c.MaxPerPeer = 3 }})
	token := h.Token("acme", "app", "writer")
	other := secondPeer(t, h, token)
	other.mustCommit(t, put("a.md", "first"))
	for round := range 5 {
		conns := make([]net.Conn, 0, 3)
		for range 3 {
			c, err := net.Dial("tcp", h.GRPCAddr)
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
			if _, err := io.WriteString(c, greeting); err != nil {
				t.Fatal(err)
			}
		}
		hubtest.Eventually(t, patience, "three connections and the other peer's are open", func() bool {
			return strings.Contains(metricsText(t, h), `memsvc_connections{port="grpc"} 4`)
		})
		over, err := net.Dial("tcp", h.GRPCAddr)
		if err != nil {
			t.Fatal(err)
		}
		// The HTTP/2 server speaks first: what was taken gets bytes, what was not an end.
		if err := over.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if n, err := over.Read(make([]byte, 64)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("round %d: the fourth connection was taken: %d bytes, %v", round, n, err)
		}
		_ = over.Close()
		other.mustCommit(t, put("a.md", strings.Repeat("x", round+1)))
		for _, c := range conns {
			_ = c.Close()
		}
		hubtest.Eventually(t, patience, "their room is free", func() bool {
			return strings.Contains(metricsText(t, h), `memsvc_connections{port="grpc"} 1`)
		})
	}
}

// TestSilentConnectionsAreClosed closes connections that bring no credential in time,
// those that only ask for health too, and keeps those that brought one.
func TestSilentConnectionsAreClosed(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{Deps: func(d *hub.Deps) { d.LoginWithin = 300 * time.Millisecond }})
	token := h.Token("acme", "app", "writer")
	good := as(t, h, token)
	// On a busy machine even a good client may come too late with its credential, and comes
	// again; what has brought one is not touched.
	hubtest.Eventually(t, patience, "the good one is in", func() bool {
		_, err := good.GetProject(good.ctx(t), &memsvcv1.GetProjectRequest{Name: project})
		return err == nil
	})
	stream := good.watch(t, &memsvcv1.WatchedProject{Project: project})
	late := closedAtLogin(t, h)

	raw, err := net.Dial("tcp", h.GRPCAddr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	// With that the connection is a whole one of HTTP/2.
	if _, err := io.WriteString(raw, greeting); err != nil {
		t.Fatal(err)
	}
	if err := raw.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	// If the hub had no time to read the greeting, its end is a reset.
	if _, err := io.Copy(io.Discard, raw); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a silent connection ended with %v, want it closed", err)
	}

	watch, err := healthv1.NewHealthClient(dial(t, h)).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	for err == nil {
		_, err = watch.Recv()
	}
	bad := as(t, h, "msv_"+strings.Repeat("0", 49))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+bad.token)
	if _, err := bad.GetProject(ctx, &memsvcv1.GetProjectRequest{Name: project}); err == nil {
		t.Error("a token that never was is good")
	}
	hubtest.Eventually(t, patience, "three were closed", func() bool { return closedAtLogin(t, h) >= late+3 })
	good.mustCommit(t, put("a.md", "x"))
	if got := stream.commit(t); got.GetRevision() != 1 {
		t.Errorf("the watch that was open got %d", got.GetRevision())
	}
}

// closedAtLogin is how many connections brought no credential in time.
func closedAtLogin(t *testing.T, h *hubtest.Hub) (n int) {
	t.Helper()
	for line := range strings.Lines(metricsText(t, h)) {
		_, _ = fmt.Sscanf(line, `memsvc_connections_refused_total{bound="login",port="grpc"} %d`, &n)
	}
	return n
}

// TestTenThousandWatches opens ten thousand watches on ten connections, commits, and
// has each of them told. It prints the memory of one, both ends together.
func TestTenThousandWatches(t *testing.T) {
	if testing.Short() {
		t.Skip("opens 10,000 streams, which takes seconds")
	}
	const watches, connections = 10_000, 10
	h := hubtest.Start(t, hubtest.Options{SQLite: true})
	token := h.Token("acme", "app", "writer")
	as(t, h, token).mustCommit(t, put("a.md", "first"))
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token))
	defer cancel()
	conns := make([]memsvcv1.MemoryServiceClient, connections)
	for i := range conns {
		conns[i] = memsvcv1.NewMemoryServiceClient(dial(t, h))
		// The connection stands before thousands want something of it, who on a busy machine
		// would keep it from being greeted in time.
		if _, err := conns[i].GetProject(ctx, &memsvcv1.GetProjectRequest{Name: project}, grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
	}
	before := heap()
	opened, told := make(chan error, watches), make(chan error, watches)
	for i := range watches {
		go func() {
			stream, err := conns[i%connections].WatchMemories(ctx, &memsvcv1.WatchMemoriesRequest{Projects: []*memsvcv1.WatchedProject{{Project: project, Start: memsvcv1.WatchStart_WATCH_START_HEAD}}})
			if err == nil {
				_, err = stream.Recv() // a bookmark: the watch is open
			}
			opened <- err
			for err == nil {
				var m *memsvcv1.WatchMemoriesResponse
				if m, err = stream.Recv(); m.GetCommit() != nil {
					break
				}
			}
			told <- err
			<-ctx.Done()
		}()
	}
	for range watches {
		if err := <-opened; err != nil {
			t.Fatal(err)
		}
	}
	each := (heap() - before) / watches
	t.Logf("%d watches on %d connections: %.1f KiB each, both ends", watches, connections, float64(each)/1024)
	if each > 60<<10 {
		t.Errorf("a watch takes %d KiB", each>>10)
	}
	begin := time.Now()
	as(t, h, token).mustCommit(t, put("a.md", "second"))
	for range watches {
		if err := <-told; err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("all were told within %v", time.Since(begin).Round(time.Millisecond))
}
