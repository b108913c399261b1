package secretscan

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxEntity is the longest HTML entity looked at, in bytes: the longest name has 33.
const maxEntity = 36

// normalise returns v with NFKC applied, invisible characters dropped, HTML entities and Markdown escapes resolved and Unicode line ends
// written as newlines; or nil if that changes nothing.
func normalise(v *variant) *variant {
	s := v.s
	at := firstOdd(s, 0)
	if at < 0 {
		return nil
	}
	b := &builder{parent: v}
	kept := 0 // everything before is in b
	changed := false
	replace := func(from, to int, text string) {
		b.keep(kept, from)
		b.put(text, from, to)
		kept = to
		changed = true
	}
	for at >= 0 {
		end := at + 1
		switch c := s[at]; {
		case c == '&':
			if n := strings.IndexByte(s[at:min(at+maxEntity, len(s))], ';'); n > 1 {
				if text := html.UnescapeString(s[at : at+n+1]); text != s[at:at+n+1] {
					end = at + n + 1
					replace(at, end, norm.NFKC.String(dropInvisible(text)))
				}
			}
		case c == '\\':
			// Markdown's escapes: "ghp\_…" is read as "ghp_…".
			if end < len(s) && strings.IndexByte("_*`~[]#-", s[end]) >= 0 {
				replace(at, end, "")
			}
		case c < utf8.RuneSelf:
			replace(at, end, "")
		default:
			end = at + strings.IndexFunc(s[at:], func(r rune) bool { return r < utf8.RuneSelf })
			if end < at {
				end = len(s)
			}
			chunk := s[at:end]
			if text := norm.NFKC.String(dropInvisible(chunk)); text != chunk {
				replace(at, end, text)
			}
		}
		at = firstOdd(s, end)
	}
	if !changed {
		return nil
	}
	b.keep(kept, len(s))
	return b.variant()
}

// firstOdd finds the next byte that normalisation may touch: non-ASCII, a control other than white space, "&" or "\".
func firstOdd(s string, from int) int {
	for i := from; i < len(s); i++ {
		if c := s[i]; c >= 0x7f || c == '&' || c == '\\' || c < ' ' && !isSpace(c) {
			return i
		}
	}
	return -1
}

// dropInvisible removes what a reader cannot see and writes Unicode's line ends as newlines.
func dropInvisible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u2028' || r == '\u2029' || r == '\u0085':
			return '\n'
		case r < 0x80 && (r >= ' ' || isSpace(byte(r))) && r != 0x7f:
			return r
		case invisible(r):
			return -1
		}
		return r
	}, s)
}

// invisible reports format characters (Cf: zero-width, bidi, soft hyphen, tags), controls, variation selectors and the
// other characters that Unicode says to ignore when they cannot be shown.
func invisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Cc, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
