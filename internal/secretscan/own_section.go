package secretscan

import "strings"

const (
	// maxLabel bounds a heading or label that announces secrets, in bytes: a longer line is a sentence.
	maxLabel = 64
	// maxItems bounds how many lines below a label are looked at.
	maxItems = 50
)

// announced is what a heading or a label announces.
type announced int

const (
	announcesNothing   announced = iota
	announcesAccounts            // names of accounts; a password may stand beside each
	announcesLogins              // accounts and their passwords
	announcesPasswords           // passwords, alone too
	announcesSecrets             // random values beside names
	announcesCodes               // recovery codes
	announcesLittle              // a sentence or a chain of things, in which a password must look like nothing else
)

// announces returns what a keyword says of what follows it as a heading or a label.
func announces(word string) announced {
	switch strings.ToLower(word) {
	case "password", "passwort", "passwörter", "密码", "密碼", "口令", "wifi", "wi-fi", "wlan", "ssid", "无线", "無線":
		return announcesPasswords
	case "credential", "creds", "login", "logins", "zugangsdaten", "登录", "登陆", "登錄":
		return announcesLogins
	case "accounts", "account:", "test user", "users:", "账号", "帐号", "账户", "帳號":
		return announcesAccounts
	case "secrets", "tokens", "api keys", "密钥", "密鑰", "秘钥", "令牌":
		return announcesSecrets
	case "recovery code", "backup code", "recovery-code", "backup-code", "scratch code", "恢复码", "备用码", "备份码", "恢复代码":
		return announcesCodes
	}
	return announcesNothing
}

// sections looks for secrets below or behind a heading or a label that holds the keyword s[start:end]: lists of
// "name: value", "name -> value", "name / value", rows of a table, values alone.
func (p *pass) sections(start, end int) {
	s := p.v.s
	line := lineStart(s, start)
	if start-line > maxLabel {
		return
	}
	what := announces(s[start:end])
	if what == announcesNothing {
		return
	}
	text := itemStart(s, line, start)
	level := 0
	for text+level < start && s[text+level] == '#' {
		level++
	}
	stop := lineStop(s, end)
	if level > 0 {
		if stop-text <= maxLabel+16 {
			p.items(what, stop+1, level)
		}
		return
	}
	if strings.ContainsAny(s[text:start], ".,;:=|?!") {
		return
	}
	colon := labelEnd(s, end, stop)
	if colon < 0 {
		return
	}
	for _, w := range strings.FieldsFunc(s[end:colon], func(r rune) bool { return r == ' ' || r == '-' || r == '_' || r == ':' }) {
		if len(w) > 3 && notSecretPart(strings.ToLower(w)) {
			return // "password manager: …"
		}
	}
	rest := strings.Trim(s[colon:stop], "*_ \t\r")
	switch {
	case rest == "":
		p.items(what, stop+1, 0)
	case what == announcesCodes:
		p.codes(colon, stop)
	case stop-colon <= maxItem:
		p.item(what, colon, stop, true)
	}
}

// labelEnd returns where a label ends whose keyword ends at i, within a line that ends at stop: behind its colon, or, for
// an emphasised label, behind its emphasis. It returns -1 if this is no label.
func labelEnd(s string, i, stop int) int {
	for j := i; j < stop && j < i+maxLabel; j++ {
		switch c := s[j]; c {
		case ':':
			return j + 1
		case '.', ',', ';', '=', '|', '?', '!', '"', '`', '/', '<', '>', '{', '[':
			return -1
		case '*', '_':
			if strings.HasPrefix(s[j:], "**") || strings.HasPrefix(s[j:], "__") {
				if strings.Trim(s[j:stop], "*_ :\r") == "" {
					return stop
				}
			}
		case 0xef:
			if strings.HasPrefix(s[j:], "：") {
				return j + len("：")
			}
		}
	}
	return -1
}

// itemStart skips what stands before the text of a line: blanks, quote marks, list marks and numbers.
func itemStart(s string, from, to int) int {
	for from < to {
		switch c := s[from]; {
		case isSpace(c) || c == '>':
			from++
		case (c == '-' || c == '*' || c == '+') && from+1 < to && s[from+1] == ' ':
			from += 2
		case strings.HasPrefix(s[from:to], "<!--"):
			from += len("<!--")
		case strings.HasPrefix(s[from:to], "•"):
			from += len("•")
		case isDigit(c):
			n := from
			for n < to && isDigit(s[n]) {
				n++
			}
			if n-from > 2 || n+1 >= to || s[n] != '.' && s[n] != ')' || s[n+1] != ' ' {
				return from
			}
			from = n + 2
		default:
			return from
		}
	}
	return from
}

// items looks at the lines from an offset on: up to the next heading that is not below level, or, with level 0, to the
// end of the paragraph or list.
func (p *pass) items(what announced, from, level int) {
	s := p.v.s
	some := false
	for n := 0; from < len(s) && n < maxItems; n++ {
		p.probe()
		stop := lineStop(s, from)
		text := itemStart(s, from, stop)
		head := 0
		for text+head < stop && s[text+head] == '#' {
			head++
		}
		switch {
		case strings.TrimRight(s[text:stop], "\r ") == "":
			if some && level == 0 {
				return
			}
		case head > 0 && byteAt(s, text+head) == ' ':
			if head <= level || level == 0 {
				return
			}
		case what == announcesCodes:
			p.codeList(from, level)
			return
		default:
			some = true
			if stop-text <= maxItem {
				p.item(what, text, stop, false)
			}
		}
		from = stop + 1
	}
}
