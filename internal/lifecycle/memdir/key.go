package memdir

import (
	"strconv"
	"strings"
	"unicode/utf16"

	"golang.org/x/text/unicode/norm"
)

// maxKeyChars is how much of a key clients keep as it is; what is longer ends in a hash
// whose algorithm depends on the client's runtime, so that such a directory is found by
// its first maxKeyChars characters (SPEC 2.6).
const maxKeyChars = 200

// Key returns the name that clients give the project directory of an absolute path:
// every character outside [A-Za-z0-9] becomes a dash, one for each UTF-16 code unit,
// since that is what their regular expressions see. It may be longer than maxKeyChars,
// and different paths may share one.
func Key(path string) string {
	var b strings.Builder
	for _, r := range norm.NFC.String(path) {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			b.WriteRune(r)
		default:
			b.WriteString(strings.Repeat("-", max(utf16.RuneLen(r), 1)))
		}
	}
	return b.String()
}

// newKey is the name of a directory that no client has made yet. The hash of a long one
// is the common string hash of JavaScript programs, in base 36.
func newKey(path string) string {
	key := Key(path)
	if len(key) <= maxKeyChars {
		return key
	}
	var h int32
	for _, u := range utf16.Encode([]rune(norm.NFC.String(path))) {
		h = 31*h + int32(u)
	}
	n := int64(h)
	if n < 0 {
		n = -n
	}
	return key[:maxKeyChars] + "-" + strconv.FormatInt(n, 36)
}
