package observetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/porttest"
)

// withTLS starts a hub with a certificate that is good for an hour, and with an issuer
// of JWTs that cannot be reached; one such JWT was refused.
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
	identity := filepath.Join(dir, "identity.yaml")
	issuer := "http://" + porttest.Free(t)
	must(t, os.WriteFile(identity, []byte("issuers:\n  - {name: away, issuer: "+issuer+", audience: memsvc, rules: [{when: {sub: x}, team: acme, role: reader}]}\n"), 0o600))
	h := hubtest.Start(t, hubtest.Options{Config: func(c *hub.Config) {
		c.TLSCert, c.TLSKey, c.IdentityFile = certFile, keyFile, identity
	}})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+h.HTTPAddr+"/v1/teams/acme/projects/pay", nil)
	must(t, err)
	part := func(json string) string { return base64.RawURLEncoding.EncodeToString([]byte(json)) }
	req.Header.Set("Authorization", "Bearer "+part(`{"alg":"RS256","kid":"k"}`)+"."+
		part(fmt.Sprintf(`{"iss":%q,"aud":"memsvc","sub":"x","exp":%d}`, issuer, time.Now().Add(time.Hour).Unix()))+"."+part("no signature"))
	pool := x509.NewCertPool()
	leaf, err := x509.ParseCertificate(cert)
	must(t, err)
	pool.AddCert(leaf)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	must(t, err)
	must(t, res.Body.Close())
	if res.StatusCode == http.StatusOK {
		t.Fatal("a JWT that nobody signed was believed")
	}
	return h
}
