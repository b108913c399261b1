package hub_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// authority signs certificates for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue writes a certificate and its key to files.
func (a *authority) issue(t *testing.T, serial int64, certFile, keyFile string) tls.Certificate {
	t.Helper()
	return a.issueUntil(t, serial, time.Now().Add(time.Hour), certFile, keyFile)
}

// issueUntil is issue, with the end of the certificate's life.
func (a *authority) issueUntil(t *testing.T, serial int64, until time.Time, certFile, keyFile string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "127.0.0.1"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	for name, data := range map[string][]byte{certFile: certPEM, keyFile: keyPEM} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// serial returns the number of the certificate that addr shows.
func serial(t *testing.T, addr string, cfg *tls.Config) int64 {
	t.Helper()
	c, err := tls.Dial("tcp", addr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// TestTLS serves both APIs with a certificate, takes in a new one without a restart,
// keeps the old one when the new is broken, and asks clients for theirs.
func TestTLS(t *testing.T) {
	ca := newAuthority(t)
	dir := t.TempDir()
	caFile, certFile, keyFile := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := os.WriteFile(caFile, ca.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	ca.issue(t, 10, certFile, keyFile)
	client := ca.issue(t, 99, filepath.Join(dir, "client.pem"), filepath.Join(dir, "client-key.pem"))
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	h := hubtest.Start(t, hubtest.Options{Config: func(c *hub.Config) {
		c.TLSCert, c.TLSKey, c.TLSClientCA = certFile, keyFile, caFile
	}})
	token := h.Token("acme", "app", "writer")
	withCert := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{client}, NextProtos: []string{"h2"}}

	ask := func(cfg *tls.Config) error {
		conn, err := grpc.NewClient("passthrough:///"+h.GRPCAddr, grpc.WithTransportCredentials(credentials.NewTLS(cfg)))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		c := caller{memsvcv1.NewMemoryServiceClient(conn), nil, token}
		_, err = c.GetProject(c.ctx(t), &memsvcv1.GetProjectRequest{Name: project})
		return err
	}
	if err := ask(withCert); err != nil {
		t.Errorf("gRPC with a client certificate: %v", err)
	}
	if err := ask(&tls.Config{RootCAs: pool}); status.Code(err) != codes.Unavailable {
		t.Errorf("gRPC without a client certificate: %v", err)
	}
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: withCert, ForceAttemptHTTP2: true}}
	res, err := web.Get("https://" + h.HTTPAddr + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.ProtoMajor != 2 {
		t.Errorf("REST over TLS: %s %s", res.Proto, res.Status)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	web.CloseIdleConnections()
	if n := serial(t, h.GRPCAddr, withCert); n != 10 {
		t.Errorf("serial %d", n)
	}
	ca.issue(t, 11, certFile, keyFile)
	for _, addr := range []string{h.GRPCAddr, h.HTTPAddr} {
		hubtest.Eventually(t, patience, "the new certificate is shown", func() bool { return serial(t, addr, withCert) == 11 })
	}
	if err := os.WriteFile(certFile, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, patience, "the broken file is told", func() bool {
		if n := serial(t, h.GRPCAddr, withCert); n != 11 {
			t.Fatalf("serial %d", n)
		}
		return containsLine(h.Log.String(), "cannot be used")
	})
	ca.issue(t, 12, certFile, keyFile)
	hubtest.Eventually(t, patience, "the mended certificate is shown", func() bool { return serial(t, h.GRPCAddr, withCert) == 12 })
}
