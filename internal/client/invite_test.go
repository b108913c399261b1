package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/memory"
)

func testCA(t testing.TB) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func testInvite() Invite {
	return Invite{
		Hub: "hub.example:7420", Project: memory.ProjectKey{Team: "acme", Project: "github.com~acme~pay"},
		Token: "msv_" + strings.Repeat("aB3", 16) + "x",
	}
}

// TestInviteRoundTrip has codes say what was put into them, in one word.
func TestInviteRoundTrip(t *testing.T) {
	plain, withCA := testInvite(), testInvite()
	withCA.CA = testCA(t)
	local := testInvite()
	local.Hub = "[::1]:7420"
	for _, want := range []Invite{plain, withCA, local} {
		code, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(code, InvitePrefix) || strings.ContainsAny(code, " \n=+/") {
			t.Errorf("%v: the code is not one word", want)
		}
		got, err := ParseInvite(" " + code + "\r\n")
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		if strings.Contains(want.String(), "msv_") {
			t.Error("String tells the token")
		}
	}
}

// TestInviteTakesNoKey gives only the certificates of a file away.
func TestInviteTakesNoKey(t *testing.T) {
	v := testInvite()
	ca := testCA(t)
	v.CA = string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE" + " KEY", Bytes: []byte("a key")})) + ca
	code, err := v.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseInvite(code)
	if err != nil {
		t.Fatal(err)
	}
	if got.CA != ca {
		t.Errorf("the code holds %q, want the certificate alone", got.CA)
	}
}

// TestInviteMistyped refuses every code with one character changed, missing, doubled or
// swapped, and says nothing of the code.
func TestInviteMistyped(t *testing.T) {
	code, err := testInvite().Encode()
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(bad string) {
		t.Helper()
		_, err := ParseInvite(bad)
		if !errors.Is(err, memory.ErrInvalidArgument) {
			t.Fatalf("%q: got %v, want a refusal", bad, err)
		}
		if strings.Contains(err.Error(), code[len(InvitePrefix):len(InvitePrefix)+12]) {
			t.Fatalf("the error tells the code: %v", err)
		}
	}
	for i := range len(code) {
		for _, c := range "Aa0_z \n" {
			if byte(c) != code[i] && !(i == len(code)-1 && c <= ' ') {
				refuse(code[:i] + string(c) + code[i+1:])
			}
		}
		if i > 0 {
			refuse(code[:i])
		}
		refuse(code[:i] + code[i+1:])
		if i+1 < len(code) && code[i] != code[i+1] {
			refuse(code[:i] + code[i+1:i+2] + code[i:i+1] + code[i+2:])
		}
	}
	for _, bad := range []string{"", "hello", "msv_abc", InvitePrefix, code + code, InvitePrefix + strings.Repeat("A", maxInviteBytes), strings.ToUpper(code)} {
		refuse(bad)
	}
}

// TestInviteNextVersion tells a code of another version from a mistyped one.
func TestInviteNextVersion(t *testing.T) {
	b := []byte{inviteVersion + 1, 'x'}
	_, err := ParseInvite(InvitePrefix + base64.RawURLEncoding.EncodeToString(append(b, inviteSum(b)...)))
	if err == nil || !strings.Contains(err.Error(), "update memsync-agent") {
		t.Errorf("got %v", err)
	}
}

// TestInviteRefuses makes no code that leads nowhere.
func TestInviteRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*Invite){
		"no port":       func(v *Invite) { v.Hub = "hub.example" },
		"named port":    func(v *Invite) { v.Hub = "hub.example:memsvc" },
		"port 0":        func(v *Invite) { v.Hub = "127.0.0.1:0" },
		"no host":       func(v *Invite) { v.Hub = ":7420" },
		"any address":   func(v *Invite) { v.Hub = "0.0.0.0:7420" },
		"any address 6": func(v *Invite) { v.Hub = "[::]:7420" },
		"two words":     func(v *Invite) { v.Hub = "hub example:7420" },
		"long host":     func(v *Invite) { v.Hub = strings.Repeat("a", maxInviteHub) + ":7420" },
		"no team":       func(v *Invite) { v.Project.Team = "" },
		"bad project":   func(v *Invite) { v.Project.Project = "../x" },
		"no token":      func(v *Invite) { v.Token = "" },
		"long token":    func(v *Invite) { v.Token = strings.Repeat("a", maxTokenBytes+1) },
		"no PEM":        func(v *Invite) { v.CA = "hello" },
		"no certificate": func(v *Invite) {
			v.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))
		},
		"many certificates": func(v *Invite) { v.CA = strings.Repeat(testCA(t), maxInviteCerts+1) },
	} {
		v := testInvite()
		spoil(&v)
		if code, err := v.Encode(); err == nil {
			t.Errorf("%s: made %d characters", name, len(code))
		}
	}
}

// FuzzParseInvite reads anything without harm, and what it takes has one code only.
func FuzzParseInvite(f *testing.F) {
	for _, v := range []Invite{testInvite(), {Hub: "127.0.0.1:1", Project: memory.ProjectKey{Team: "a", Project: "b"}, Token: "t", CA: testCA(f)}} {
		code, err := v.Encode()
		if err != nil {
			f.Fatal(err)
		}
		raw, err := base64.RawURLEncoding.DecodeString(code[len(InvitePrefix):])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(code, raw[:len(raw)-inviteSumBytes])
	}
	f.Add("", []byte{inviteVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Add("msvi_", []byte{inviteVersion, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, text string, raw []byte) {
		// The second is given its checksum, else nothing behind it were ever tried.
		for _, code := range []string{text, InvitePrefix + base64.RawURLEncoding.EncodeToString(append(raw[:len(raw):len(raw)], inviteSum(raw)...))} {
			v, err := ParseInvite(code)
			if err != nil {
				if !errors.Is(err, memory.ErrInvalidArgument) && !errors.Is(err, memory.ErrInvalidPath) {
					t.Fatalf("error of another kind: %v", err)
				}
				continue
			}
			again, err := v.Encode()
			if err != nil || again != strings.TrimSpace(code) {
				t.Fatalf("%q reads as %v and is written as %q, %v", code, v, again, err)
			}
		}
	})
}
