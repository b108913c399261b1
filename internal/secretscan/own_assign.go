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
	start, end, ok := nameOf(s, start, end)
	if !ok || start > 0 && s[start-1] == '1' && strings.EqualFold(s[start:end], "password") {
		return // no name, or 1Password's
	}
	p.column(start, end, password)
	p.before(start, password)
	i, ok := nameTail(s, end)
	if !ok {
		return
	}
	link, at := linkSign, pairValue(s, start, i)
	if at == 0 {
		link, at = p.link(start, i)
	}
	if link == linkNone {
		if password {
			p.answered(start, i)
		}
		return
	}
	if link == linkWord && !password && otherNoun(s[i:]) {
		return
	}
	if link == linkSign {
		at = yamlValue(s, at)
	}
	value, from, quoted := readValue(s, at)
	if n := shellDefault(value); n > 0 {
		value, from = strings.TrimRight(value[n:], "}"), from+n
	}
	if (pair(s[start:end]) || pairHead(s[:start])) && link != linkSpace {
		// "credentials: admin / value"
		rest := strings.TrimLeft(s[from+len(value):lineStop(s, from+len(value))], "`\"'* ")
		if sep := strings.IndexAny(value, ":/"); sep > 0 && isName(value[:sep]) && strings.Count(value, "/") < 2 && realPassword(value[sep+1:], link, quoted) {
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
	if password && link == linkCell {
		p.laterCells(from)
	}
	if !password && (random(value) && !p.harmlessHex(value, start, from+len(value)) || groupedCode(value)) {
		p.addOwn(ruleSecret, value, from, rankGuess)
	}
}

// groupedCode reports three or more equal groups of capitals and digits, as licences and devices have their codes.
func groupedCode(v string) bool {
	st := charStats(v)
	return st.marks > 1 && st.lower == 0 && st.upper > 1 && st.digits > 1 && recoveryCode(v)
}

// pair reports the words that announce user and password together.
func pair(word string) bool {
	for _, w := range [...]string{"credential", "creds", "login", "basic auth", "zugangsdaten"} {
		if strings.EqualFold(word, w) {
			return true
		}
	}
	return false
}

// otherNoun reports whether the word that follows a name of a secret makes it something that is none: "the secret
// handshake is …", "the token exchange is …".
func otherNoun(s string) bool {
	word, _, _ := strings.Cut(strings.TrimLeft(s[:min(len(s), 24)], " "), " ")
	switch strings.ToLower(strings.TrimRight(word, ",:")) {
	case "handshake", "exchange", "algorithm", "cipher", "curve", "protocol", "suite", "agreement", "sharing", "derivation", "scheme", "endpoint", "bucket", "format", "store", "manager",
		"backend", "engine", "operator", "santa", "sauce", "ingredient", "menu", "type", "ttl", "length", "lifetime", "count", "name":
		return true
	}
	return false
}

// shellDefault returns where the default begins in "${NAME:-default}", 0 if v is no such reference.
func shellDefault(v string) int {
	if !strings.HasPrefix(v, "${") {
		return 0
	}
	at := strings.Index(v, ":-")
	if at < 0 || !isName(v[2:at]) {
		return 0
	}
	return at + len(":-")
}

// pairHead reports the words before "password" that announce a user, too: "user/password: admin / value".
func pairHead(head string) bool {
	if head == "" || head[len(head)-1] != '/' {
		return false
	}
	head = strings.ToLower(head[max(0, len(head)-len("username/")):])
	return strings.HasSuffix(head, "user/") || strings.HasSuffix(head, "username/") || strings.HasSuffix(head, "login/") || strings.HasSuffix(head, "benutzer/")
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
		"cache", "ring", "rate", "window", "verify", "validation", "check", "checker", "list", "class", "service", "issuer", "audience", "exchange", "review", "request", "response", "handler", "map", "table", "column", "flow", "events":
		return true
	}
	return false
}
