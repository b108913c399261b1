package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/memsvc/memsvc/internal/memory"
)

// Options says which hub to talk to and how. Zero durations take their defaults.
type Options struct {
	// Addr is host:port of the hub's gRPC listener.
	Addr string

	// TokenFile holds the bearer token; it is read again when it changes. Token is
	// used when TokenFile is "". Both empty: no credential is sent.
	TokenFile string
	Token     string
	// TokenOptional lets a TokenFile be absent where a certificate is given below: then
	// the certificate says who calls. It is looked for with every call all the same.
	TokenOptional bool

	// Plaintext sends without TLS, also to a hub that is not on this machine. A
	// loopback address is spoken to without TLS unless authorities or a certificate
	// are given below.
	Plaintext bool
	// CAFile is a PEM file of authorities to trust instead of the system's.
	CAFile string
	// CAPEM is such authorities themselves, used when CAFile is "".
	CAPEM []byte
	// CertFile and KeyFile are this client's certificate, read again on every handshake.
	CertFile string
	KeyFile  string
	// ServerName is the name to expect in the hub's certificate; "" is Addr's host.
	ServerName string

	// UserAgent names the program and its version.
	UserAgent string
	// Author holds the labels (machine, client, session) of commits.
	Author memory.Author
	// Agent is what a watch tells the hub of itself.
	Agent AgentInfo

	// CallTimeout bounds one attempt of a unary call; 15 s. Calls that move much
	// (lists, batches, commits, archives' chunks) have twice as long.
	CallTimeout time.Duration
	// Attempts bounds how often a call is tried; 3.
	Attempts int
	// MinBackoff and MaxBackoff bound the pause between attempts and between
	// streams; 100 ms and 15 s. Pauses double and are jittered.
	MinBackoff, MaxBackoff time.Duration
	// PingEvery and PingTimeout are the keepalive of a connection with calls on it;
	// 15 s and 10 s, so that a half-open connection is noticed within 30 s (SPEC 3.7).
	PingEvery, PingTimeout time.Duration
	// Silence is how long a watch may say nothing; 30 s, twice the hub's bookmarks.
	Silence time.Duration
	// Reprobe is how often a watch that was refused for good is tried again all the
	// same; 5 min.
	Reprobe time.Duration

	// Dial replaces the network in tests.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Now is this machine's clock.
	Now func() time.Time
}

// AgentInfo is what an agent says of itself; it only helps people to recognise it.
type AgentInfo struct {
	ID      string // stable id of the agent's state
	Machine string
	Version string
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&o.CallTimeout, 15*time.Second)
	def(&o.MinBackoff, 100*time.Millisecond)
	def(&o.MaxBackoff, 15*time.Second)
	def(&o.PingEvery, 15*time.Second)
	def(&o.PingTimeout, 10*time.Second)
	def(&o.Silence, 30*time.Second)
	def(&o.Reprobe, 5*time.Minute)
	if o.Attempts <= 0 {
		o.Attempts = 3
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func (o Options) hasTLS() bool {
	return o.CAFile+o.CertFile+o.KeyFile != "" || len(o.CAPEM) > 0
}

// usesTLS reports whether the connection is encrypted; see Options.Plaintext.
func (o Options) usesTLS() bool {
	switch {
	case o.hasTLS():
		return true
	case o.Plaintext:
		return false
	}
	return !isLoopback(o.Addr)
}

func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func (o Options) validate() error {
	if host, port, err := net.SplitHostPort(o.Addr); err != nil || host == "" || port == "" {
		return invalid("hub address %q: want host:port, like 127.0.0.1:7420", cut(o.Addr))
	}
	if o.Plaintext && o.hasTLS() {
		return invalid("hub %s: plaintext and TLS files exclude each other; leave one out", o.Addr)
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return invalid("hub %s: a client certificate needs its key, and a key its certificate", o.Addr)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &memory.Error{Reason: memory.ReasonInvalidArgument, Message: fmt.Sprintf(format, args...)}
}

// cut shortens what a person typed before it is shown again.
func cut(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}

func (o Options) transport() (credentials.TransportCredentials, error) {
	if !o.usesTLS() {
		return insecure.NewCredentials(), nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.ServerName}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("CA file: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, invalid("CA file %s: no certificate in it; want PEM", o.CAFile)
		}
	}
	if o.CAFile == "" && len(o.CAPEM) > 0 {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(o.CAPEM) {
			return nil, invalid("authorities of hub %s: no certificate in them; want PEM", o.Addr)
		}
	}
	if o.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile); err != nil {
			return nil, errors.Join(invalid("client certificate %s cannot be used", o.CertFile), err)
		}
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
			return &pair, err
		}
	}
	return credentials.NewTLS(cfg), nil
}
