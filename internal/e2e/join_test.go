package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io/fs"
	bigint "math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
)

// selfSigned writes a certificate for 127.0.0.1 that is its own authority, and its key.
func selfSigned(t *testing.T, certFile, keyFile string) {
	t.Helper()
	selfSignedAs(t, "test hub", certFile, keyFile)
}

// selfSignedAs is selfSigned for somebody of that common name, as a server or as a client.
func selfSignedAs(t *testing.T, name, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	tmpl := &x509.Certificate{
		SerialNumber: bigint.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	must(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

// agentWith runs an agent's command with text on standard input.
func agentWith(stdin string, args ...string) (string, error) {
	cmd := programCommand("memsync-agent", args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestJoinOverTLS joins a hub whose certificate no system trusts: the code brings the
// authority along, and everything that is kept is this user's alone. An invitation that
// was revoked, or that names a hub with another certificate, changes nothing.
func TestJoinOverTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key, foreign := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "foreign.pem")
	selfSigned(t, cert, key)
	selfSigned(t, foreign, filepath.Join(dir, "foreign-key.pem"))
	h := hubtest.Start(t, hubtest.Options{Config: func(c *hub.Config) { c.TLSCert, c.TLSKey = cert, key }})
	admin := h.TokenFile("", "", "admin")

	invite := programCommand("memsvc", "invite", "--hub", h.GRPCAddr, "--token-file", admin, "--ca-file", cert, "--team", "acme", "--project", "pay")
	out, err := invite.Output()
	must(t, err)
	code := string(out)
	v, err := client.ParseInvite(code)
	must(t, err)

	state, team := filepath.Join(dir, "state"), filepath.Join(dir, "team")
	fails := func(code, want string) {
		t.Helper()
		out, err := agentWith(code, "join", "-", "--dir", team, "--state-dir", state)
		if err == nil || !strings.Contains(out, want) || !strings.Contains(out, "nothing was changed") || strings.Contains(out, v.Token) {
			t.Errorf("got %v, %s; want a refusal with %q", err, out, want)
		}
		for _, name := range []string{state, team} {
			if _, err := os.Lstat(name); err == nil {
				t.Errorf("%s was made", name)
			}
		}
	}
	other := v
	text, err := os.ReadFile(foreign)
	must(t, err)
	other.CA = string(text)
	code2, err := other.Encode()
	must(t, err)
	fails(code2, "certificate")
	other = v
	other.Token = "msv_" + strings.Repeat("x", 49)
	code2, err = other.Encode()
	must(t, err)
	fails(code2, "expired or revoked")

	text2, err := agentWith(code, "join", "-", "--dir", team, "--state-dir", state)
	if err != nil || !strings.Contains(text2, "joined acme/pay") {
		t.Fatalf("join: %v\n%s", err, text2)
	}
	tokens := 0
	must(t, filepath.WalkDir(state, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", name, info.Mode())
		}
		if strings.HasSuffix(name, ".token") {
			tokens++
		}
		return err
	}))
	if tokens != 1 {
		t.Errorf("%d token files", tokens)
	}
	must(t, os.WriteFile(filepath.Join(team, "x.md"), []byte("x\n"), 0o600))
	if out := command(t, "memsync-agent", "sync", "--state-dir", state); !strings.Contains(out, "acme/pay: in step at revision 1") {
		t.Errorf("sync: %s", out)
	}
}

// TestJoinWhileRunning has a running daemon take a joined project up at once.
func TestJoinWhileRunning(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	a := newMachine(t, "A", h.GRPCAddr, h.TokenFile("acme", "pay", "writer"))
	a.background(t)
	a.write("x.md", note("x", "x"))
	a.settleProcess(t)
	v := client.Invite{Hub: h.GRPCAddr, Project: memory.ProjectKey{Team: "acme", Project: "web"}, Token: h.Token("acme", "web", "writer")}
	code, err := v.Encode()
	must(t, err)
	dir := filepath.Join(t.TempDir(), "team")
	if out, err := agentWith(code, "join", "-", "--dir", dir, "--state-dir", a.state); err != nil {
		t.Fatalf("join: %v\n%s", err, out)
	}
	// Another link that has become bad is no reason not to join.
	spoilt := filepath.Join(t.TempDir(), "team")
	command(t, "memsync-agent", "unlink", "web", "--state-dir", a.state)
	links, err := json.Marshal([]agent.Link{{Hub: h.GRPCAddr, TokenFile: a.link.TokenFile, Team: "acme", Project: "bad", Dir: spoilt}})
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(spoilt, "team"), 0o755))
	must(t, os.WriteFile(filepath.Join(a.state, "links.json"), links, 0o600))
	if out, err := agentWith(code, "join", "-", "--dir", dir, "--state-dir", a.state); err != nil || !strings.Contains(out, "warning: the running daemon took this link, but not all") {
		t.Fatalf("join: %v\n%s", err, out)
	}
	must(t, os.WriteFile(filepath.Join(dir, "y.md"), []byte("y\n"), 0o600))
	hubtest.Eventually(t, patience, "the file is on the hub", func() bool {
		_, err := agentWith("", "show", "y.md", "--link", "acme/web", "--state-dir", a.state)
		return err == nil
	})
}

// settleProcess waits until an agent process serves its state directory.
func (m *machine) settleProcess(t *testing.T) {
	t.Helper()
	hubtest.Eventually(t, patience, "the daemon answers", func() bool {
		out, err := agentWith("", "status", "--wait", "--state-dir", m.state)
		return err == nil && strings.Contains(out, "acme/pay")
	})
}
