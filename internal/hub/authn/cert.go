package authn

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"time"
)

// certIdentity returns who a verified client certificate stands for.
func (b *rulebook) certIdentity(cert *x509.Certificate, now time.Time) (Identity, error) {
	if now.After(cert.NotAfter) || now.Before(cert.NotBefore) {
		return Identity{}, refuseCert(whyCertificateTime)
	}
	said := certSays(cert)
	name := ""
	for _, key := range []string{"uri", "email", "dns", "cn"} {
		if texts := said.texts(key); len(texts) > 0 {
			name = cmp.Or(name, texts[0])
		}
	}
	if !fitSubject(name) {
		return Identity{}, refuseCert(whyCertificateName)
	}
	sum := sha256.Sum256(cert.Raw)
	return granted(Identity{
		Kind: Certificate, ID: "cert:" + name, Name: name, Hash: "cert:" + hex.EncodeToString(sum[:]),
		Expire: cert.NotAfter, said: said,
	}, b.certs)
}

// certSays returns the names in a certificate as claims.
func certSays(cert *x509.Certificate) claims {
	said := claims{}
	put := func(key string, texts ...string) {
		var list []any
		for _, t := range texts {
			if t != "" {
				list = append(list, t)
			}
		}
		if len(list) > 0 {
			said[key] = list
		}
	}
	var uris []string
	for _, u := range cert.URIs {
		uris = append(uris, u.String())
	}
	put("uri", uris...)
	put("email", cert.EmailAddresses...)
	put("dns", cert.DNSNames...)
	put("cn", cert.Subject.CommonName)
	put("ou", cert.Subject.OrganizationalUnit...)
	put("o", cert.Subject.Organization...)
	return said
}
