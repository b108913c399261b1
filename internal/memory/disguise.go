package memory

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// brokenDisguiseRule finds separators, dot segments and NULs that s does not hold
// but that a program would see which applies NFKC or percent-decoding to it, in any
// order and repeatedly. s itself has passed the other rules.
func brokenDisguiseRule(s string) (rule string, at int, msg string) {
	form := s
	for round := 0; ; round++ {
		compat := norm.NFKC.String(form)
		if compat != form && revealsTraversal(form, compat) {
			if round == 0 {
				return RulePathCompatibility, compatOffset(s), "a character stands for a separator or a dot segment in compatibility form; rename the file"
			}
			return percentBroken(s)
		}
		decoded, hostile := percentDecode(compat)
		if hostile {
			return percentBroken(s)
		}
		if decoded == compat {
			return "", 0, ""
		}
		if hasDotSegment(decoded) || round+1 == maxDecodeRounds {
			return percentBroken(s)
		}
		form = decoded
	}
}

func percentBroken(s string) (rule string, at int, msg string) {
	at = strings.IndexAny(s, "%％﹪")
	return RulePathPercent, max(at, 0), "a percent-encoding stands for a separator, a dot segment or NUL; rename the file"
}

// revealsTraversal reports whether the compatibility form of a text has separators,
// NULs or dot segments that the text has not.
func revealsTraversal(before, after string) bool {
	for _, c := range [...]byte{'/', '\\', 0} {
		if strings.Count(after, string(rune(c))) > strings.Count(before, string(rune(c))) {
			return true
		}
	}
	return hasDotSegment(after)
}

func hasDotSegment(s string) bool {
	for seg := range strings.SplitSeq(s, "/") {
		if seg == "." || seg == ".." {
			return true
		}
	}
	return false
}

// compatOffset finds where the compatibility form turns hostile: the character that
// becomes a separator, else the segment that becomes a dot segment.
func compatOffset(s string) int {
	for i, r := range s {
		if c := string(r); strings.ContainsAny(norm.NFKC.String(c), "/\\\x00") && c != "/" {
			return i
		}
	}
	start := 0
	for seg := range strings.SplitSeq(s, "/") {
		if hasDotSegment(norm.NFKC.String(seg)) {
			return start
		}
		start += len(seg) + 1
	}
	return 0
}

// percentDecode undoes one level of percent-encoding. hostile says that s comes back
// unchanged, because a decoded byte is a separator or NUL, or begins an overlong UTF-8
// form, which only serves to hide one.
func percentDecode(s string) (decoded string, hostile bool) {
	if strings.IndexByte(s, '%') < 0 {
		return s, false
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' || i+2 >= len(s) {
			out = append(out, s[i])
			continue
		}
		hi, okHi := unhex(s[i+1])
		lo, okLo := unhex(s[i+2])
		if !okHi || !okLo {
			out = append(out, s[i])
			continue
		}
		c := hi<<4 | lo
		switch c {
		case '/', '\\', 0, 0xC0, 0xC1:
			return s, true
		}
		if n := len(out); n > 0 && (out[n-1] == 0xE0 && c < 0xA0 && c >= 0x80 || out[n-1] == 0xF0 && c < 0x90 && c >= 0x80) {
			return s, true
		}
		out = append(out, c)
		i += 2
	}
	return string(out), false
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
