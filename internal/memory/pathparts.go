package memory

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Base returns the last segment: the file name.
func (p Path) Base() string {
	return string(p[strings.LastIndexByte(string(p), '/')+1:])
}

// Dir returns all but the last segment, without a slash at its end; "" for a file
// directly below team/.
func (p Path) Dir() string {
	i := strings.LastIndexByte(string(p), '/')
	if i < 0 {
		return ""
	}
	return string(p[:i])
}

// Segments returns the names between the slashes, the file name last.
func (p Path) Segments() []string { return strings.Split(string(p), "/") }

// IsIndex reports whether p is an index: its base name is MEMORY.md, exactly spelled.
func IsIndex(p Path) bool { return p.Base() == IndexName }

// FoldKey returns the case-folded NFC form of p. Two paths with the same key cannot
// both exist on every disk that readers use. FoldKey of a FoldKey is itself.
func (p Path) FoldKey() string { return foldText(string(p)) }

// FoldPrefixes returns the FoldKey of every prefix of p that ends at a segment, the
// shortest first and p's own last.
func (p Path) FoldPrefixes() []string {
	key := p.FoldKey()
	var out []string
	for i := 0; i < len(key); i++ {
		if key[i] == '/' {
			out = append(out, key[:i])
		}
	}
	return append(out, key)
}

// foldText folds case by Unicode's full default folding. It folds the decomposed
// form, since a few composed characters (those with an iota below) fold differently
// from their parts, and composes at the end.
func foldText(s string) string {
	ascii, upper := true, false
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
		upper = upper || 'A' <= s[i] && s[i] <= 'Z'
	}
	if ascii {
		if !upper {
			return s
		}
		return strings.ToLower(s)
	}
	// A Caser keeps state, so each call has its own.
	return norm.NFC.String(strings.Map(foldCherokee, cases.Fold().String(norm.NFD.String(s))))
}

// foldCherokee folds the one script whose folding goes to capitals. x/text swaps its
// cases instead, so that the two spellings of a name would never meet.
func foldCherokee(r rune) rune {
	switch {
	case 0xAB70 <= r && r <= 0xABBF:
		return r - 0xAB70 + 0x13A0
	case 0x13F8 <= r && r <= 0x13FD:
		return r - 0x13F8 + 0x13F0
	}
	return r
}
