package memory

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Path is a memory's path below team/, in NFC, with '/' between segments, as
// ParsePath returned it.
type Path string

// IndexName is the base name of an index, exactly spelled (SPEC 2.4).
const IndexName = "MEMORY.md"

// Extension is what every path ends in, exactly spelled (SPEC 2.7).
const Extension = ".md"

// Bounds of a path, in bytes of its NFC form (SPEC 2.7, fixed).
const (
	MaxPathBytes    = 1024
	MaxSegmentBytes = 255
)

// The rules of SPEC 2.7 and rulings 13.10 and 13.11, as a Violation names them.
const (
	RulePathEmpty          = "path-empty"            // no text at all
	RulePathTooLong        = "path-too-long"         // over MaxPathBytes
	RulePathUTF8           = "path-utf8"             // bytes that are not UTF-8
	RulePathNUL            = "path-nul"              // a NUL byte
	RulePathAbsolute       = "path-absolute"         // /x, \\x, C:x
	RulePathBackslash      = "path-backslash"        // a backslash anywhere
	RulePathColon          = "path-colon"            // a colon: drives and alternate streams
	RulePathControl        = "path-control"          // control, format, zero-width, line-separator characters
	RulePathNotNFC         = "path-not-nfc"          // not in Unicode normal form C
	RulePathCompatibility  = "path-compatibility"    // NFKC would introduce a separator, NUL or dot segment
	RulePathPercent        = "path-percent-encoding" // percent-decoding would
	RulePathEmptySegment   = "path-empty-segment"    // a//b, a/
	RulePathDotSegment     = "path-dot-segment"      // . or ..
	RulePathHidden         = "path-hidden"           // a segment that begins with a dot
	RulePathTrailing       = "path-trailing"         // a segment that ends in a dot or a space
	RulePathReserved       = "path-reserved-name"    // CON, nul.md, com1.x.md
	RulePathSegmentTooLong = "path-segment-too-long" // over MaxSegmentBytes
	RulePathExtension      = "path-extension"        // does not end in .md
)

// maxDecodeRounds bounds how often a path is percent-decoded. Text that still
// changes after so many rounds was made to deceive.
const maxDecodeRounds = 8

// ParsePath turns text into a Path, or an ErrInvalidPath whose one violation says
// which rule is broken and at which byte. It is the only parser of paths, on hub
// and agent alike. It changes nothing: an accepted text is its own Path. Text that
// is merely not in NFC, as some disks name files, goes through NormalizePath first.
func ParsePath(s string) (Path, error) {
	if rule, at, msg := brokenPathRule(s); rule != "" {
		return "", invalidPath(s, rule, at, msg)
	}
	return Path(s), nil
}

// NormalizePath returns s in NFC, the form of keys on the wire. It judges nothing.
func NormalizePath(s string) string { return norm.NFC.String(s) }

func invalidPath(s, rule string, at int, msg string) error {
	return &Error{
		Reason:  ReasonInvalidPath,
		Message: "invalid path",
		Violations: []Violation{{
			Path:    quoteCut(s),
			Rule:    rule,
			Message: fmt.Sprintf("at byte %d: %s", at, msg),
		}},
	}
}

// maxViolationPath is what Violation.Path promises, in bytes.
const maxViolationPath = 256

// quoteCut returns a text that is no path as Violation.Path: escaped, so that control
// characters cannot reach a terminal, and cut.
func quoteCut(s string) string {
	if len(s) > maxViolationPath {
		s = s[:maxViolationPath]
	}
	q := strconv.QuoteToGraphic(s)
	return cutText(q[1 : len(q)-1])
}

