package hub_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
)

// TestRESTPeerIsLogged names, of a call over REST that brings no credential, the address
// that it came from; what a caller says of itself is not believed.
func TestRESTPeerIsLogged(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	var from []string
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			from = append(from, c.LocalAddr().String())
		}
		return c, err
	}}}
	for _, path := range []string{"/v1/teams", "/v1/" + project + "/memories/a.md"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.HTTPAddr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer msv_none")
		req.Header.Set("memsvc-peer", "192.0.2.1:1")
		req.Header.Set("Grpc-Metadata-memsvc-peer", "192.0.2.1:1")
		res, err := web.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusUnauthorized {
			t.Fatalf("%s: %s, %v", path, res.Status, err)
		}
	}
	peers := regexp.MustCompile(`code=Unauthenticated.* peer=(\S+)`).FindAllStringSubmatch(h.Log.String(), -1)
	if len(peers) != 2 || len(from) != 2 {
		t.Fatalf("%d refusals with a peer in the log, want 2:\n%s", len(peers), h.Log.String())
	}
	for i, p := range peers {
		if p[1] != from[i] {
			t.Errorf("peer %q, want %q", p[1], from[i])
		}
	}
}

// brokenPurge is a store that fails to purge.
type brokenPurge struct{ store.Backend }

func (brokenPurge) PurgeProject(context.Context, memory.ProjectKey, ...store.AuditEvent) error {
	return errors.New("the disk is on fire")
}

// TestInternalErrorIsFound gives whoever met an internal error on the command line the id
// under which the hub's log has its cause.
func TestInternalErrorIsFound(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{Deps: func(d *hub.Deps) { d.Backend = brokenPurge{d.Backend} }})
	out, code := memsvc(t, h, h.TokenFile("acme", "app", "admin"), "project", "purge", "--yes")
	id := regexp.MustCompile(`the hub's log has the cause under the request id ([0-9a-f-]{36})\n$`).FindStringSubmatch(out)
	if code != 1 || id == nil {
		t.Fatalf("exit %d, %q: no request id", code, out)
	}
	hubtest.Eventually(t, 20*time.Second, "the cause in the log", func() bool {
		return regexp.MustCompile(`request_id=` + id[1] + ` .*on fire`).MatchString(h.Log.String())
	})
}

// TestImportNamesMachineAndClient labels the commits of an import as an agent labels its.
func TestImportNamesMachineAndClient(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.md"), []byte("a note\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := memsvc(t, h, h.TokenFile("acme", "app", "writer"), "import", "--markdown", dir); code != 0 {
		t.Fatalf("exit %d, %s", code, out)
	}
	c := as(t, h, h.AdminToken)
	res, err := c.ListCommits(c.ctx(t), &memsvcv1.ListCommitsRequest{Parent: project})
	if err != nil || len(res.GetCommits()) != 1 {
		t.Fatalf("%v, %v: want one commit", res, err)
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	by := res.GetCommits()[0].GetAuthor()
	if !strings.HasPrefix(by.GetClient(), "memsvc/") || by.GetMachine() != name && by.GetMachine() != "" {
		t.Errorf("author %v, want client memsvc/… on %s", by, name)
	}
}
