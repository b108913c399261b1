package hub

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// tlsCheckEvery is how often, at most, the files are looked at again.
const tlsCheckEvery = time.Second

// tlsFiles serves certificates from files and takes in new ones without a restart.
// The files are looked at when someone connects; a file that cannot be used is told
// in the log and the old certificate stays.
type tlsFiles struct {
	cert, key, clientCA string
	log                 *slog.Logger
	now                 func() time.Time

	mu      sync.Mutex // guards what follows
	checked time.Time
	stamp   string // of the files as loaded
	failed  string // of the files as they failed to load
	pair    *tls.Certificate
	pool    *x509.CertPool // nil: no client certificates
}

func newTLSFiles(cert, key, clientCA string, log *slog.Logger, now func() time.Time) (*tlsFiles, error) {
	t := &tlsFiles{cert: cert, key: key, clientCA: clientCA, log: log, now: now}
	t.stamp = t.stat()
	var err error
	t.pair, t.pool, err = t.load()
	t.checked = now()
	return t, err
}

// stat returns a text that changes when one of the files does.
func (t *tlsFiles) stat() string {
	stamp := ""
	for _, name := range []string{t.cert, t.key, t.clientCA} {
		if name == "" {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			stamp += "?"
			continue
		}
		stamp += fmt.Sprintf("%d/%d;", info.Size(), info.ModTime().UnixNano())
	}
	return stamp
}

func (t *tlsFiles) load() (*tls.Certificate, *x509.CertPool, error) {
	pair, err := tls.LoadX509KeyPair(t.cert, t.key)
	if err != nil {
		return nil, nil, fmt.Errorf("TLS: certificate %s with key %s: %w", t.cert, t.key, err)
	}
	if t.clientCA == "" {
		return &pair, nil, nil
	}
	pem, err := os.ReadFile(t.clientCA)
	if err != nil {
		return nil, nil, fmt.Errorf("TLS: authorities of clients: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, nil, fmt.Errorf("TLS: %s holds no certificate in PEM", t.clientCA)
	}
	return &pair, pool, nil
}

func (t *tlsFiles) current() (*tls.Certificate, *x509.CertPool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); now.Sub(t.checked) >= tlsCheckEvery {
		t.checked = now
		if stamp := t.stat(); stamp != t.stamp && stamp != t.failed {
			pair, pool, err := t.load()
			if err != nil {
				t.failed = stamp
				t.log.Error("TLS files changed and cannot be used; the old certificate stays", "error", err.Error())
			} else {
				t.stamp, t.failed, t.pair, t.pool = stamp, "", pair, pool
				t.log.Info("TLS files changed and were taken in")
			}
		}
	}
	return t.pair, t.pool
}

// config returns a server's configuration for the given protocols of ALPN.
func (t *tlsFiles) config(protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			pair, pool := t.current()
			c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols, Certificates: []tls.Certificate{*pair}}
			if pool != nil {
				c.ClientCAs, c.ClientAuth = pool, tls.RequireAndVerifyClientCert
			}
			return c, nil
		},
	}
}