// cutText returns s as Violation.Path: as it is, unless it is too long.
func cutText(s string) string {
	if len(s) <= maxViolationPath {
		return s
	}
	cut := maxViolationPath - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// brokenPathRule returns the first broken rule, the byte offset where it is broken
// and what to do; "" when s is a path. The order is from the hostile to the clumsy,
// so that ../x is a dot segment and not a missing extension.
func brokenPathRule(s string) (rule string, at int, msg string) {
	if s == "" {
		return RulePathEmpty, 0, "the path is empty; give a file name ending in .md"
	}
	if len(s) > MaxPathBytes {
		return RulePathTooLong, MaxPathBytes, fmt.Sprintf("the path has %d bytes, the limit is %d; shorten it", len(s), MaxPathBytes)
	}
	if s[0] == '/' {
		return RulePathAbsolute, 0, "the path is absolute; paths are relative to the team directory"
	}
	if s[0] == '\\' {
		return RulePathAbsolute, 0, "the path begins with a backslash; paths are relative and use '/'"
	}
	ascii, percent := true, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			ascii = false
		case c == '%':
			percent = true
		case c == 0:
			return RulePathNUL, i, "the path holds a NUL byte; remove it"
		case c == '\\':
			return RulePathBackslash, i, "the path holds a backslash; use '/' between segments"
		case c == ':':
			if i == 1 && isASCIILetter(s[0]) {
				return RulePathAbsolute, 0, "the path names a drive; paths are relative to the team directory"
			}
			return RulePathColon, i, "the path holds a colon, which Windows cannot store; rename the file"
		case c < 0x20 || c == 0x7f:
			return RulePathControl, i, "the path holds a control character; rename the file"
		}
	}
	if !ascii {
		if rule, at, msg := brokenUnicodeRule(s); rule != "" {
			return rule, at, msg
		}
	}
	if rule, at, msg := brokenSegmentRule(s); rule != "" {
		return rule, at, msg
	}
	if percent || !ascii {
		if rule, at, msg := brokenDisguiseRule(s); rule != "" {
			return rule, at, msg
		}
	}
	if !strings.HasSuffix(s, Extension) {
		return RulePathExtension, len(s), "the path does not end in .md; only Markdown files are shared"
	}
	return "", 0, ""
}

func isASCIILetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// brokenUnicodeRule checks the characters of a path that is not pure ASCII.
func brokenUnicodeRule(s string) (rule string, at int, msg string) {
	for i, r := range s {
		if r < utf8.RuneSelf {
			continue
		}
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return RulePathUTF8, i, "the path is not UTF-8; rename the file"
			}
		}
		if isInvisible(r) {
			return RulePathControl, i, fmt.Sprintf("the path holds %U, a control or format character nobody can see; rename the file", r)
		}
	}
	if !norm.NFC.IsNormalString(s) {
		return RulePathNotNFC, commonPrefix(s, norm.NFC.String(s)), "the path is not in Unicode normal form C; send the NFC spelling"
	}
	return "", 0, ""
}

// isInvisible reports whether r directs text without being seen: controls, format
// characters (bidi, zero-width, tags), line separators, and letters that render as
// nothing (the Hangul fillers). Variation selectors stay allowed: they are part of
// how emoji are written.
func isInvisible(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// brokenSegmentRule checks what stands between the slashes.
func brokenSegmentRule(s string) (rule string, at int, msg string) {
	for start := 0; start <= len(s); {
		end := strings.IndexByte(s[start:], '/')
		if end < 0 {
			end = len(s)
		} else {
			end += start
		}
		seg := s[start:end]
		switch {
		case seg == "":
			return RulePathEmptySegment, start, "a segment is empty; write one '/' between names and none at the end"
		case seg == "." || seg == "..":
			return RulePathDotSegment, start, "a segment is '.' or '..'; write the path without them"
		case seg[0] == '.':
			return RulePathHidden, start, "a segment begins with a dot; hidden files are not shared"
		case len(seg) > MaxSegmentBytes:
			return RulePathSegmentTooLong, start, fmt.Sprintf("a segment has %d bytes, the limit is %d; shorten the name", len(seg), MaxSegmentBytes)
		case endsInDotOrSpace(seg):
			return RulePathTrailing, end - 1, "a segment ends in a dot or a space, which Windows drops; rename it"
		case isReservedName(seg):
			return RulePathReserved, start, "a segment is a device name on Windows; rename it"
		}
		start = end + 1
	}
	return "", 0, ""
}

func endsInDotOrSpace(seg string) bool {
	last := seg[len(seg)-1]
	if last < utf8.RuneSelf {
		return last == '.' || last == ' '
	}
	r, _ := utf8.DecodeLastRuneInString(seg)
	return unicode.IsSpace(r)
}

// isReservedName reports whether Windows takes seg for a device, whatever stands
// after its first dot: CON, nul.md, com1.foo.md, LPT¹.
func isReservedName(seg string) bool {
	base, _, _ := strings.Cut(seg, ".")
	base = strings.TrimRight(base, " ")
	if len(base) < 3 || len(base) > 7 || strings.IndexByte("CPANL", base[0]&^0x20) < 0 {
		return false
	}
	switch upper := strings.ToUpper(base); upper {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	default:
		port := strings.HasPrefix(upper, "COM") || strings.HasPrefix(upper, "LPT")
		if !port {
			return false
		}
		switch upper[3:] {
		case "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³":
			return true
		}
	}
	return false
}
