package observetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// withTLS starts a hub with a certificate that is good for an hour.
func withTLS(t *testing.T) *hubtest.Hub {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	cert, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	must(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return file
	}
	certFile, keyFile := write("cert.pem", "CERTIFICATE", cert), write("key.pem", "EC PRIVATE KEY", private)
	return hubtest.Start(t, hubtest.Options{Config: func(c *hub.Config) { c.TLSCert, c.TLSKey = certFile, keyFile }})
}
