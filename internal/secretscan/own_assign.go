package secretscan

import "strings"

const (
	// maxBetween bounds the words between "password" and its value in a sentence, in bytes.
	maxBetween = 80
	// maxValue bounds a value, in bytes.
	maxValue    = 200
	minPassword = 6
)

// ownAssignments looks for the value given to a password or a secret whose name holds s[start:end]: "name = value" in
// every notation, command-line flags, table cells, and sentences. Markdown's emphasis, quotes and code marks may stand
// anywhere between.
func (p *pass) ownAssignments(start, end int, password bool) {
	s := p.v.s
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
		rest := strings.TrimLeft(s[from+len(value):lineEnd(s, from+len(value))], "`\"'* ")
		if user, pass, ok := strings.Cut(value, ":"); ok && isName(user) && realPassword(pass, link, quoted) {
			p.addOwn(rulePassword, pass, from+len(user)+1, rankKnown)
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
	if !password && link != linkSpace && random(value) && !p.harmlessHex(value, start, from+len(value)) {
		p.addOwn(ruleSecret, value, from, rankGuess)
	}
}

// pair reports the words that announce user and password together.
func pair(word string) bool {
	return strings.EqualFold(word, "credential") || strings.EqualFold(word, "login")
}

// maxRows bounds how many rows of a table are looked at below a heading.
const maxRows = 50

// column looks below a table heading that names a secret.
func (p *pass) column(start, end int, password bool) {
	s := p.v.s
	from := strings.LastIndexByte(s[:start], '\n') + 1
	head := s[from:lineEnd(s, end)]
	if strings.IndexByte(head, '|') < 0 {
		return
	}
	next := from + len(head) + 1
	if next >= len(s) {
		return
	}
	rule := s[next:lineEnd(s, next)]
	if strings.IndexByte(rule, '-') < 0 || strings.Trim(rule, " \t\r|:->") != "" {
		return
	}
	if _, ok := nameTail(s, end); !ok {
		return
	}
	cell := strings.Count(s[from:start], "|")
	rows := 0
	for row := next + len(rule) + 1; row < len(s) && rows < maxRows; rows++ {
		to := lineEnd(s, row)
		at, rest := row, s[row:to]
		if strings.IndexByte(rest, '|') < 0 {
			return
		}
		for range cell {
			bar := strings.IndexByte(rest, '|')
			if bar < 0 {
				break
			}
			at, rest = at+bar+1, rest[bar+1:]
		}
		value, from, quoted := readValue(s, at)
		switch {
		case from > to:
		case password && realPassword(value, linkCell, quoted):
			p.addOwn(rulePassword, value, from, rankKnown)
		case !password && random(value):
			p.addOwn(ruleSecret, value, from, rankGuess)
		}
		row = to + 1
	}
}

// before looks for sentences that name the value first: "use VALUE as the admin password".
func (p *pass) before(start int, password bool) {
	s := p.v.s
	from := max(strings.LastIndexByte(s[:start], '\n')+1, start-maxBetween)
	for from < start && s[from]&0xc0 == 0x80 {
		from++
	}
	head := s[from:start]
	for _, w := range []string{" as ", " is the ", " is our ", " is its ", "作为", "是"} {
		at := strings.LastIndex(head, w)
		if at <= 0 || strings.ContainsAny(head[at+len(w):], ".,;:=|") || len(head)-at-len(w) > 30 {
			continue
		}
		text := strings.TrimRight(head[:at], "`\"'*_ ")
		word := strings.LastIndexAny(text, " `\"'*,(") + 1
		value := text[word:]
		quoted := word > 0 && text[word-1] != ' ' || len(text) < at
		st := charStats(value)
		if password && realPassword(value, linkWord, quoted) && st.digits > 0 && (quoted || st.kinds() >= 3) {
			p.addOwn(rulePassword, value, from+word, rankKnown)
		} else if !password && random(value) && !p.harmlessHex(value, from, start) {
			p.addOwn(ruleSecret, value, from+word, rankGuess)
		}
		return
	}
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

// sentence reads "… is value", "… (for admin): value", "密码是 value" after a name.
func sentence(s string, i int) (link, int) {
	limit := min(i+maxBetween, len(s))
	for j := i; j < limit; j++ {
		switch c := s[j]; {
		case c == '\n':
			// A sentence may go on in the next line, a paragraph not.
			if j+1 < len(s) && s[j+1] == '\n' {
				return linkNone, 0
			}
		case c == '.' && (j+1 == len(s) || isSpace(s[j+1])) || c == ';' || c == '!' || c == '?' || c == '|':
			return linkNone, 0
		case c == ':' || c == '=':
			if strings.IndexByte(s[i:j], '\n') >= 0 {
				return linkNone, 0 // the next line names something else
			}
			if j+1 < len(s) && (isSpace(s[j+1]) || strings.IndexByte("`\"'*", s[j+1]) >= 0) {
				return linkWord, j + 1
			}
		}
		if c := s[j]; c != ' ' && c < 0x80 {
			continue
		}
		if at := verb(s, j); at > 0 {
			if value, _, quoted := readValue(s, at); realPassword(value, linkWord, quoted) || random(value) {
				return linkWord, at
			}
		}
	}
	return linkNone, 0
}

// verb reads " is ", " was set to ", "是" and their like at i; it returns where they end, 0 if there is none.
func verb(s string, i int) int {
	for _, w := range []string{" is ", " was ", " are ", " set to ", " to ", " reads ", " as ", " equals ", "是", "为", "為", "改成", "设成", "設為", "等于"} {
		if !strings.HasPrefix(s[i:], w) {
			continue
		}
		at := i + len(w)
		for _, more := range []string{"now ", "still ", "set to ", "currently ", "always ", "just ", "simply ", "called ", "the same: ", "了", "：", ":", " "} {
			if strings.HasPrefix(s[at:], more) {
				at += len(more)
			}
		}
		return at
	}
	return 0
}

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
		if quote != '"' && quote != '`' && quote != '\'' && (isSpace(c) || c == ',' && (to+1 == len(s) || isSpace(s[to+1])) || c == '\'' || strings.HasPrefix(s[to:], "**")) {
			break
		}
		if hasCJK(s[to:]) {
			break
		}
		to++
	}
	value = s[i:to]
	if quote == 0 || !(to < len(s) && s[to] == quote) {
		quote = 0
		value = strings.TrimRight(value, ".,;:)]}*_>\\ ")
		if sp := strings.IndexByte(value, ' '); sp >= 0 {
			value = strings.TrimRight(value[:sp], ".,;:)]}*_>\\")
		}
	}
	value = strings.TrimRight(value, " ")
	if lines > 0 && to < len(s) && s[to] != '\n' && quote == 0 && strings.TrimSpace(s[to:lineEnd(s, to)]) != "" {
		return "", 0, false // running text in the next line
	}
	return value, i, quote != 0
}

