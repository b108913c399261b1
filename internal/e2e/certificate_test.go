package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// TestCertificateIsTheCredential has agents and the hub's own commands call with a client
// certificate and no token at all. One that no rule knows is refused in words, and an
// agent goes on by itself once its files hold another.
func TestCertificateIsTheCredential(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	selfSigned(t, at("hub.pem"), at("hub-key.pem"))
	var clients bytes.Buffer
	for _, name := range []string{"ann", "boss", "mallory"} {
		selfSignedAs(t, name, at(name+".pem"), at(name+"-key.pem"))
		text, err := os.ReadFile(at(name + ".pem"))
		must(t, err)
		clients.Write(text)
	}
	must(t, os.WriteFile(at("clients.pem"), clients.Bytes(), 0o600))
	must(t, os.WriteFile(at("identity.yaml"), []byte(`
client-certificates:
  rules:
    - when: {cn: ann}
      team: acme
      project: pay
      role: writer
    - when: {cn: boss}
      team: acme
      role: admin
`), 0o600))
	h := hubtest.Start(t, hubtest.Options{Config: func(c *hub.Config) {
		c.TLSCert, c.TLSKey, c.TLSClientCA, c.IdentityFile = at("hub.pem"), at("hub-key.pem"), at("clients.pem"), at("identity.yaml")
	}})
	h.TokenFile("acme", "pay", "writer") // makes the project
	with := func(name string, args ...string) []string {
		return append(args, "--hub", h.GRPCAddr, "--ca-file", at("hub.pem"), "--cert-file", at(name+".pem"), "--key-file", at(name+"-key.pem"))
	}

	if out := command(t, "memsvc", with("boss", "project", "list", "--team", "acme")...); !strings.Contains(out, "pay") {
		t.Errorf("project list: %s", out)
	}

	must(t, os.Mkdir(at("team"), 0o755))
	must(t, os.WriteFile(at("team/x.md"), []byte(note("x", "from the command")), 0o600))
	state := []string{"--state-dir", at("state")}
	command(t, "memsync-agent", with("ann", append(state, "link", "--team", "acme", "--project", "pay", "--dir", at("team"))...)...)
	if out := command(t, "memsync-agent", append(state, "sync")...); !strings.Contains(out, "acme/pay: in step at revision 1") {
		t.Errorf("sync: %s", out)
	}
	if out := command(t, "memsync-agent", append(state, "log")...); !strings.Contains(out, "cert:ann") {
		t.Errorf("log: %s", out)
	}
	if out, err := agentWith("", append(state, "doctor")...); err != nil || !strings.Contains(out, "token: none; the client certificate") {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	out, err := agentWith("", with("mallory", "sync", "--team", "acme", "--project", "pay", "--dir", at("team"), "--state-dir", at("other"))...)
	if err == nil || !strings.Contains(out, "mallory") || strings.Contains(out, "token file") {
		t.Errorf("a certificate without a rule: %v\n%s", err, out)
	}
	out, err = agentWith("", "sync", "--hub", h.GRPCAddr, "--ca-file", at("hub.pem"), "--token-file", h.TokenFile("acme", "pay", "writer"), "--team", "acme", "--project", "pay", "--dir", at("team"), "--state-dir", at("without"))
	if err == nil || !strings.Contains(out, "client certificate; give one with --cert-file and --key-file") {
		t.Errorf("no certificate: %v\n%s", err, out)
	}

	copyTo := func(from, to string) {
		t.Helper()
		text, err := os.ReadFile(at(from))
		must(t, err)
		must(t, os.WriteFile(at(to), text, 0o600))
	}
	copyTo("mallory.pem", "mine.pem")
	copyTo("mallory-key.pem", "mine-key.pem")
	m := newMachine(t, "M", h.GRPCAddr, "")
	m.link.CAFile, m.link.CertFile, m.link.KeyFile = at("hub.pem"), at("mine.pem"), at("mine-key.pem")
	m.write("y.md", note("y", "from the daemon"))
	m.start()
	hubtest.Eventually(t, patience, "the daemon stands still", func() bool { return m.status().Phase == agent.PhaseStopped })
	copyTo("ann-key.pem", "mine-key.pem")
	copyTo("ann.pem", "mine.pem")
	hubtest.Eventually(t, patience, "the daemon goes on with another certificate", func() bool { return m.status().InStep })
	if got := m.read("x.md"); got != note("x", "from the command") {
		t.Errorf("x.md is %q", got)
	}
}
