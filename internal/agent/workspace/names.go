package workspace

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names of our temporary files: hidden, short whatever the target's name, and unlike
// anybody else's.
const (
	tempPrefix = ".msync-"
	tempSuffix = ".tmp"
	tempHex    = 16
)

func newTempName() string {
	var b [tempHex / 2]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return tempPrefix + hex.EncodeToString(b[:]) + tempSuffix
}

// isTempName reports whether name is one that newTempName makes.
func isTempName(name string) bool {
	mid, ok := strings.CutPrefix(name, tempPrefix)
	if !ok {
		return false
	}
	mid, ok = strings.CutSuffix(mid, tempSuffix)
	if !ok || len(mid) != tempHex {
		return false
	}
	return strings.Trim(mid, "0123456789abcdef") == ""
}

func isHidden(name string) bool { return strings.HasPrefix(name, ".") }

// isMemoryName reports whether a visible file of this name may be a memory. What
// editors leave behind (x.md~, #x.md#, 4913, x.md.bak, sedXXXXXX) never ends in .md.
func isMemoryName(name string) bool { return strings.HasSuffix(name, ".md") }

// isNearMiss reports whether name was most likely meant to be a memory and cannot be
// one: .md in other letters, or blanks and dots behind it. Such a file is refused with
// the rule it breaks instead of being passed over.
func isNearMiss(name string) bool {
	trimmed := strings.TrimRightFunc(name, func(r rune) bool { return r == '.' || unicode.IsSpace(r) })
	return !isMemoryName(name) && len(trimmed) > len(".md") && strings.EqualFold(trimmed[len(trimmed)-len(".md"):], ".md")
}

// plain returns name as text for a person: quoted unless it is plain.
func plain(name string) string {
	if utf8.ValidString(name) && strings.TrimSpace(name) == name {
		if q := strconv.QuoteToGraphic(name); q[1:len(q)-1] == name {
			return name
		}
	}
	return strconv.QuoteToASCII(name)
}
