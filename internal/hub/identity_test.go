package hub_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hub/authn/authntest"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
)

// believing starts a hub with an identity file of the given text and a project.
func believing(t *testing.T, text string, change func(*hub.Config)) (h *hubtest.Hub, file string, clock *shifted) {
	t.Helper()
	clock = new(shifted)
	file = filepath.Join(t.TempDir(), "identity.yaml")
	writeFile(t, file, text)
	h = hubtest.Start(t, hubtest.Options{
		Now: clock.Now,
		Config: func(c *hub.Config) {
			c.IdentityFile = file
			if change != nil {
				change(c)
			}
		},
		Deps: func(d *hub.Deps) {
			d.IdentityCheck, d.AuthRecheck = 10*time.Millisecond, 10*time.Millisecond
		},
	})
	h.Token("acme", "app", "writer") // makes team and project
	return h, file, clock
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func oneIssuer(url, role string) string {
	return fmt.Sprintf(`
issuers:
  - name: cluster
    issuer: %s
    audience: memsvc
    clock-skew: 1s
    rules:
      - when: {sub: "system:serviceaccount:agents:*"}
        team: acme
        project: app
        role: %s
`, url, role)
}

// TestJWTAtTheBorder lets a JWT act in both APIs under its own name, on record and
// within its role, and shows its bytes nowhere.
func TestJWTAtTheBorder(t *testing.T) {
	i := authntest.New(t, false)
	h, _, _ := believing(t, oneIssuer(i.URL, "writer"), nil)
	text := i.Sign(i.Claims(time.Now(), nil))
	c := as(t, h, text)
	c.mustCommit(t, put("a.md", "one"))
	got, err := c.ListCommits(c.ctx(t), &memsvcv1.ListCommitsRequest{Parent: project})
	if err != nil {
		t.Fatal(err)
	}
	const who = "oidc:cluster:system:serviceaccount:agents:one"
	if a := got.GetCommits()[0].GetAuthor().GetPrincipal(); a != who {
		t.Errorf("author %q", a)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.HTTPAddr+"/v1/"+project+"/memories/a.md", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+text)
	req.Header.Set("X-Request-Id", text[:60]) // in the wrong header
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("REST: %s, %v", res.Status, err)
	}
	// Outside its reach it learns nothing, and that is on record.
	_, err = c.GetProject(c.ctx(t), &memsvcv1.GetProjectRequest{Name: "teams/rival/projects/plans"})
	wantReason(t, err, memory.ReasonNotFound)
	_, err = c.CreateToken(c.ctx(t), &memsvcv1.CreateTokenRequest{TeamId: "acme", DisplayName: "n", Role: memsvcv1.Role_ROLE_ADMIN})
	wantReason(t, err, memory.ReasonPermissionDenied)
	admin := as(t, h, h.AdminToken)
	events, err := admin.ListAuditEvents(admin.ctx(t), &memsvcv1.ListAuditEventsRequest{TeamId: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, e := range events.GetEvents() {
		found = found || e.GetAction() == "token.create.refused" && e.GetPrincipal() == who
	}
	if !found {
		t.Errorf("the refusal is not on record: %v", events)
	}
	for name, want := range map[string]struct {
		claims map[string]any
		reason memory.Reason
		log    string
	}{
		"audience": {map[string]any{"aud": "other"}, memory.ReasonUnauthenticated, "why=audience"},
		"expired":  {map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}, memory.ReasonUnauthenticated, "why=expired"},
		"no rule":  {map[string]any{"sub": "system:serviceaccount:other:one"}, memory.ReasonPermissionDenied, "principal=oidc:cluster:system:serviceaccount:other:one"},
	} {
		refused := i.Sign(i.Claims(time.Now(), want.claims))
		c := as(t, h, refused)
		_, err := c.GetProject(c.ctx(t), &memsvcv1.GetProjectRequest{Name: project})
		wantReason(t, err, want.reason)
		if !strings.Contains(h.Log.String(), want.log) {
			t.Errorf("%s: the log does not say %q", name, want.log)
		}
		if strings.Contains(err.Error(), refused[10:40]) {
			t.Errorf("%s: the error shows the token", name)
		}
	}
	// Whom no rule knows is on record for the hub's admins; who is nobody is not.
	events, err = admin.ListAuditEvents(admin.ctx(t), &memsvcv1.ListAuditEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for _, e := range events.GetEvents() {
		if e.GetAction() == "call.refused" {
			calls = append(calls, e.GetTeamId()+" "+e.GetPrincipal()+" "+e.GetSubject()+" "+e.GetDetail())
		}
	}
	if want := " oidc:cluster:system:serviceaccount:other:one MemoryService/GetProject PERMISSION_DENIED"; len(calls) != 1 || calls[0] != want {
		t.Errorf("calls refused, on record: %q, want %q", calls, want)
	}
	_, metrics := fetch(t, "http://"+h.OpsAddr+"/metrics")
	for _, part := range strings.Split(text, ".") {
		for where, all := range map[string]string{"log": h.Log.String(), "metrics": metrics} {
			if strings.Contains(all, part[:20]) {
				t.Errorf("the %s show a part of the token", where)
			}
		}
	}
	for _, want := range []string{`memsvc_oidc_key_fetches_total{issuer="cluster",outcome="ok"} 1`, `memsvc_foreign_credentials_refused_total{why="audience"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no metric %s", want)
		}
	}
}

func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestJWTStreamEnds ends a watch when its JWT has expired, and when the identity file
// takes its role away; a file that cannot be used changes nothing.
func TestJWTStreamEnds(t *testing.T) {
	i := authntest.New(t, false)
	h, file, clock := believing(t, oneIssuer(i.URL, "writer"), nil)
	watched := &memsvcv1.WatchedProject{Project: project, Cursor: &memsvcv1.Cursor{}}
	ended := func(w *watcher) {
		t.Helper()
		for {
			if _, err := w.stream.Recv(); err != nil {
				wantReason(t, err, memory.ReasonUnauthenticated)
				return
			}
		}
	}
	lasting := as(t, h, i.Sign(i.Claims(time.Now(), nil)))
	open := lasting.watch(t, watched)
	brief := as(t, h, i.Sign(i.Claims(time.Now(), map[string]any{"exp": time.Now().Add(20 * time.Minute).Unix()}))).watch(t, watched)
	clock.move(10 * time.Minute)
	lasting.mustCommit(t, put("a.md", "before the expiry"))
	open.commit(t)
	brief.commit(t)
	clock.move(11 * time.Minute)
	ended(brief)
	writeFile(t, file, "issuers: [{nam: x}]")
	hubtest.Eventually(t, patience, "the broken file is told", func() bool { return strings.Contains(h.Log.String(), "what held holds on") })
	lasting.mustCommit(t, put("a.md", "still"))
	open.commit(t)
	writeFile(t, file, oneIssuer(i.URL, "reader"))
	ended(open)
	_, err := lasting.commit(t, put("a.md", "no more"))
	wantReason(t, err, memory.ReasonPermissionDenied)
}

// TestIssuerAwayAtTheBorder answers UNAVAILABLE, which clients try again, until keys
// have come.
func TestIssuerAwayAtTheBorder(t *testing.T) {
	i := authntest.New(t, false)
	i.Down(true)
	h, _, _ := believing(t, oneIssuer(i.URL, "writer"), nil)
	c := as(t, h, i.Sign(i.Claims(time.Now(), nil)))
	_, err := c.GetProject(c.ctx(t), &memsvcv1.GetProjectRequest{Name: project})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("error %v", err)
	}
	other := as(t, h, h.Token("acme", "app", "reader"))
	if _, err := other.GetProject(other.ctx(t), &memsvcv1.GetProjectRequest{Name: project}); err != nil {
		t.Errorf("a token of the hub's own: %v", err)
	}
}

// TestClientCertificateActs lets a verified certificate alone act in both APIs, a token
// beside it decide, and nobody else pretend to have one.
func TestClientCertificateActs(t *testing.T) {
	ca := newAuthority(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	writeFile(t, at("ca.pem"), string(ca.pem))
	ca.issue(t, 10, at("cert.pem"), at("key.pem"))
	pair := ca.issue(t, 99, at("client.pem"), at("client-key.pem")) // CN 127.0.0.1
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	const rules = `
client-certificates:
  rules:
    - when: {cn: "127.0.0.1"}
      team: acme
      project: app
      role: writer
    - when: {cn: "test authority"}
      team: acme
      role: admin
`
	h, file, _ := believing(t, rules, func(c *hub.Config) {
		c.TLSCert, c.TLSKey, c.TLSClientCA = at("cert.pem"), at("key.pem"), at("ca.pem")
	})
	cfg := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}
	conn, err := grpc.NewClient("passthrough:///"+h.GRPCAddr, grpc.WithTransportCredentials(credentials.NewTLS(cfg)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	api := memsvcv1.NewMemoryServiceClient(conn)
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	if _, err := api.CommitChanges(ctx, &memsvcv1.CommitChangesRequest{Parent: project, Changes: []*memsvcv1.Change{put("a.md", "x")}}); err != nil {
		t.Fatalf("gRPC with a certificate alone: %v", err)
	}
	got, err := api.ListCommits(ctx, &memsvcv1.ListCommitsRequest{Parent: project})
	if err != nil || got.GetCommits()[0].GetAuthor().GetPrincipal() != "cert:127.0.0.1" {
		t.Errorf("author %v, %v", got, err)
	}
	reader := metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+h.Token("acme", "app", "reader"))
	_, err = api.CommitChanges(reader, &memsvcv1.CommitChangesRequest{Parent: project, Changes: []*memsvcv1.Change{put("a.md", "y")}})
	wantReason(t, err, memory.ReasonPermissionDenied)
	_, err = api.GetProject(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer msv_x"), &memsvcv1.GetProjectRequest{Name: project})
	wantReason(t, err, memory.ReasonUnauthenticated)

	web := &http.Client{Transport: &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true}}
	for _, path := range []string{"/v1/" + project + "/memories/a.md", "/v1/" + project} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+h.HTTPAddr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := web.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("REST %s with a certificate alone: %s, %v", path, res.Status, err)
		}
	}

	// The way from REST to gRPC cannot be walked from outside.
	forged := base64.StdEncoding.EncodeToString(ca.cert.Raw) // "test authority" would be an admin
	pretending := metadata.AppendToOutgoingContext(ctx, "memsvc-client-cert-bin", string(ca.cert.Raw))
	if _, err = api.CommitChanges(pretending, &memsvcv1.CommitChangesRequest{Parent: project, Changes: []*memsvcv1.Change{put("b.md", "x")}}); err != nil {
		t.Fatal(err)
	}
	for n, header := range []string{"Memsvc-Client-Cert-Bin", "Grpc-Metadata-Memsvc-Client-Cert-Bin"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, fmt.Sprintf("https://%s/v1/%s/memories/c%d.md", h.HTTPAddr, project, n), bytes.NewReader(note("x")))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "text/markdown")
		req.Header.Set(header, forged)
		res, err := web.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK && res.StatusCode != http.StatusCreated {
			t.Errorf("%s: %s %s, %v", header, res.Status, text, err)
		}
	}
	web.CloseIdleConnections()
	if got, err = api.ListCommits(ctx, &memsvcv1.ListCommitsRequest{Parent: project}); err != nil || len(got.GetCommits()) != 4 {
		t.Errorf("commits %v, %v", got, err)
	}
	for _, c := range got.GetCommits() {
		if who := c.GetAuthor().GetPrincipal(); who != "cert:127.0.0.1" {
			t.Errorf("a forged certificate acts as %s", who)
		}
	}

	// Without a rule the certificate is known and may do nothing.
	writeFile(t, file, strings.Replace(rules, "127.0.0.1", "other", 1))
	hubtest.Eventually(t, patience, "the rule is gone", func() bool {
		_, err := api.GetProject(ctx, &memsvcv1.GetProjectRequest{Name: project})
		return status.Code(err) == codes.PermissionDenied
	})
}

// TestIdentityFileRefused starts no hub whose identity file cannot work.
func TestIdentityFileRefused(t *testing.T) {
	good := oneIssuer("https://issuer.example", "writer")
	for want, text := range map[string]string{
		"nothing would be believed":               "",
		`unknown key "nam"; did you mean "name"?`: "issuers: [{nam: x}]",
		"already defined":                         good + "\nissuers: []\n",
		"keep one":                                good + "\n---\nissuers: []\n",
		"audience: name":                          strings.Replace(good, "audience: memsvc", "audience: []", 1),
		"use reader":                              strings.Replace(good, "writer", "owner", 1),
		"https":                                   strings.Replace(good, "https://", "http://", 1),
		"needs --tls-client-ca":                   "client-certificates: {rules: [{when: {cn: x}, team: t, role: reader}]}",
		"over 1048576":                            "# " + strings.Repeat("x", 1<<20),
	} {
		file := filepath.Join(t.TempDir(), "identity.yaml")
		writeFile(t, file, text)
		dir := filepath.Join(t.TempDir(), "data")
		_, err := hub.Start(t.Context(), hub.Config{
			DataDir: dir, GRPCAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", OpsAddr: "127.0.0.1:0", IdentityFile: file,
			Retention: time.Hour, AuditRetention: time.Hour, MaxProjectFiles: 1, MaxProjectBytes: 1, MaxConnections: 1, MaxWatchers: 1, RateBurst: 1,
		}, hub.Deps{Logger: quiet()})
		var usage *hub.ConfigError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--identity-file "+file) {
			t.Errorf("want %q, got %v", want, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: a data directory was made", want)
		}
	}
}

// FuzzIdentityFile reads anything without falling, and takes nothing that gives a role
// to everybody.
func FuzzIdentityFile(f *testing.F) {
	f.Add(oneIssuer("https://issuer.example", "writer"))
	f.Add("client-certificates: {rules: [{when: {cn: x}, team: t, role: reader}]}")
	f.Add("issuers: [{clock-skew: 1h, audience: [[]]}]")
	f.Add("a: &a [*a]")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(dir, "identity.yaml")
		writeFile(t, file, text)
		if err := hub.CheckIdentityFile(file); err == nil && !strings.Contains(text, "when") {
			t.Errorf("taken: %q", text)
		}
	})
}
