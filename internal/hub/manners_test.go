package hub_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/porttest"
)

// TestDrainWarnsOfNothing stops a hub with open watches: that they end is no failure.
func TestDrainWarnsOfNothing(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{Config: func(c *hub.Config) { c.DrainTimeout = patience }})
	c := as(t, h, h.Token("acme", "app", "writer"))
	for range 3 {
		stream, err := c.WatchMemories(c.ctx(t), &memsvcv1.WatchMemoriesRequest{Projects: []*memsvcv1.WatchedProject{{Project: project}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	h.Stop()
	log := h.Log.String()
	if n := strings.Count(log, "code=Unavailable"); n != 3 {
		t.Errorf("%d ended watches in the log, want 3", n)
	}
	for line := range strings.Lines(log) {
		// Of a machine that has other work the hub may say that its store was slow.
		if !strings.Contains(line, "store operation was slow") && (strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR")) {
			t.Errorf("a graceful stop warns: %s", line)
		}
	}
}

// TestAddressTakenMakesNothing starts a hub whose last address is another's: the data
// directory is not made, and the first two addresses are free again.
func TestAddressTakenMakesNothing(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	first := porttest.Free(t)
	dir := filepath.Join(t.TempDir(), "data")
	_, err = hub.Start(context.Background(), testConfig(hub.Config{DataDir: dir, GRPCAddr: first, HTTPAddr: "127.0.0.1:0", OpsAddr: taken.Addr().String()}), hub.Deps{Logger: quiet()})
	if err == nil || !strings.HasPrefix(err.Error(), "--ops-addr "+taken.Addr().String()) {
		t.Fatalf("error %v", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data directory was made (%v)", err)
	}
	again, err := net.Listen("tcp", first)
	if err != nil {
		t.Fatalf("the gRPC address is still held: %v", err)
	}
	_ = again.Close()
}

func testConfig(c hub.Config) hub.Config {
	c.Retention, c.AuditRetention, c.MaxProjectFiles, c.MaxProjectBytes = 24*60*60*1e9, 24*60*60*1e9, 1, 1
	c.MaxConnections, c.MaxWatchers, c.RateBurst = 1, 1, 1
	return c
}

// TestSnippetsHaveNoFrontmatter searches for words of name, description and body.
func TestSnippetsHaveNoFrontmatter(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	c := as(t, h, h.Token("acme", "app", "writer"))
	whole := "---\nname: Freeze\ndescription: when releases stop\ntype: project\n---\nNothing is merged in the last week of March.\n"
	bare := "---\nname: Bare\ndescription: only a hint about lighthouses\ntype: project\n---\n"
	broken := "---\nname: x: y\ntype: project\n---\nUnder a broken head: pelicans.\n"
	open := "---\nnever closed: herons.\n"
	for path, text := range map[string]string{"whole.md": whole, "bare.md": bare, "broken.md": broken, "open.md": open} {
		c.mustCommit(t, &memsvcv1.Change{Path: path, Action: &memsvcv1.Change_Put{Put: &memsvcv1.PutAction{Content: []byte(text)}}})
	}
	for _, tc := range []struct{ query, want string }{
		{"march", "Nothing is merged in the last week of March."},
		{"releases", "Nothing is merged in the last week of March."},
		{"lighthouses", "only a hint about lighthouses"},
		{"pelicans", "Under a broken head: pelicans."},
		{"herons", "--- never closed: herons."},
	} {
		res, err := c.SearchMemories(c.ctx(t), &memsvcv1.SearchMemoriesRequest{Parent: project, Query: tc.query})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(res.GetHits()); n != 1 {
			t.Errorf("%s: %d results", tc.query, n)
			continue
		}
		if got := res.GetHits()[0].GetSnippet(); got != tc.want {
			t.Errorf("%s: snippet %q, want %q", tc.query, got, tc.want)
		}
	}
}
