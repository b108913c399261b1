package hub_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hub/service"
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
	hubtest.Eventually(t, patience, "the cause in the log", func() bool {
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

// auditOf lists the events of one action as lines, the newest first.
func auditOf(t *testing.T, h *hubtest.Hub, action string) (out []string) {
	t.Helper()
	events, _, err := h.Service().AuditEvents(t.Context(), hubtest.Admin(), "", service.Page{Size: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Action == action {
			out = append(out, fmt.Sprint(e.Team, " ", e.Principal, " ", e.Subject, " ", e.Detail, " ", e.Count))
		}
	}
	return out
}

// TestRefusalsAtTheEdgeAreOnRecord records known identities that are refused before their
// call is looked at, folded, over gRPC and REST, for the admins of their team. Who is
// nobody makes no event, only a line in the log and a number.
func TestRefusalsAtTheEdgeAreOnRecord(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{Config: func(c *hub.Config) { c.Rate, c.RateBurst = 0.001, 2 }})
	get := func(token string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.HTTPAddr+"/v1/"+project, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode
	}
	fast := as(t, h, h.Token("acme", "app", "reader"))
	limited := 0
	for range 20 {
		if _, err := fast.GetProject(fast.ctx(t), &memsvcv1.GetProjectRequest{Name: project}); err != nil {
			wantReason(t, err, memory.ReasonRateLimited)
			limited++
		}
	}
	if code := get(fast.token); code != http.StatusTooManyRequests {
		t.Fatalf("REST past the rate: %d", code)
	}
	revoked, id := h.TokenWithID("acme", "app", "writer")
	if err := h.Service().RevokeToken(t.Context(), hubtest.Admin(), id); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{revoked, revoked, "", "none", "msv_none"} {
		if code := get(text); code != http.StatusUnauthorized {
			t.Fatalf("%q: %d", text, code)
		}
	}
	want := []string{
		"acme token:acme-app-writer MemoryService/GetProject UNAUTHENTICATED 2",
		fmt.Sprint("acme token:acme-app-reader MemoryService/GetProject RATE_LIMITED ", limited+1),
	}
	if d := cmp.Diff(want, auditOf(t, h, "call.refused")); d != "" {
		t.Errorf("on record (-want +got):\n%s", d)
	}
	if metrics := metricsText(t, h); !strings.Contains(metrics, `memsvc_rpc_calls_total{code="Unauthenticated",method="MemoryService/GetProject"} 5`) {
		t.Errorf("no number of calls without a credential in the metrics")
	}
}

// TestRefusalsSayWhere names file, line, rule and fingerprint of what was refused, and no
// name of a file that is a secret.
func TestRefusalsSayWhere(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	c := as(t, h, h.Token("acme", "app", "writer"))
	secret := fakeSecret(1)
	_, err := c.commit(t, put("project_x.md", "one\ntoken = "+secret))
	wantReason(t, err, memory.ReasonSecretDetected)
	_, err = c.commit(t, put("project_"+secret+".md", "one"))
	wantReason(t, err, memory.ReasonSecretDetected)
	events := auditOf(t, h, "commit.refused")
	if len(events) != 2 {
		t.Fatalf("%q: want two events", events)
	}
	if !regexp.MustCompile(`SECRET_DETECTED; project_x\.md:7 github-pat [0-9a-f]{64}`).MatchString(events[1]) {
		t.Errorf("%q: want file, line, rule and fingerprint", events[1])
	}
	if !strings.Contains(events[0], "github-pat") || strings.Contains(events[0], secret) {
		t.Errorf("%q: want the rule without the name", events[0])
	}
}

// TestUnknownMethodsAreOne counts and logs every method that the contract does not have as
// one: nobody makes metrics of names of their own, with a credential or without.
func TestUnknownMethodsAreOne(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	c := as(t, h, h.Token("acme", "app", "reader"))
	conn := dial(t, h)
	for i := range 20 {
		method := fmt.Sprintf("/walrus.v1.Walrus/Walrus%d", i)
		if err := conn.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{}); status.Code(err) != codes.Unauthenticated {
			t.Fatalf("without a credential: %v", err)
		}
		if err := conn.Invoke(c.ctx(t), method, &emptypb.Empty{}, &emptypb.Empty{}); status.Code(err) != codes.Unimplemented {
			t.Fatalf("with one: %v", err)
		}
	}
	metrics := metricsText(t, h)
	for _, want := range []string{`memsvc_rpc_calls_total{code="Unauthenticated",method="unknown"} 20`, `memsvc_rpc_calls_total{code="Unimplemented",method="unknown"} 20`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no metric %s", want)
		}
	}
	for where, text := range map[string]string{"metrics": metrics, "log": h.Log.String()} {
		if n := strings.Count(strings.ToLower(text), "walrus"); n > 0 {
			t.Errorf("the %s repeat names of methods %d times", where, n)
		}
	}
}
