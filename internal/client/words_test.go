package client

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/porttest"
)

// TestPlainWords meets the usual mistakes with a hub's address and files, and expects
// what to do about them instead of what gRPC says.
func TestPlainWords(t *testing.T) {
	rest := httptest.NewServer(http.NotFoundHandler())
	defer rest.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(ca, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, addr, ca, want string
	}{
		{"REST port", rest.Listener.Addr().String(), "", "speaks HTTP"},
		{"TLS hub without --ca-file", secure.Listener.Addr().String(), "", "--ca-file"},
		{"plain hub with --ca-file", rest.Listener.Addr().String(), ca, "without TLS"},
		{"nobody", porttest.Free(t), "", "nothing listens there"},
		{"HTTP over TLS", secure.Listener.Addr().String(), ca, "no gRPC"},
		{"something else", answering(t, nil, "SSH-2.0-x\r\n"), "", "no hub"},
		{"hangs up", answering(t, nil, ""), "", "hung up before a word, as a hub does that wants TLS"},
		{"hangs up on TLS", answering(t, nil, ""), ca, "hung up as soon as it was called"},
		{"hangs up within TLS", answering(t, pair(secure, tls.NoClientCert), ""), ca, "hung up before a word, as a hub does that wants a client certificate; give one with --cert-file and --key-file"},
		{"wants a certificate", answering(t, pair(secure, tls.RequireAnyClientCert), ""), ca, "wants a client certificate; give one with --cert-file and --key-file"},
	} {
		for range 8 { // which word the network gets to first is chance
			c, err := New(Options{Addr: tc.addr, CAFile: tc.ca, Token: "msv_x", Attempts: 1, CallTimeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Project(t.Context(), memory.ProjectKey{Team: "acme", Project: "pay"}, memory.Cursor{})
			c.Close()
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "desc =") {
				t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
				break
			}
		}
	}
}

func pair(s *httptest.Server, want tls.ClientAuthType) *tls.Config {
	return &tls.Config{Certificates: s.TLS.Certificates, NextProtos: []string{"h2"}, ClientAuth: want}
}

// answering listens on loopback until the test ends. Every connection gets text and is
// listened to, or without a text gets the end; that comes after TLS stands, if cfg is given.
func answering(t *testing.T, cfg *tls.Config, text string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { ln.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				if cfg != nil {
					_ = tls.Server(c, cfg).Handshake()
				}
				if text != "" {
					_, _ = io.WriteString(c, text)
					_, _ = io.Copy(io.Discard, c)
				}
			})
		}
	})
	return ln.Addr().String()
}

// TestWordsForWhatTheNetworkSays holds what cannot be met at will: no text of the network
// or of gRPC about a usual cause reaches a person.
func TestWordsForWhatTheNetworkSays(t *testing.T) {
	const preface = "connection error: desc = \"error reading server preface: read tcp 127.0.0.1:1->127.0.0.1:2: "
	for _, tc := range []struct {
		said      string
		tls, cert bool
		want      string
	}{
		{"write tcp 127.0.0.1:1->127.0.0.1:2: write: broken pipe", true, false, "wants a client certificate"},
		{"write tcp 127.0.0.1:1->127.0.0.1:2: write: broken pipe", true, true, "does not take the client certificate"},
		{"write tcp 127.0.0.1:1->127.0.0.1:2: write: broken pipe", false, false, "wants TLS"},
		{preface + "connection reset by peer\"", true, false, "wants a client certificate"},
		{preface + "An existing connection was forcibly closed by the remote host.\"", true, false, "wants a client certificate"},
		{preface + "remote error: tls: certificate required\"", true, false, "it wants a client certificate; give one with --cert-file"},
		{preface + "remote error: tls: handshake failure\"", true, false, "it wants a client certificate"},
		{preface + "remote error: tls: unknown certificate authority\"", true, true, "it does not take the client certificate: unknown certificate authority; see --cert-file"},
		{preface + "remote error: tls: expired certificate\"", true, true, "does not take the client certificate: expired certificate"},
		{"transport: authentication handshake failed: remote error: tls: protocol version not supported", true, false, "TLS fails: protocol version not supported"},
		{"transport: authentication handshake failed: EOF", true, false, "hung up as soon as it was called"},
		{"transport: Error while dialing: dial tcp 127.0.0.1:2: connect: connection reset by peer", false, false, "hung up as soon as it was called"},
		{"transport: authentication handshake failed: credentials: cannot check peer: missing selected ALPN property. If you upgraded", true, false, "no gRPC"},
		{preface + "use of closed network connection\"", false, false, "no answer in time"},
		{preface + "use of closed network connection\"", true, true, "no answer in time"},
		{preface + "i/o timeout\"", false, false, "no answer in time"},
		{"transport: authentication handshake failed: context deadline exceeded", true, false, "no answer in time"},
		{"error reading from server: EOF", true, false, "the connection broke off"},
		{"keepalive ping failed to receive ACK within timeout", true, false, "the connection broke off"},
		{"name resolver error: produced zero addresses", true, false, "no such host"},
		{"transport: Error while dialing: dial tcp: lookup hub.example on 127.0.0.53:53: server misbehaving", true, false, "cannot be looked up"},
		{"transport: Error while dialing: dial tcp: lookup tcp/x: unknown port", true, false, "the port is none"},
		{"transport: Error while dialing: dial tcp 192.0.2.1:7420: i/o timeout", true, false, "no answer in time"},
		{"transport: Error while dialing: dial tcp 192.0.2.1:7420: connect: no route to host", true, false, "no way there"},
		{"transport: Error while dialing: dial tcp 192.0.2.1:7420: connect: permission denied", true, false, "dial tcp 192.0.2.1:7420: connect: permission denied"},
	} {
		got := plainWords(tc.said, tc.tls, tc.cert, false)
		if !strings.Contains(got, tc.want) || strings.Contains(got, "tcp 127") || strings.Contains(got, "transport:") {
			t.Errorf("%q (TLS %v, certificate %v): %q, want %q", tc.said, tc.tls, tc.cert, got, tc.want)
		}
	}
}

// TestHangIsNoMistake: a hub that takes connections and says nothing is told as such, and
// not as one that wants TLS or a certificate.
func TestHangIsNoMistake(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // the system takes connections, nobody reads
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := New(Options{Addr: ln.Addr().String(), Token: "msv_x", Attempts: 1, CallTimeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 4 {
		_, err := c.Project(t.Context(), memory.ProjectKey{Team: "acme", Project: "pay"}, memory.Cursor{})
		if err == nil || !strings.Contains(err.Error(), "no answer in time") || strings.Contains(err.Error(), "TLS") {
			t.Errorf("a hub that hangs: %v", err)
		}
	}
}

// TestWhatWorkedIsNoMistake: once a hub has answered, nobody is told to give other files.
func TestWhatWorkedIsNoMistake(t *testing.T) {
	for _, said := range []string{
		"connection error: desc = \"error reading server preface: EOF\"",
		"write tcp 127.0.0.1:1->127.0.0.1:2: write: broken pipe",
		"transport: authentication handshake failed: EOF",
	} {
		for _, tls := range []bool{false, true} {
			if got := plainWords(said, tls, false, true); !strings.Contains(got, "it answered before") || strings.Contains(got, "--") {
				t.Errorf("%q (TLS %v): %q", said, tls, got)
			}
		}
	}
}

func TestTokenFileDirectory(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadTokenFile(dir); err == nil || !strings.Contains(err.Error(), dir+": it is a directory") {
		t.Errorf("%v", err)
	}
}
