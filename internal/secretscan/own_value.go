package secretscan

import (
	"strings"
	"unicode/utf8"
)

const (
	// maxValue bounds a value, in bytes.
	maxValue = 200
	// minPassword is the shortest value taken for a password, in bytes.
	minPassword = 6
	// minWordless is the shortest value of letters alone taken for one, in bytes.
	minWordless = 12
)

// readValue reads the value at i: past space and marks, up to the closing quote or the next space.
func readValue(s string, i int) (value string, from int, quoted bool) {
	lines := 0
	quote := byte(0)
	for start := i; i < len(s) && i < start+48; i++ {
		c := s[i]
		if c == '\n' {
			if lines++; lines > 3 {
				return "", 0, false
			}
		}
		if isSpace(c) || c == '*' || c == '|' && lines == 0 || lines > 0 && (c == '>' || c == '-' && i+1 < len(s) && s[i+1] == ' ') {
			continue
		}
		if c == '`' || c == '"' || c == '\'' {
			quote = c
			continue
		}
		if c == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\'') {
			continue
		}
		if quote == 0 && isLetter(c) && i+1 < len(s) && (s[i+1] == '\'' || s[i+1] == '"') {
			continue // N'…' of SQL, b"…" of Python
		}
		if n := typographicQuote(s[i:]); n > 0 {
			i += n - 1
			continue
		}
		break
	}
	if lines > 0 && quote == '`' {
		// The language of a code fence is no value.
		if nl := strings.IndexByte(s[i:min(i+12, len(s))], '\n'); nl > 0 && charStats(s[i:i+nl]).kinds() == 1 && i+nl+1 < len(s) {
			i += nl + 1
		}
	}
	to := i
	for to < len(s) && to < i+maxValue {
		c := s[to]
		if c == '\n' || c == '\r' || c == '\t' || c == '`' || c == '"' || c == '|' {
			break
		}
		if quote != 0 && c == quote {
			break
		}
		if quote != '"' && quote != '`' && quote != '\'' && (isSpace(c) || c == ',' && (to+1 == len(s) || isSpace(s[to+1])) || c == '\'' || strings.HasPrefix(s[to:], "**") || strings.HasPrefix(s[to:], "</")) {
			break
		}
		if c >= 0x80 && (hasCJK(s[to:]) || typographicQuote(s[to:]) > 0) {
			break
		}
		to++
	}
	value = s[i:to]
	if quote == 0 || !(to < len(s) && s[to] == quote) {
		quote = 0
		if word, _, _ := strings.Cut(value, " "); strings.HasSuffix(word, "...") {
			return "", 0, false // cut short on purpose
		}
		value = strings.TrimRight(value, ".,;:)]}*_>\\ (")
		if sp := strings.IndexByte(value, ' '); sp >= 0 {
			value = strings.TrimRight(value[:sp], ".,;:)]}*_>\\")
		}
	}
	value = strings.TrimRight(value, " ")
	if lines > 0 && to < len(s) && s[to] != '\n' && quote == 0 && strings.TrimSpace(s[to:lineStop(s, to)]) != "" {
		return "", 0, false // running text in the next line
	}
	return value, i, quote != 0
}

// typographicQuote returns the length of the quotation mark that s begins with, and of the blank that French puts behind
// it; 0 if there is none.
func typographicQuote(s string) int {
	if s[0] < 0xc2 {
		return 0
	}
	for _, q := range []string{"« ", "«", "»", "“", "”", "„", "‘", "’", "‚", "「", "『", "【"} {
		if strings.HasPrefix(s, q) {
			return len(q)
		}
	}
	return 0
}

// hasCJK reports whether s begins with a Chinese, Japanese or Korean character or their punctuation.
func hasCJK(s string) bool {
	if len(s) < 3 {
		return false
	}
	if s[0] == 0xef { // full-width punctuation: a full-width letter may be a part of the value
		r, _ := utf8.DecodeRuneInString(s)
		return strings.ContainsRune("（），。：；！？", r)
	}
	return s[0] >= 0xe3 && s[0] <= 0xed
}

// realPassword reports whether a value looks like a password that somebody uses.
func realPassword(v string, k link, quoted bool) bool {
	if len(v) < minPassword || len(v) > maxValue {
		return false
	}
	st := charStats(v)
	if st.other > 0 || st.letters() == len(v) && (len(v) < minWordless || st.upper < 2 || st.lower < 2) {
		return false // a word, most often; the tests below cost more
	}
	if placeholder(v) || reference(v) {
		return false
	}
	if strings.Contains(v, " ") {
		return quoted && passphrase(v)
	}
	if namesPassword(v, st) || !quoted && (v[0] == '.' || v[0] == '?') {
		return false
	}
	if v[0] == '-' || v[0] == '&' || v[0] == ',' || v[0] == '#' && (isHex(v[1:]) || st.digits == 0 && st.upper == 0 && wordish(v[1:])) {
		return false
	}
	strong := 0 // marks that names, paths and lists do not hold
	for i := range len(v) {
		if c := v[i]; !isAlnum(c) && strings.IndexByte("-_./:=,;<>()[]'", c) < 0 {
			strong++
		}
	}
	trimmed := strings.TrimRight(v, "!?")
	switch {
	case st.letters() == 0:
		return st.digits >= 6 && st.digits <= 12 && st.marks == 0 && k == linkSign
	case st.digits == 0 && strong == 0 || charStats(trimmed).marks == 0 && st.digits == 0:
		// Letters alone: a word, unless a generator made it or it is a phrase of words.
		return passphrase(v) && k != linkSpace || !wordish(v) && len(v) >= minWordless && st.upper > 1 && st.lower > 1
	case strong > 0:
		return st.letters() >= 2
	case strings.ContainsAny(v, "._-/:"):
		// Names of things have marks between words; a password also has capitals and digits.
		if wordish(v) {
			if strings.ContainsAny(v, "./:") || st.upper == 0 || st.lower == 0 {
				return false
			}
			return st.digits > 0 && len(v) >= 10 && strings.IndexByte(v, '_') < 0 || st.digits > 2 && len(v) >= 8 && st.marks == 1
		}
		return true
	}
	if k == linkWord && !quoted {
		return st.digits > 0 && (st.upper > 0 || st.digits > 1 || len(v) >= 10 && !wordish(v))
	}
	return true
}

// namesPassword reports identifiers of code that speak of a password: "hashedPassword2".
func namesPassword(v string, st stats) bool {
	if st.digits > 2 || !isName(v) {
		return false
	}
	low := strings.ToLower(v)
	return containsAny(low, []string{"password", "passwd", "pwd", "passphrase"}) || strings.HasSuffix(strings.TrimRight(low, "0123456789"), "pw")
}

// passphrase reports four or more words joined by dashes or spaces.
func passphrase(v string) bool {
	words := strings.FieldsFunc(v, func(r rune) bool { return r == '-' || r == ' ' || r == '_' || r == '.' })
	if len(words) < 4 || len(words) > 8 {
		return false
	}
	for _, w := range words {
		if len(w) < 3 || charStats(w).letters() != len(w) || notSecretPart(strings.ToLower(w)) || placeholder(w) {
			return false
		}
	}
	return true
}