// hasCJK reports whether s begins with a Chinese, Japanese or Korean character or their punctuation.
func hasCJK(s string) bool {
	return len(s) >= 3 && s[0] >= 0xe3 && s[0] <= 0xed
}

// realPassword reports whether a value looks like a password that somebody uses.
func realPassword(v string, k link, quoted bool) bool {
	if len(v) < minPassword || len(v) > maxValue || placeholder(v) || reference(v) {
		return false
	}
	st := charStats(v)
	if st.other > 0 {
		return false
	}
	if strings.Contains(v, " ") {
		return quoted && passphrase(v)
	}
	if v[0] == '-' || v[0] == '&' || v[0] == ',' || v[0] == '#' && isHex(v[1:]) {
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
		return passphrase(v) && k != linkSpace || !wordish(v) && len(v) >= 12 && st.upper > 1 && st.lower > 1
	case strong > 0:
		return st.letters() >= 2
	case strings.ContainsAny(v, "._-/:"):
		// Names of things have marks between words; a password also has capitals and digits.
		if wordish(v) {
			return st.upper > 0 && st.lower > 0 && st.digits > 0 && len(v) >= 10 && !strings.ContainsAny(v, "._/:")
		}
		return true
	}
	if k == linkWord && !quoted {
		return st.digits > 0 && (st.upper > 0 || st.digits > 1)
	}
	return true
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

// ownCommands finds passwords as arguments of well-known commands: "-p'…'", "-pVALUE", "-p VALUE", "-a VALUE", "-w",
// "-u user:password".
func (p *pass) ownCommands(start, end int) {
	s := p.v.s
	if start > 0 && (isAlnum(s[start-1]) || s[start-1] == '-' || s[start-1] == '/' && start > 1 && s[start-2] == '/') {
		return
	}
	line := s[end:lineEnd(s, end)]
	command := strings.ToLower(s[start:end])
	for i := 0; i+3 < len(line); i++ {
		if line[i] != '-' || i == 0 || line[i-1] != ' ' {
			continue
		}
		c, at := line[i+1], end+i+2
		switch {
		case c == 'p' && command != "curl" && command != "psql" && command != "redis-cli", c == 'a' && command == "redis-cli", c == 'w' && command == "ldapsearch":
			if s[at] == ' ' && strings.HasPrefix(command, "mysql") {
				continue // mysql -p asks
			}
			if value, from, quoted := readValue(s, at); realPassword(value, linkSpace, quoted) && from < end+len(line) {
				p.addOwn(rulePassword, value, from, rankKnown)
			}
		case (c == 'u' || c == 'U') && (command == "curl" || command == "smbclient"):
			value, from, _ := readValue(s, at)
			sep := strings.IndexAny(value, ":%")
			if sep > 0 && realPassword(value[sep+1:], linkSign, true) {
				p.addOwn(rulePassword, value[sep+1:], from+sep+1, rankKnown)
			}
		}
	}
}
