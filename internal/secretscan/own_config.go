package secretscan

import "strings"

// maxSQLHead bounds how far before "identified by" the statement's verb is looked for, in bytes.
const maxSQLHead = 200

// ownConfigs finds the password of statements and lines that do not call it one: SQL's "IDENTIFIED BY …", redis's
// "requirepass …", "masterauth …", "auth-pass NAME …" and "user NAME on >…", PowerShell's secure strings, lines of .pgpass, and the base64 of user
// and password in the files of npm and docker.
func (p *pass) ownConfigs(start, end int) {
	s := p.v.s
	at := 0
	switch c := s[start] | 0x20; {
	case s[end-1] == '=' || s[end-1] == ':' && c != ':': // "_auth=", "auth":
		value, from, _ := readValue(s, end)
		if from <= lineStop(s, end) {
			p.basic(value, from)
		}
		return
	case c == 'i':
		at = identifiedBy(s, start, end)
	case c == ':':
		at = pgpass(s, end)
	case c == 's': // ConvertTo-SecureString "value"
		if at = end; strings.HasPrefix(s[at:], "-String ") {
			at += len("-String ")
		}
	case s[end-1] == '>':
		if head := s[lineStart(s, start):start]; strings.Contains(head, "user ") && byteAt(s, end) != '=' {
			at = end
		}
	default:
		at = directive(s, end, c == 'a')
	}
	if at == 0 {
		return
	}
	if value, from, quoted := readValue(s, at); from <= lineStop(s, end) && realPassword(value, linkSpace, quoted) {
		p.addOwn(rulePassword, value, from, rankKnown)
	}
}

// identifiedBy returns where the password begins that follows "identified", 0 if this is no statement: in prose, too,
// things are identified by names.
func identifiedBy(s string, start, end int) int {
	low := strings.ToLower(s[end:min(len(s), end+64)])
	if !strings.HasPrefix(low, " by ") {
		by := strings.Index(low, " by ")
		if by < 0 || !strings.HasPrefix(low, " with ") || strings.ContainsAny(low[:by], ".;\n") {
			return 0
		}
		end += by
	}
	head := strings.ToLower(s[max(0, start-maxSQLHead):start])
	verb := max(strings.LastIndex(head, "create "), strings.LastIndex(head, "alter "), strings.LastIndex(head, "grant "))
	if verb < 0 || strings.IndexByte(head[verb:], ';') >= 0 || !containsAny(head[verb:], []string{" user ", " role ", "grant "}) {
		return 0
	}
	at := end + len(" by ")
	if strings.HasPrefix(strings.ToLower(s[at:min(len(s), at+9)]), "password ") {
		at += len("password ")
	}
	return at
}

// directive returns where the value of a directive that ends at i begins: after white space, a sign, or the quotes and
// comma of a list of arguments; 0 if something else follows. With named, a name stands between.
func directive(s string, i int, named bool) int {
	at := i
	for at < len(s) && at < i+8 && strings.IndexByte(" \t:=\"',", s[at]) >= 0 {
		at++
	}
	if at == i {
		return 0
	}
	if !named {
		return at
	}
	name := at
	for at < len(s) && (isAlnum(s[at]) || s[at] == '-' || s[at] == '_') {
		at++
	}
	if at == name || byteAt(s, at) != ' ' {
		return 0
	}
	return at
}

// pgpass returns where the password begins of which the line has host and port before i: "host:5432:database:user:";
// 0 if this is no such line.
func pgpass(s string, i int) int {
	for range 2 {
		from := i
		for i < len(s) && (isAlnum(s[i]) || strings.IndexByte("*_-.", s[i]) >= 0) {
			i++
		}
		if i == from || byteAt(s, i) != ':' {
			return 0
		}
		i++
	}
	if i == len(s) || isSpace(s[i]) {
		return 0
	}
	return i
}
