package secretscan

import "strings"

// maxLogin bounds the name of an account in a sentence, in bytes.
const maxLogin = 64

// logins finds the password in sentences that tell how to come in and name none: "log in as admin (value)", "sign in
// with admin and value", "ssh root@host then value", "用 admin（value）登录".
func (p *pass) logins(start, end int) {
	s := p.v.s
	if start > 0 && isAlnum(s[start-1]) {
		return
	}
	if s[start] >= 0x80 {
		p.loginBefore(start)
		return
	}
	at := end
	for at < len(s) && strings.IndexByte(" `\"'*:", s[at]) >= 0 {
		at++
	}
	switch word := strings.ToLower(s[start:end]); {
	case strings.Contains(word, "now "):
		p.changed(start, end)
		return
	case word == "signed with ":
		// A webhook's key, as its provider shows it; commits and releases are signed with keys that have names.
		if value, from, _ := readValue(s, end); isHex(value) && len(value) >= 32 && !p.harmlessHex(value, start, from+len(value)) || random(value) && len(value) >= 24 {
			p.addOwn(ruleSecret, value, from, rankGuess)
		}
		return
	case word == "admin" || word == "root":
		p.account(end)
		return
	case strings.HasPrefix(word, "bind"), strings.HasPrefix(word, "auth"), strings.HasSuffix(word, " with "):
		p.itemValue(announcesLittle, end, lineStop(s, end), false)
		return
	}
	name := at
	for at < len(s) && at < name+maxLogin && (isAlnum(s[at]) || strings.IndexByte("._-@\\+", s[at]) >= 0) {
		at++
	}
	if strings.HasPrefix(s[start:end], "ssh") && strings.IndexByte(s[name:at], '@') < 0 || at == name {
		return
	}
	rest := strings.TrimLeft(s[at:lineStop(s, at)], "`\"'*")
	at += len(s[at:lineStop(s, at)]) - len(rest)
	for _, link := range [...]string{" (", "（", " / ", "/", " and ", " with ", " using ", " then ", ", ", "，", " + ", " - ", " → ", " -> "} {
		if !strings.HasPrefix(rest, link) {
			continue
		}
		at += len(link)
		for _, word := range [...]string{"the ", "password ", "pw ", "pass ", "and ", "then ", "type ", "enter "} {
			if strings.HasPrefix(s[at:], word) {
				at += len(word)
			}
		}
		p.itemValue(announcesLogins, at, lineStop(s, at), false)
		return
	}
}

// account finds what stands beside the name of an account that ends at i and is no word: "use admin and value",
// "root，value".
func (p *pass) account(i int) {
	s := p.v.s
	at := i
	for at < len(s) && strings.IndexByte("`\"'*", s[at]) >= 0 {
		at++
	}
	for _, link := range [...]string{" and ", " with ", ", ", "，", "、", " + ", " / ", "／"} {
		if strings.HasPrefix(s[at:], link) {
			at += len(link)
			if value, from, _ := readValue(s, at); telling(value) && from < lineStop(s, at) && itemPassword(value, false) {
				p.addOwn(rulePassword, value, from, rankKnown)
			}
			return
		}
	}
}

// changed finds what an account's password has become, where the sentence calls it the account: "reset the admin account,
// it's now value".
func (p *pass) changed(start, end int) {
	s := p.v.s
	head := strings.ToLower(s[max(lineStart(s, start), start-maxBetween):start])
	if !containsAny(head, []string{"account", "login", "credential", "admin", " root", " pw"}) || !containsAny(head, []string{"reset", "chang", "rotat", "set ", "new "}) {
		return
	}
	p.itemValue(announcesLittle, end, lineStop(s, end), false)
}

// answered finds the password in the line of a conversation that answers the line before it, which asks for one: the word
// for it stands at s[start:i].
func (p *pass) answered(start, i int) {
	s := p.v.s
	next := lineStop(s, i) + 1
	if next >= len(s) || speaker(s, lineStart(s, start), start) == 0 {
		return
	}
	stop := lineStop(s, next)
	if at := speaker(s, next, stop); at > 0 {
		if value, _, _ := readValue(s, at); telling(value) {
			p.itemValue(announcesPasswords, at, stop, true)
		}
	}
}

// speaker returns where the text of a line of a conversation begins, behind the time and "name:"; 0 if it is none.
func speaker(s string, from, to int) int {
	from = itemStart(s, from, to)
	if byteAt(s, from) == '[' {
		end := strings.IndexByte(s[from:to], ']')
		if end < 0 || end > 24 {
			return 0
		}
		from = itemStart(s, from+end+1, to)
	}
	name := from
	for from < to && from-name < 32 && (isAlnum(s[from]) || s[from] == '_' || s[from] == '.' || s[from] == '@') {
		from++
	}
	if from == name || from+1 >= to || s[from] != ':' || s[from+1] != ' ' {
		return 0
	}
	return from + 2
}

// loginBefore finds the account and the password that stand before "登录", which begins at i: "用 admin / value 登录".
func (p *pass) loginBefore(i int) {
	s := p.v.s
	from := max(lineStart(s, i), i-maxBetween)
	for from < i && s[from]&0xc0 == 0x80 {
		from++
	}
	head := s[from:i]
	use := max(strings.LastIndex(head, "用"), strings.LastIndex(head, "以"))
	if use < 0 {
		return
	}
	text := strings.TrimRight(head, " `\"'*)）来")
	at := 0
	for _, sep := range [...]string{"（", "(", "/", "，", ",", "、", "和", "+", "／"} {
		if n := strings.Index(text[use:], sep); n >= 0 && (at == 0 || use+n < at) {
			at = use + n + len(sep)
		}
	}
	if at > use {
		p.itemValue(announcesLogins, from+at, from+len(text), true)
	}
}
