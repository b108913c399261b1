package hub_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/porttest"
)

// TestDataReplacedUnderARunningHub runs the program, puts a copy of its database into
// its place, and expects it to end by itself, with the reason and exit code 1.
func TestDataReplacedUnderARunningHub(t *testing.T) {
	dir := t.TempDir()
	var log hubtest.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	code := make(chan int, 1)
	addr := porttest.Free(t) // nobody else's once the hub is gone
	go func() {
		var out bytes.Buffer
		code <- hub.Main(ctx, []string{"serve", "--data-dir", dir, "--grpc-addr=" + addr, "--http-addr=127.0.0.1:0", "--ops-addr=127.0.0.1:0"}, &out, &log)
	}()
	hubtest.Eventually(t, patience, "the hub listens", func() bool { return strings.Contains(log.String(), "msg=listening grpc="+addr+" ") })

	live := filepath.Join(dir, "hub.db")
	text, err := os.ReadFile(live)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(live+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(live+".new", live); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-code:
		if got != 1 {
			t.Errorf("exit code %d, want 1", got)
		}
	case <-time.After(patience):
		t.Fatal("the hub went on")
	}
	for _, want := range []string{"level=ERROR", "data files replaced under the running hub", "memsvc: " + live + " is another file now", "restore-backup"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("not told: %q in\n%s", want, log.String())
		}
	}
	if n := strings.Count(log.String(), "memsvc: "); n != 1 {
		t.Errorf("told in %d lines, want 1", n)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		_ = c.Close()
		t.Error("the port is still open")
	}
	if got, err := os.ReadFile(live); err != nil || !bytes.Equal(got, text) {
		t.Errorf("what was put there was changed (%v)", err)
	}
}
