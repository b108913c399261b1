package memory

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// RedactionFingerprint is the keyed fingerprint by which a redacted text is known
// again: an HMAC under the team's key of the text with line ends and trailing space
// made equal, so that a saved copy matches. It is 64 digits of lower-case hex.
func RedactionFingerprint(key, content []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("memsvc redacted text\x00"))
	for line := range bytes.Lines(bytes.TrimRight(content, " \t\r\n")) {
		h.Write(bytes.TrimRight(line, " \t\r\n"))
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil))
}
