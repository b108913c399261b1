package memory

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// RuleRedacted is the rule of a Violation: the text, or a secret in it, was redacted.
const RuleRedacted = "redacted"

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

// redactionMark begins every redaction marker, whatever the version of the hub that
// wrote it.
const redactionMark = "<!-- memsvc: redacted"

// RedactionMarker is what readers see in the place of a redacted text.
const RedactionMarker = redactionMark + ": an admin removed this text and its earlier versions. -->\n"

// IsRedactionMarker reports whether content is a redaction's marker and nothing else. What
// a person writes below one is a text like any other.
func IsRedactionMarker(content []byte) bool {
	text := bytes.TrimSpace(content)
	end := []byte("-->")
	return bytes.HasPrefix(text, []byte(redactionMark)) && bytes.Index(text, end) == len(text)-len(end) && !bytes.ContainsAny(text, "\r\n")
}
