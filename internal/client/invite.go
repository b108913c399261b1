package client

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/memsvc/memsvc/internal/memory"
)

// InvitePrefix begins every invitation code. The secret guard knows it too.
const InvitePrefix = "msvi_"

// Bounds of a code. Whole texts that are pasted by mistake end here.
const (
	maxInviteBytes = 12 << 10 // of a code as text; holds the certificates of any usual authority
	maxInviteCerts = 8
	maxInviteHub   = 300 // a DNS name, or an address, and a port
	inviteVersion  = 1
	inviteSumBytes = 4 // a mistyped code passes once in four thousand million times
)

// Invite is all that a machine needs to take part in a project: it is what an
// invitation code says. It holds a token, so a code is a credential.
type Invite struct {
	// Hub is host:port of the hub's gRPC listener. It is spoken to with TLS, unless it
	// is a loopback address and CA is empty.
	Hub     string
	Project memory.ProjectKey
	Token   string
	// CA is PEM of the authorities to trust instead of the system's; "" is the system's.
	CA string
}

// String names the project and the hub, and nothing that is secret.
func (v Invite) String() string {
	return fmt.Sprintf("invitation to %s/%s on %s", v.Project.Team, v.Project.Project, v.Hub)
}

// Options says how to reach the hub with the invitation's token.
func (v Invite) Options() Options {
	return Options{Addr: v.Hub, Token: v.Token, CAPEM: []byte(v.CA)}
}

// Encode returns the code: one word of letters, digits, '-' and '_'. An invitation that
// no hub could be reached with is an ErrInvalidArgument. Of CA only certificates are
// taken, so that a file that holds a key beside them gives it to nobody.
//
// The word is InvitePrefix and base64url of: a version byte; hub, team, project and
// token, each after its length; the number of certificates and each in DER after its
// length; and the first 4 bytes of the SHA-256 of all this. Lengths are uvarints.
func (v Invite) Encode() (string, error) {
	certs, err := certificates(v.CA)
	if err != nil {
		return "", err
	}
	if err := v.check(); err != nil {
		return "", err
	}
	b := []byte{inviteVersion}
	put := func(s []byte) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	for _, s := range []string{v.Hub, string(v.Project.Team), string(v.Project.Project), v.Token} {
		put([]byte(s))
	}
	b = binary.AppendUvarint(b, uint64(len(certs)))
	for _, c := range certs {
		put(c)
	}
	code := InvitePrefix + base64.RawURLEncoding.EncodeToString(append(b, inviteSum(b)...))
	if len(code) > maxInviteBytes {
		return "", invalid("invitation: the code would have %d characters, the limit is %d; name a CA file with the one authority alone", len(code), maxInviteBytes)
	}
	return code, nil
}

// ParseInvite reads a code, blanks around it left out. Every mistake is an
// ErrInvalidArgument that says what to do and holds nothing of the code.
func ParseInvite(code string) (Invite, error) {
	code = strings.TrimSpace(code)
	body, ok := strings.CutPrefix(code, InvitePrefix)
	switch {
	case !ok && strings.HasPrefix(code, "msv_"):
		return Invite{}, invalid("this is a token, not an invitation code; store it with 'memsync-agent login'")
	case !ok:
		return Invite{}, invalid("this is no invitation code; one begins with %s, as 'memsvc invite' prints it", InvitePrefix)
	case len(code) > maxInviteBytes:
		return Invite{}, invalid("invitation code: %d characters are too many; copy the one word that begins with %s", len(code), InvitePrefix)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil || strings.ContainsAny(body, "\r\n") || len(raw) <= inviteSumBytes { // the decoder overlooks line ends
		return Invite{}, damagedInvite()
	}
	b, sum := raw[:len(raw)-inviteSumBytes], raw[len(raw)-inviteSumBytes:]
	if !bytes.Equal(sum, inviteSum(b)) {
		return Invite{}, damagedInvite()
	}
	if b[0] != inviteVersion {
		return Invite{}, invalid("invitation code: of version %d, this program reads version %d; update memsync-agent", b[0], inviteVersion)
	}
	v, ok := readInvite(b[1:])
	if !ok {
		return Invite{}, damagedInvite()
	}
	if err := v.check(); err != nil {
		return Invite{}, err
	}
	return v, nil
}

func damagedInvite() error {
	return invalid("invitation code: mistyped or cut off; copy the whole word that 'memsvc invite' printed")
}

func inviteSum(b []byte) []byte {
	sum := sha256.Sum256(append([]byte("memsvc invitation\x00"), b...))
	return sum[:inviteSumBytes]
}

// readInvite reads what follows the version byte. Only what Encode writes is read, so
// that there is one code for one invitation.
func readInvite(b []byte) (v Invite, ok bool) {
	number := func() (uint64, bool) {
		n, size := binary.Uvarint(b)
		if size <= 0 || len(binary.AppendUvarint(nil, n)) != size {
			return 0, false
		}
		b = b[size:]
		return n, true
	}
	next := func() ([]byte, bool) {
		n, ok := number()
		if !ok || n > uint64(len(b)) {
			return nil, false
		}
		s := b[:n]
		b = b[n:]
		return s, true
	}
	for _, to := range []*string{&v.Hub, (*string)(&v.Project.Team), (*string)(&v.Project.Project), &v.Token} {
		s, ok := next()
		if !ok {
			return Invite{}, false
		}
		*to = string(s)
	}
	n, ok := number()
	if !ok || n > maxInviteCerts {
		return Invite{}, false
	}
	var out strings.Builder
	for range n {
		der, ok := next()
		if !ok {
			return Invite{}, false
		}
		out.Write(pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der}))
	}
	v.CA = out.String()
	return v, len(b) == 0
}

// check refuses what no hub could be reached with.
func (v Invite) check() error {
	host, port, err := net.SplitHostPort(v.Hub)
	if err != nil || host == "" || len(v.Hub) > maxInviteHub || !oneWord(v.Hub) {
		return invalid("invitation: the hub's address is not host:port, like hub.example:7420")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return invalid("invitation: the hub's port is not a number from 1 to 65535")
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		return invalid("invitation: %s is no address that a machine can be reached at; name the one that others use", host)
	}
	if _, err := memory.ParseTeam(string(v.Project.Team)); err != nil {
		return err
	}
	if _, err := memory.ParseProject(string(v.Project.Project)); err != nil {
		return err
	}
	if v.Token == "" || len(v.Token) > maxTokenBytes || !oneWord(v.Token) {
		return invalid("invitation: there is no token in it; ask for another code")
	}
	_, err = certificates(v.CA)
	return err
}

func oneWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

const certificateBlock = "CERTIFICATE"

// certificates returns the certificates of a PEM text in DER; none for no text.
func certificates(text string) ([][]byte, error) {
	if text == "" {
		return nil, nil
	}
	var out [][]byte
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != certificateBlock {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, invalid("invitation: an authority's certificate cannot be read; name a CA file in PEM")
		}
		out = append(out, block.Bytes)
	}
	switch {
	case len(out) == 0:
		return nil, invalid("invitation: no certificate in the CA file; want PEM")
	case len(out) > maxInviteCerts:
		return nil, invalid("invitation: %d authorities are too many, the limit is %d; name a CA file with the one alone", len(out), maxInviteCerts)
	}
	return out, nil
}
