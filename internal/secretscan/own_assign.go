package secretscan

import "strings"

const (
	// maxBetween bounds the words between "password" and its value in a sentence, in bytes.
	maxBetween = 80
)

// ownAssignments looks for the value given to a password or a secret whose name holds s[start:end]: "name = value" in
// every notation, command-line flags, table cells, and sentences. Markdown's emphasis, quotes and code marks may stand
// anywhere between.
func (p *pass) ownAssignments(start, end int, password bool) {
	s := p.v.s
	if c := s[end-1]; c == '=' || c == ':' {
		// The short names need their sign, and to be a word of their own.
		if start > 0 && isAlnum(s[start-1]) {
			return
		}
		end--
	}
	p.column(start, end, password)
	p.before(start, password)
	i, ok := nameTail(s, end)
	if !ok {
		return
	}
	link, at := p.link(start, i)
	if link == linkNone {
		return
	}
	value, from, quoted := readValue(s, at)
	if pair(s[start:end]) && link != linkSpace {
		// "credentials: admin / value"
		rest := strings.TrimLeft(s[from+len(value):lineStop(s, from+len(value))], "`\"'* ")
		if sep := strings.IndexAny(value, ":/"); sep > 0 && isName(value[:sep]) && realPassword(value[sep+1:], link, quoted) {
			p.addOwn(rulePassword, value[sep+1:], from+sep+1, rankKnown)
			return
		}
		if strings.HasPrefix(rest, "/") {
			at = from + len(value) + strings.IndexByte(s[from+len(value):], '/') + 1
			if value, from, quoted = readValue(s, at); realPassword(value, link, quoted) {
				p.addOwn(rulePassword, value, from, rankKnown)
			}
			return
		}
	}
	if value == "" {
		return
	}
	if password && realPassword(value, link, quoted) {
		p.addOwn(rulePassword, value, from, rankKnown)
		return
	}
	if !password && random(value) && !p.harmlessHex(value, start, from+len(value)) {
		p.addOwn(ruleSecret, value, from, rankGuess)
	}
}

// pair reports the words that announce user and password together.
func pair(word string) bool {
	return strings.EqualFold(word, "credential") || strings.EqualFold(word, "creds") || strings.EqualFold(word, "login")
}

func (p *pass) harmlessHex(v string, from, to int) bool {
	return isHex(v) && harmlessAssigned(v, p.lineOf(from, to))
}

// nameTail skips the rest of an identifier after its keyword and says whether it can still name a secret:
// "password_prod" can, "password_hash" cannot.
func nameTail(s string, i int) (int, bool) {
	from := i
	for i < len(s) && (isAlnum(s[i]) || s[i] == '_' || s[i] == '-' && i+1 < len(s) && isAlnum(s[i+1])) {
		i++
	}
	if i-from > 40 {
		return i, false
	}
	for _, part := range nameParts(s[from:i]) {
		if notSecretPart(part) {
			return i, false
		}
	}
	return i, true
}

// nameParts splits an identifier's rest at "_", "-" and capitals.
func nameParts(s string) []string {
	var parts []string
	from := 0
	cut := func(to int) {
		if to > from {
			parts = append(parts, strings.ToLower(s[from:to]))
		}
		from = to
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '_' || c == '-':
			cut(i)
			from = i + 1
		case c >= 'A' && c <= 'Z' && i > 0 && s[i-1] >= 'a' && s[i-1] <= 'z':
			cut(i)
		}
	}
	cut(len(s))
	return parts
}

// notSecretPart reports words that turn "password" into something else: its hash, its file, its length.
func notSecretPart(w string) bool {
	switch w {
	case "hash", "hashes", "hashed", "file", "files", "path", "policy", "policies", "length", "len", "field", "fields", "label", "input", "manager", "store",
		"stores", "provider", "generator", "authentication", "auth", "less", "encoder", "encoding", "reset", "min", "max", "age", "expiry", "expires", "expired", "expiration",
		"ttl", "count", "limit", "limits", "budget", "url", "uri", "endpoint", "ref", "refs", "env", "var", "variable", "name", "names", "format", "prefix", "size", "bucket", "usage",
		"type", "types", "hint", "strength", "rules", "rotation", "rotate", "change", "changed", "required", "enabled", "protected", "protection", "form", "page", "prompt",
		"stdin", "command", "cmd", "mode", "scope", "scopes", "id", "ids", "schema", "version", "algorithm", "alg", "salt", "rounds", "mismatch", "error", "invalid", "is", "has",
		"s_total", "total", "per", "used", "left", "created", "updated", "at", "by", "for", "ize", "izer", "ized", "ization", "izers", "arn", "scan", "scanner", "scanning", "source", "engine",
		"cache", "ring", "rate", "window", "verify", "validation", "check", "checker", "list", "class", "service", "issuer", "audience", "exchange", "review", "request", "response", "handler", "map":
		return true
	}
	return false
}

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
	flag := isFlag(s, start)
	marks := i
	for marks < len(s) && marks < i+8 && strings.IndexByte(" \t*`\"'_])", s[marks]) >= 0 {
		marks++
	}
	if marks == len(s) {
		return linkNone, 0
	}
	if k, at := sign(s, marks); k != linkNone {
		return k, at
	}
	if s[i] == '>' && start > 0 && s[start-1] == '<' {
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
	if flag && marks > i && s[i] == ' ' {
		return linkSpace, i + 1
	}
	if s[i:marks] != "" && strings.ContainsAny(s[i:marks], "`\"") && strings.IndexByte(s[i:marks], ' ') == 0 {
		return linkSpace, i + 1 // password `value`
	}
	if k, at := sentence(s, i); k != linkNone {
		return k, at
	}
	if marks > i && marks < len(s) && strings.TrimLeft(s[i:marks], " ") == "" {
		// "password VALUE": only for values that are no word of the sentence.
		value, _, _ := readValue(s, i)
		if st := charStats(value); len(value) >= 8 && st.kinds() >= 3 && st.digits > 0 && !wordish(value) {
			return linkSpace, i
		}
	}
	return linkNone, 0
}

// isFlag reports whether the name at start belongs to a command-line flag.
func isFlag(s string, start int) bool {
	for start > 0 && (isAlnum(s[start-1]) || s[start-1] == '_' || s[start-1] == '-') {
		start--
	}
	return strings.HasPrefix(s[start:], "--")
}

// sign reads an assignment sign or a cell border at i.
func sign(s string, i int) (link, int) {
	rest := s[i:]
	for _, op := range []string{":=", "=>", "->", "→", "::", "==", "!=", "?=", "=", ":", "||", "|"} {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		switch op {
		case "::", "!=", "||":
			return linkNone, 0
		case "|":
			return linkCell, i + 1
		}
		return linkSign, i + len(op)
	}
	return linkNone, 0
}
