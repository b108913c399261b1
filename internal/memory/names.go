package memory

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxSlugBytes leaves room in a segment for the type and the extension, and in a
// listing for the rest of the line.
const maxSlugBytes = 120

// FileName returns the name of a new memory, {type}_{slug}.md (SPEC 2.3). A type
// outside the set, or a name without a letter or digit, is an ErrInvalidArgument.
func FileName(t Type, name string) (string, error) {
	if _, ok := ParseType(string(t)); !ok {
		return "", &Error{Reason: ReasonInvalidArgument, Message: "type of a new memory: use one of " + TypeNames()}
	}
	slug := Slug(name)
	if slug == "" {
		return "", &Error{Reason: ReasonInvalidArgument, Message: "name of a new memory: it holds no letter or digit; give it a name in words"}
	}
	return string(t) + "_" + slug + Extension, nil
}

// Slug returns name in NFC and lower case with the letters and digits of any script,
// joined by '_', or by '-' where the name itself has only hyphens. Everything else
// separates words. A long name is cut between words, or within one that is too long.
func Slug(name string) string {
	name = norm.NFC.String(strings.ToLower(strings.ToValidUTF8(name, " ")))
	var b strings.Builder
	sep := byte(0) // what separates the word to come from the last one; 0 = nothing
	for _, r := range name {
		switch {
		case isWordRune(r):
			if sep != 0 && b.Len() > 0 {
				b.WriteByte(sep)
			}
			sep = 0
			b.WriteRune(r)
		case r == '-' && sep == 0:
			sep = '-'
		case r == '\'' || r == '’':
			// don't becomes dont, not don_t.
		default:
			if r != '-' {
				sep = '_'
			}
		}
	}
	return cutSlug(norm.NFC.String(b.String()))
}

// isWordRune reports whether r belongs to a word: a letter, a decimal digit, or a
// mark on one (Hindi and Thai cannot do without).
func isWordRune(r rune) bool {
	return unicode.In(r, unicode.L, unicode.Nd, unicode.Mn, unicode.Mc) && !isInvisible(r)
}

func cutSlug(s string) string {
	if len(s) <= maxSlugBytes {
		return s
	}
	if i := strings.LastIndexAny(s[:maxSlugBytes+1], "_-"); i > maxSlugBytes/2 {
		return s[:i]
	}
	i := maxSlugBytes
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	return strings.TrimRight(s[:i], "_-")
}
