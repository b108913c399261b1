package hub_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
)

// startIssuer builds and starts the OpenID provider of internal/tools/issuer, which is
// an implementation that is not ours, and returns its address.
func startIssuer(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "issuer")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, ".")
	build.Dir = filepath.Join("..", "tools", "issuer")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the issuer: %v\n%s", err, out)
	}
	cmd := exec.Command(program)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil { // it ends with its input
			t.Errorf("end of the issuer: %v", err)
		}
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("the issuer says nothing: %v", lines.Err())
	}
	return lines.Text()
}

// askIssuer posts a form and returns the access token in the answer, if any.
func askIssuer(t *testing.T, to string, form url.Values) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("issuer: %s", res.Status)
	}
	var answer struct {
		Token string `json:"access_token"`
	}
	if len(form) > 0 {
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || answer.Token == "" {
			t.Fatalf("issuer: no token: %v", err)
		}
	}
	return answer.Token
}

// TestRealIssuer speaks with an OpenID provider as others build them: discovery, its
// tokens, its key rotation, and what must be refused.
func TestRealIssuer(t *testing.T) {
	issuer := startIssuer(t)
	mint := func(subject string, scopes ...string) string {
		return askIssuer(t, issuer+"/oauth/token", url.Values{
			"grant_type": {"client_credentials"}, "client_id": {subject}, "client_secret": {"x"}, "scope": {strings.Join(scopes, " ")},
		})
	}
	const issuerText = `
issuers:
  - name: company
    issuer: %s
    audience: memsvc
    clock-skew: 1s
    rules:
      - when: {sub: "system:serviceaccount:agents:*"}
        team: acme
        project: app
        role: writer
      - when: {repository: "Acme/*"}
        team: acme
        project: "ci~{repository}"
        role: writer
`
	h, _, clock := believing(t, fmt.Sprintf(issuerText, issuer), nil)
	h.Token("acme", "ci~acme~pay", "reader") // makes the project
	get := func(h *hubtest.Hub, token, name string) error {
		c := as(t, h, token)
		_, err := c.GetProject(c.ctx(t), &memsvcv1.GetProjectRequest{Name: name})
		return err
	}
	pod := mint("system:serviceaccount:agents:one", "aud:memsvc", "aud:other")
	as(t, h, pod).mustCommit(t, put("a.md", "from the pod"))
	if err := get(h, mint("job-7", "aud:memsvc", "repository:Acme/Pay"), "teams/acme/projects/ci~acme~pay"); err != nil {
		t.Errorf("CI job: %v", err)
	}
	wantReason(t, get(h, mint("job-8", "aud:memsvc", "repository:Acme/Other"), "teams/acme/projects/ci~acme~pay"), memory.ReasonNotFound)
	wantReason(t, get(h, mint("job-9", "aud:memsvc"), project), memory.ReasonPermissionDenied)
	wantReason(t, get(h, mint("system:serviceaccount:agents:one", "aud:other"), project), memory.ReasonUnauthenticated)

	// A hub that believes another issuer believes nothing of this one.
	elsewhere, _, _ := believing(t, fmt.Sprintf(issuerText, startIssuer(t)), nil)
	wantReason(t, get(elsewhere, pod, project), memory.ReasonUnauthenticated)

	// A watch under a short token ends with it.
	short := as(t, h, mint("system:serviceaccount:agents:two", "aud:memsvc", "life:10m"))
	w := short.watch(t, &memsvcv1.WatchedProject{Project: project, Cursor: &memsvcv1.Cursor{}})
	clock.move(11 * time.Minute)
	for {
		if _, err := w.stream.Recv(); err != nil {
			wantReason(t, err, memory.ReasonUnauthenticated)
			break
		}
	}
	_, err := short.commit(t, put("a.md", "too late"))
	wantReason(t, err, memory.ReasonUnauthenticated)

	// The issuer rotates its key: the next token is taken as soon as the hub may ask
	// again, and until then the answer is one that clients try again.
	askIssuer(t, issuer+"/rotate", nil)
	next := mint("system:serviceaccount:agents:one", "aud:memsvc", "life:1h")
	hubtest.Eventually(t, patience, "the new key is known", func() bool {
		err := get(h, next, project)
		if err != nil {
			wantReason(t, err, memory.ReasonUnavailable)
		}
		return err == nil
	})
}
