package secretscan

import "strings"

// link is how a name and its value are joined.
type link int

const (
	linkNone  link = iota
	linkSign       // "=", ":", "=>", "->" directly
	linkCell       // the next table cell
	linkWord       // "is", "was", "是", "为", "set to"
	linkSpace      // nothing but space, before a quote or after a flag
)

// link reads what stands between the name that ends at i and its value. It returns where the value may begin.
func (p *pass) link(start, i int) (link, int) {
	s := p.v.s
	marks := i
	for marks < len(s) && marks < i+8 && (strings.IndexByte(" \t*`\"'_])", s[marks]) >= 0 || s[marks] == '\\' && byteAt(s, marks+1) == '"') {
		marks++
	}
	if marks == len(s) {
		return linkNone, 0
	}
	if k, at := sign(s, marks); k != linkNone {
		return k, at
	}
	if s[marks] == '<' && byteAt(s, marks+1) == '/' {
		return closed(s, marks)
	}
	if s[i] == '>' && opened(s, start) {
		if value, from, _ := readValue(s, i+1); value != "" && strings.HasPrefix(s[from+len(value):], "</") {
			return linkSign, i + 1 // an XML element
		}
	}
	if s[marks] == '\n' || s[marks] == '\r' {
		// A heading, with the value alone below it.
		if head := s[lineStart(s, start):start]; strings.HasPrefix(head, "#") || strings.HasPrefix(head, "**") {
			return linkWord, marks
		}
	}
	if s[i] == ' ' && marks > i && isFlag(s, start) {
		return linkSpace, i + 1
	}
	if s[i] == ' ' && strings.ContainsAny(s[i:marks], "`\"'") {
		return linkSpace, i + 1 // password `value`, WITH PASSWORD 'value'
	}
	if at := argument(s, i); at > 0 {
		return linkSpace, at
	}
	if strings.HasPrefix(s[i:], " (") {
		if value, from, _ := readValue(s, i+2); telling(value) && strings.HasPrefix(strings.TrimLeft(s[from+len(value):], "`\"'*"), ")") {
			return linkSpace, i + 2 // the password (VALUE)
		}
	}
	if s[marks] == '>' && marks == i+1 && s[i] != ' ' {
		if value, from, _ := readValue(s, marks+1); value != "" && strings.HasPrefix(s[from+len(value):], "</") {
			return linkSign, marks + 1 // <entry key="password">value</entry>
		}
	}
	if k, at := sentence(s, i); k != linkNone {
		return k, at
	}
	if s[i] == ' ' && strings.TrimLeft(s[i:marks], " ") == "" {
		// "password VALUE": only for values that are no word of the sentence.
		value, from, quoted := readValue(s, i)
		if value == "0" || value == "7" {
			// Routers say first how the password is written: plainly, or reversibly.
			i = from + 1
			value, _, quoted = readValue(s, i)
		}
		if telling(value) || realPassword(value, linkSpace, quoted) && (netrc(s, start) || setter(s, start) || listed(s, start) && charStats(value).kinds() >= 3) {
			return linkSpace, i
		}
	}
	return linkNone, 0
}

// opened reports whether the name around start is the name of an XML element.
func opened(s string, start int) bool {
	for floor := max(0, start-40); start > floor && (isAlnum(s[start-1]) || strings.IndexByte("_.-:", s[start-1]) >= 0); {
		start--
	}
	return start > 0 && s[start-1] == '<'
}

// closed reads on behind the end tag at i that follows a name: "<b>Password</b>: value", "<td>Password</td><td>value".
func closed(s string, i int) (link, int) {
	next := strings.IndexByte(s[i:min(len(s), i+16)], '>')
	if next < 0 {
		return linkNone, 0
	}
	at := i + next + 1
	for at < len(s) && at < i+64 && isSpace(s[at]) {
		at++
	}
	rest := s[at:min(len(s), at+48)]
	if strings.HasPrefix(rest, "<td") || strings.HasPrefix(rest, "<dd") {
		if end := strings.IndexByte(rest, '>'); end > 0 {
			at += end + 1
			for _, mark := range [...]string{"<code>", "<b>", "<strong>"} {
				if strings.HasPrefix(s[at:], mark) {
					at += len(mark)
				}
			}
			return linkCell, at
		}
	}
	return sign(s, at)
}

