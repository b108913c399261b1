package hub_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// TestTLSSwappedForGarbage puts everything in the place of good TLS files that cannot
// serve: the old certificate goes on serving, log and metrics say so each time, and
// good files are taken in again.
func TestTLSSwappedForGarbage(t *testing.T) {
	ca := newAuthority(t)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	until := time.Now().Add(30 * time.Minute).Truncate(time.Second)
	ca.issueUntil(t, 10, until, certFile, keyFile)
	goodCert, goodKey := read(t, certFile), read(t, keyFile)
	written := time.Now().Add(-time.Minute)
	stamp := func() {
		for _, name := range []string{certFile, keyFile} {
			if err := os.Chtimes(name, written, written); err != nil {
				t.Fatal(err)
			}
		}
	}
	stamp()
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	client := &tls.Config{RootCAs: pool, NextProtos: []string{"h2"}}
	var ahead atomic.Int64 // of the hub's clock, so that nobody waits for it to look
	h := hubtest.Start(t, hubtest.Options{
		Config: func(c *hub.Config) { c.TLSCert, c.TLSKey = certFile, keyFile },
		Now:    func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Second).UTC() },
	})
	shown := func(line string) func() bool {
		return func() bool { ahead.Add(1); return strings.Contains(metricsText(t, h), line+"\n") }
	}
	expires := func(at time.Time) string {
		return fmt.Sprintf("memsvc_tls_certificate_expiry_timestamp_seconds %g", float64(at.Unix()))
	}
	hubtest.Eventually(t, patience, "the expiry is shown", shown(expires(until)))

	other := filepath.Join(dir, "other.pem")
	expired := time.Now().Add(-time.Minute)
	refused := 0
	for name, spoil := range map[string]func(){
		"garbage for a certificate": func() { write(t, certFile, "garbage") },
		"half a certificate":        func() { write(t, certFile, goodCert[:len(goodCert)/2]) },
		"an empty certificate":      func() { write(t, certFile, "") },
		"half a key":                func() { write(t, keyFile, goodKey[:len(goodKey)/2]) },
		"another key":               func() { ca.issue(t, 11, other, keyFile) },
		"another certificate":       func() { ca.issue(t, 12, certFile, other) },
		"no key":                    func() { _ = os.Remove(keyFile) },
		"an expired pair":           func() { ca.issueUntil(t, 13, expired, certFile, keyFile) },
	} {
		spoil()
		refused++
		hubtest.Eventually(t, patience, name+" is told", shown("memsvc_tls_files_in_use 0"))
		if got := serial(t, h.GRPCAddr, client); got != 10 {
			t.Fatalf("%s: the hub shows certificate %d", name, got)
		}
		if got := serial(t, h.HTTPAddr, client); got != 10 {
			t.Fatalf("%s: REST shows certificate %d", name, got)
		}
		text := metricsText(t, h)
		for _, want := range []string{expires(until), fmt.Sprintf(`memsvc_tls_reloads_total{outcome="refused"} %d`, refused), `memsvc_tls_reloads_total{outcome="taken"} 0`} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("%s: no metric %s", name, want)
			}
		}
		if n := strings.Count(h.Log.String(), "cannot be used; the old certificate stays"); n != refused {
			t.Errorf("%s: told %d times in the log, want %d", name, n, refused)
		}
		// The very files are put back, with their times: nothing new has to be read.
		write(t, certFile, goodCert)
		write(t, keyFile, goodKey)
		stamp()
		hubtest.Eventually(t, patience, name+" is over", shown("memsvc_tls_files_in_use 1"))
	}
	later := until.Add(10 * time.Minute)
	ca.issueUntil(t, 20, later, certFile, keyFile)
	hubtest.Eventually(t, patience, "the renewed certificate is shown", func() bool { ahead.Add(1); return serial(t, h.GRPCAddr, client) == 20 })
	if text := metricsText(t, h); !strings.Contains(text, expires(later)) || strings.Contains(text, `memsvc_tls_reloads_total{outcome="taken"} 0`) {
		t.Error("the renewal is not in the metrics")
	}
	if log := h.Log.String(); strings.Contains(log, "PRIVATE KEY") {
		t.Error("the log holds a key")
	}
}

// TestTLSExpiredAtStart starts all the same, and says so: there may be no other
// certificate, and the hub's log is where people look.
func TestTLSExpiredAtStart(t *testing.T) {
	ca := newAuthority(t)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	ca.issueUntil(t, 10, time.Now().Add(-time.Minute), certFile, keyFile)
	h := hubtest.Start(t, hubtest.Options{Config: func(c *hub.Config) { c.TLSCert, c.TLSKey = certFile, keyFile }})
	if !strings.Contains(h.Log.String(), "the certificate is not valid now") {
		t.Error("the log does not say that the certificate has expired")
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
