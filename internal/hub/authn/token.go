package authn

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
	"strings"
)

// The form of a token: Prefix, 43 digits of base 62 for 32 random bytes, and 6 for a
// checksum over them, so that the guard and the hub know a token when they see one
// and a mistyped one costs no look-up.
const (
	Prefix      = "msv_"
	secretBytes = 32
	secretChars = 43 // 62^43 > 2^256
	sumChars    = 6  // 62^6 > 2^32
	tokenLen    = len(Prefix) + secretChars + sumChars
	alphabet    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// Mint returns a new token: its text, which is shown once, the id by which it is
// listed and revoked, and the hash to keep.
func Mint() (text, id, hash string, err error) { return mint(rand.Reader) }

func mint(random io.Reader) (text, id, hash string, err error) {
	var b [secretBytes + 8]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", "", "", fmt.Errorf("token: no randomness: %w", err)
	}
	body := base62(new(big.Int).SetBytes(b[:secretBytes]), secretChars)
	text = Prefix + body + checksum(body)
	return text, "tok-" + hex.EncodeToString(b[secretBytes:]), Hash(text), nil
}

// Hash returns what is kept of a token: the lower-case hex SHA-256 of its text. A
// token holds 256 random bits, so that a fast hash is enough.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// WellFormed reports whether text has the form of a token, checksum included.
func WellFormed(text string) bool {
	if len(text) != tokenLen || !strings.HasPrefix(text, Prefix) {
		return false
	}
	body, sum := text[len(Prefix):len(Prefix)+secretChars], text[len(Prefix)+secretChars:]
	return sum == checksum(body)
}

func checksum(body string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(body)))), sumChars)
}

// base62 writes n with exactly width digits, the most significant first.
func base62(n *big.Int, width int) string {
	out := make([]byte, width)
	base, digit := big.NewInt(62), new(big.Int)
	n = new(big.Int).Set(n)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		out[i] = alphabet[digit.Int64()]
	}
	return string(out)
}