// telling reports values that are no word of a sentence, whatever stands before them.
func telling(v string) bool {
	st := charStats(v)
	if len(v) < 8 || st.digits == 0 {
		return false
	}
	if st.upper > 0 && st.lower > 0 && strings.ContainsAny(v, "@#!$%^&*") && !strings.ContainsAny(v, "./:") {
		return true // as people make them up: "Harbour@2024"
	}
	if wordish(v) {
		return false
	}
	return st.kinds() >= 3 || len(v) >= 10 && st.marks == 0 && !isHex(v) && (st.turns >= 4 || unspeakable(v))
}

// unspeakable reports values with five consonants or digits in a row that hold both: no word is written so.
func unspeakable(v string) bool {
	run := 0
	for i := range len(v) {
		if strings.IndexByte("aeiouyAEIOUY", v[i]) >= 0 {
			run = 0
		} else if run++; run >= 5 && charStats(v[i+1-run:i+1]).kinds() > 1 {
			return true
		}
	}
	return false
}

// argument finds the value where a name is an argument with its value as the next one, `setenv("PASSWORD", "value")`,
// or a function that takes it, `withPassword("value")`. It returns 0 if there is none, or one that may be a name.
func argument(s string, i int) int {
	at := i
	switch s[i] {
	case '(':
		at++
	case '"', '\'':
		for at < len(s) && at < i+4 && strings.IndexByte("\"'])", s[at]) >= 0 {
			at++
		}
		if byteAt(s, at) != ',' {
			return 0
		}
		for at++; at < len(s) && s[at] == ' '; {
			at++
		}
	}
	if at == i || at == len(s) || s[at] != '"' && s[at] != '\'' {
		return 0
	}
	value, from, quoted := readValue(s, at)
	end := from + len(value) + 1
	if byteAt(s, end) == ' ' {
		end++
	}
	if quoted && len(value) >= 8 && charStats(value).kinds() >= 3 && realPassword(value, linkSpace, true) && strings.IndexByte("),", byteAt(s, end)) >= 0 {
		return at
	}
	return 0
}

// listed reports whether the name at start goes on with a list that has a user in it: "user app, password VALUE".
func listed(s string, start int) bool {
	if start < 2 || s[start-1] != ',' && (s[start-1] != ' ' || s[start-2] != ',') {
		return false
	}
	line := strings.ToLower(s[max(lineStart(s, start), start-80):start])
	return containsAny(line, []string{"user", "login", "benutzer", "account", "@", "账号", "用户", "登录", "wifi", "wi-fi", "wlan", "ssid", "网络"})
}

// setter reports whether the name around start stands behind a word that gives a variable its value without a sign:
// Dockerfile's ENV, csh's setenv, Windows's setx, fish's "set -x".
func setter(s string, start int) bool {
	for start > 0 && (isAlnum(s[start-1]) || s[start-1] == '_') {
		start--
	}
	if start == 0 || s[start-1] != ' ' {
		return false
	}
	for _, w := range [...]string{"ENV", "setenv", "SetEnv", "setx", "set -x", "set -gx", "set -Ux"} {
		if strings.HasSuffix(s[:start-1], w) {
			return true
		}
	}
	return false
}

// byteAt is s[i], 0 beyond the end.
func byteAt(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}

// netrc reports whether the word at start has a machine and a login before it, as in a .netrc file.
func netrc(s string, start int) bool {
	head := strings.Fields(s[max(0, start-160):start])
	n := len(head)
	return n >= 4 && head[n-2] == "login" && head[n-4] == "machine"
}

// isFlag reports whether the name at start belongs to a command-line flag, with two dashes or, as Java's and OpenSSL's
// tools have it, with one.
func isFlag(s string, start int) bool {
	for start > 0 && (isAlnum(s[start-1]) || s[start-1] == '_' || s[start-1] == '-') {
		start--
	}
	return start+1 < len(s) && s[start] == '-' && (start == 0 || strings.IndexByte(" \t\n`\"'[", s[start-1]) >= 0)
}

// sign reads an assignment sign or a cell border at i.
func sign(s string, i int) (link, int) {
	if i == len(s) {
		return linkNone, 0
	}
	rest := s[i:]
	for _, op := range []string{":=", "=>", "->", "→", "::", "===", "!==", "==", "!=", "?=", "=", ":", "||", "|"} {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		switch op {
		case "::":
			if byteAt(s, i+2) == ' ' {
				return linkSign, i + 2 // a definition list
			}
			return linkNone, 0
		case "!=", "!==", "||":
			return linkNone, 0
		case "|":
			return linkCell, i + 1
		}
		return linkSign, i + len(op)
	}
	return linkNone, 0
}
