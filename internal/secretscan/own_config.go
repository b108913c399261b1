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
	case c == 'w': // what a QR code holds: "WIFI:S:name;T:WPA;P:value;;"
		line := s[end:lineStop(s, end)]
		if n := strings.Index(line, "P:"); n > 0 && (line[n-1] == ';') && strings.Contains(line, "S:") {
			value, _, _ := strings.Cut(line[n+len("P:"):], ";")
			if len(value) >= 8 && realPassword(value, linkSpace, true) {
				p.addOwn(rulePassword, value, end+n+len("P:"), rankKnown)
			}
		}
		return
	case s[end-1] == '=' || s[end-1] == ':' && c != ':': // "_auth=", "auth":
		value, from, _ := readValue(s, end)
		if from <= lineStop(s, end) {
			p.basic(value, from)
		}
		return
	case s[start] == ' ' && s[end-1] == '/': // admin/value
		if value, _, _ := readValue(s, end); telling(value) && strings.ContainsAny(value, "@!$%^&*#") && strings.IndexByte(value, '/') < 0 && value[0] != '#' {
			at = end
		}
	case strings.EqualFold(s[start:end], "userlist"):
		p.userlist(end)
		return
	case strings.EqualFold(s[start:end], "getconnection("):
		// getConnection("jdbc:…", "user", "value")
		if line := s[end:lineStop(s, end)]; strings.HasPrefix(line, `"jdbc:`) {
			if parts := strings.SplitN(line, `"`, 7); len(parts) == 7 && strings.Trim(parts[2]+parts[4], ", ") == "" {
				at = end + len(line) - len(parts[6]) - len(parts[5]) - 2
			}
		}
	case strings.HasSuffix(s[start:end], "64(") || strings.HasSuffix(s[start:end], "b64encode("):
		// encode_base64("user:value")
		if value, from, quoted := readValue(s, end); quoted || strings.HasPrefix(s[end:], "b") {
			if user, pass, ok := strings.Cut(value, ":"); ok && isName(user) && realPassword(pass, linkSpace, true) && charStats(pass).kinds() >= 3 {
				p.addOwn(rulePassword, pass, from+len(user)+1, rankKnown)
			}
		}
		return
	case s[start] == ' ' && s[start+1] == '-': // some tool's "-u user -p value"
		if value, _, _ := readValue(s, end); telling(value) && strings.Contains(s[lineStart(s, start):start], " -u ") && !strings.ContainsAny(value, ":/") {
			at = end
		}
	case s[start] == ' ' && s[end-1] == ' ':
		p.slashed(start, end)
		return
	case s[end-1] == '(' || c == 'b':
		at = hashed(s, end)
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

// maxUserlist bounds how far behind "userlist" its lines are looked for, in bytes.
const maxUserlist = 200

// userlist finds the lines of pgbouncer's list of users, "name" and "password" in quotes, behind its name.
func (p *pass) userlist(i int) {
	s := p.v.s
	limit := min(len(s), i+maxUserlist)
	for from := i; from < limit; {
		mid := strings.Index(s[from:limit], `" "`)
		if mid < 0 {
			return
		}
		at := from + mid + 2
		if value, begin, quoted := readValue(s, at); quoted && telling(value) && realPassword(value, linkSpace, true) {
			p.addOwn(rulePassword, value, begin, rankKnown)
		}
		from = at + 1
	}
}

// hashed returns where the literal begins that a function which hashes passwords is given, 0 if it is given a variable.
func hashed(s string, i int) int {
	at := i
	if s[i-1] != '(' {
		paren := strings.IndexByte(s[i:min(len(s), i+6)], '(')
		if paren < 0 {
			return 0
		}
		at = i + paren + 1
	}
	if value, _, quoted := readValue(s, at); quoted && charStats(value).kinds() >= 3 {
		return at
	}
	return 0
}

// slashed finds "user / password", where the user is an address or has the name of an account: between two names of
// anything else, a stroke is an "or".
func (p *pass) slashed(start, end int) {
	s := p.v.s
	text := strings.TrimRight(s[max(lineStart(s, start), start-64):start], "`*_\"'")
	word := text[strings.LastIndexAny(text, " `*\"'(|")+1:]
	value, from, quoted := readValue(s, end)
	if value == "" || value[0] == '@' || value[0] == '#' || charStats(value).kinds() < 3 || from > lineStop(s, end) || !realPassword(value, linkWord, quoted) {
		return
	}
	if _, host, ok := strings.Cut(value, "@"); ok && strings.Contains(host, ".") {
		return // another address
	}
	_, host, address := strings.Cut(word, "@")
	switch strings.ToLower(word) {
	case "admin", "root", "administrator", "user", "test", "tester", "demo", "guest", "ubuntu", "postgres", "sa", "service", "operator", "elastic", "jenkins", "deploy", "pi", "oracle", "nacos", "minio", "sysadmin", "superuser":
	default:
		marked := strings.ContainsAny(value, "@#!$%^&*") && (quoted || telling(value) && charStats(value).upper > 0 && strings.IndexByte(value, '.') < 0)
		if !(address && strings.Contains(host, ".")) && !marked {
			return
		}
	}
	p.addOwn(rulePassword, value, from, rankKnown)
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
