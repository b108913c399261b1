package hub

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// tlsCheckEvery is how often, at most, the files are looked at again.
const tlsCheckEvery = time.Second

// tlsFiles serves certificates from files and takes in new ones without a restart.
// The files are looked at when someone connects and when metrics are scraped; files
// that cannot be used are told in the log and by a metric, and the old certificate
// stays.
type tlsFiles struct {
	cert, key, clientCA string
	log                 *slog.Logger
	now                 func() time.Time
	reloads             *prometheus.CounterVec

	mu      sync.Mutex // guards what follows
	checked time.Time
	stamp   string // of the files as loaded
	failed  string // of the files as they failed to load; "" once they are good again
	pair    *tls.Certificate
	pool    *x509.CertPool // nil: no client certificates
}

func newTLSFiles(cert, key, clientCA string, log *slog.Logger, now func() time.Time) (*tlsFiles, error) {
	t := &tlsFiles{cert: cert, key: key, clientCA: clientCA, log: log, now: now, reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "memsvc_tls_reloads_total", Help: "Changed TLS files, by outcome: taken, or refused while the old ones stay in use.",
	}, []string{"outcome"})}
	for _, outcome := range []string{tlsTaken, tlsRefused} {
		t.reloads.WithLabelValues(outcome) // there from the start
	}
	t.stamp = t.stat()
	var err error
	t.pair, t.pool, err = t.load()
	t.checked = now()
	if err != nil {
		return t, err
	}
	if err := usableAt(t.pair.Leaf, t.checked); err != nil {
		// Who starts the hub may have no other; clients say what they think of it.
		log.Error("TLS: the certificate is not valid now; clients will refuse it", "file", cert, "error", err.Error())
	}
	return t, nil
}

// Outcomes of memsvc_tls_reloads_total.
const (
	tlsTaken   = "taken"
	tlsRefused = "refused"
)

// register adds the metrics of the files.
func (t *tlsFiles) register(reg prometheus.Registerer) {
	reg.MustRegister(t.reloads,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "memsvc_tls_certificate_expiry_timestamp_seconds",
			Help: "When the certificate in use expires, in Unix seconds: the first of its chain to do so.",
		}, func() float64 {
			pair, _ := t.current()
			return float64(expiry(pair).Unix())
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "memsvc_tls_files_in_use",
			Help: "1 if the TLS files as they are on disk are in use, 0 if they were refused and older ones are.",
		}, func() float64 {
			t.current()
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.failed != "" {
				return 0
			}
			return 1
		}))
}

// expiry returns when the first certificate of the chain expires.
func expiry(pair *tls.Certificate) time.Time {
	first := pair.Leaf.NotAfter
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil && c.NotAfter.Before(first) {
			first = c.NotAfter
		}
	}
	return first
}

// usableAt says what stands against the certificate at a time.
func usableAt(leaf *x509.Certificate, now time.Time) error {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("it expired at %s; renew it", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("it is valid from %s on; wait, or set the clock", leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
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

// renew loads the files for use in the place of others that are good.
func (t *tlsFiles) renew(now time.Time) (*tls.Certificate, *x509.CertPool, error) {
	pair, pool, err := t.load()
	if err != nil {
		return nil, nil, err
	}
	if err := usableAt(pair.Leaf, now); err != nil {
		return nil, nil, fmt.Errorf("TLS: certificate %s: %w", t.cert, err)
	}
	return pair, pool, nil
}

func (t *tlsFiles) current() (*tls.Certificate, *x509.CertPool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if now.Sub(t.checked) < tlsCheckEvery {
		return t.pair, t.pool
	}
	t.checked = now
	stamp := t.stat()
	switch stamp {
	case t.stamp:
		t.failed = "" // what was taken in is back
		return t.pair, t.pool
	case t.failed:
		return t.pair, t.pool
	}
	pair, pool, err := t.renew(now)
	if err != nil {
		t.failed = stamp
		t.reloads.WithLabelValues(tlsRefused).Inc()
		t.log.Error("TLS files changed and cannot be used; the old certificate stays", "error", err.Error(), "expires", expiry(t.pair).UTC().Format(time.RFC3339))
		return t.pair, t.pool
	}
	t.stamp, t.failed, t.pair, t.pool = stamp, "", pair, pool
	t.reloads.WithLabelValues(tlsTaken).Inc()
	t.log.Info("TLS files changed and were taken in", "expires", expiry(pair).UTC().Format(time.RFC3339))
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
