package secretscan

import "strings"

// maxItem bounds a line below a label that is taken for an item, in bytes.
const maxItem = 160

// item judges the text of one line below a label, or behind it.
func (p *pass) item(what announced, from, to int, behind bool) {
	s := p.v.s
	if byteAt(s, from) == '|' {
		p.cells(what, from, to)
		return
	}
	if what == announcesPasswords && !behind {
		p.itemValue(what, from, to, true)
	}
	name := from
	text := s[from:to]
	path := strings.Count(text, "/") > 1
	arrows := strings.Count(text, "->") + strings.Count(text, "=>") + strings.Count(text, "→")
	if strings.Count(text, " / ") > 1 || arrows > 1+strings.Count(text, ",") {
		what = announcesLittle // the steps of something
	}
	for i := from; i < to; {
		blank := i == from || isSpace(s[i-1])
		n := separator(s[i:to], blank)
		if n == 0 || s[i] == '/' && path && !blank {
			i++
			continue
		}
		label := strings.Trim(s[name:i], " `\"'*_")
		if i > from && label != "" && (!otherwise(label) || arrow(s[i:])) && !(behind && name == from && strings.Count(label, " ") > 1) {
			p.itemValue(what, i+n, to, false)
		}
		i += n
		name = i
	}
}

// cells judges the cells of a table's row behind the first.
func (p *pass) cells(what announced, from, to int) {
	s := p.v.s
	label := ""
	for i := from; i < to; {
		end := i + 1
		for end < to && s[end] != '|' {
			end++
		}
		if cell := strings.Trim(s[i+1:end], " `\"'*_\r"); label != "" && cell != "" && !otherwise(label) && strings.IndexByte(cell, ' ') < 0 {
			p.itemValue(what, i+1, end, true)
			label = cell
		} else if cell != "" {
			label = cell
		}
		i = end
	}
}

// separator returns the length of what stands between a name and its value in an item and begins s; 0 if nothing does.
// Some need a blank before.
func separator(s string, blank bool) int {
	switch c := s[0]; c {
	case ':', ',', ';':
		if len(s) > 1 && isSpace(s[1]) {
			return 2
		}
		return 0
	case '-', '=', '/', '|':
		if strings.HasPrefix(s, "->") || strings.HasPrefix(s, "=>") {
			return 2
		}
		if c == '/' && !blank && len(s) > 1 && s[1] != '/' || blank && len(s) > 1 && isSpace(s[1]) {
			return 1
		}
		return 0
	case 0xe2, 0xef, 0xe3:
		for _, sep := range [...]string{"→", "–", "—", "：", "，", "／", "；", "、"} {
			if strings.HasPrefix(s, sep) {
				return len(sep)
			}
		}
	}
	return 0
}

// arrow reports whether s begins with an arrow: what stands before it is an account, whatever it is called.
func arrow(s string) bool {
	return strings.HasPrefix(s, "->") || strings.HasPrefix(s, "=>") || strings.HasPrefix(s, "→")
}

// otherwise reports names of an item whose value is something else than a secret.
func otherwise(name string) bool {
	low := strings.ToLower(name)
	low = low[strings.LastIndexAny(low, " -_")+1:]
	switch low {
	case "version", "release", "role", "roles", "port", "ports", "url", "host", "id", "ids", "ticket", "channel", "group", "groups", "team", "region", "owner", "since", "until",
		"expires", "rotated", "model", "serial", "firmware", "build", "profile", "path", "branch", "plan", "tag", "cluster", "zone", "project", "image", "commit", "realm",
		"tenant", "vault", "item", "note", "docs", "doc", "see", "runbook", "user", "username", "login", "email", "e-mail", "mail", "phone", "date", "hostname", "server", "size",
		"algorithm", "cipher", "auth", "sso", "via", "page", "frame", "file", "script", "class", "table", "topic", "queue", "package", "chart", "driver", "ssid", "band":
		return true
	}
	for _, w := range [...]string{"版本", "角色", "端口", "地址", "负责人", "有效期", "型号", "分支", "域名", "主机", "用户名", "账号", "邮箱", "工单", "表名", "路径", "固件", "编号", "日期"} {
		if strings.HasSuffix(low, w) {
			return true
		}
	}
	return false
}

// itemValue judges the value at i of an item that ends at stop. With whole, nothing else may stand there.
func (p *pass) itemValue(what announced, i, stop int, whole bool) {
	s := p.v.s
	value, from, quoted := readValue(s[:stop], i)
	if value == "" {
		return
	}
	rest := strings.TrimLeft(s[from+len(value):stop], "`\"'*_)]”」』 \r")
	rest = strings.TrimPrefix(rest, "-->")
	if whole && strings.Trim(rest, ".;。| ") != "" || !whole && !itemEnds(s[from+len(value):stop], rest) {
		return
	}
	if _, rev, ok := strings.Cut(value, "@"); ok && isHex(rev) && len(rev) >= 7 {
		return // a thing at a revision
	}
	if what == announcesSecrets {
		if random(value) && !p.harmlessHex(value, from, from+len(value)) {
			p.addOwn(ruleSecret, value, from, rankGuess)
		}
		return
	}
	if what == announcesLittle && !telling(value) {
		return
	}
	if itemPassword(value, quoted || whole && what == announcesPasswords) {
		p.addOwn(rulePassword, value, from, rankKnown)
	}
}

// itemEnds reports whether a value ends there in an item, or a remark or the next part follows. tail is all that follows
// the value, rest the same without closing marks.
func itemEnds(tail, rest string) bool {
	if rest == "" || strings.HasPrefix(strings.TrimLeft(tail, "`\"'*_"), ")") {
		return true
	}
	for _, mark := range [...]string{"(", "（", ",", ";", ".", "，", "；", "。", "、", "<!--", "#", "- ", "– ", "— ", "/ ", "|", "->", "→"} {
		if strings.HasPrefix(rest, mark) {
			return true
		}
	}
	return tail != "" && tail[0] >= 0x80 // Chinese text goes on without a blank
}

// alnumDash is what the names of things in small letters are made of.
const alnumDash = "abcdefghijklmnopqrstuvwxyz0123456789-_"

// itemPassword reports whether the value of an item is a password that somebody uses: stricter than what follows a name
// that says so.
func itemPassword(v string, quoted bool) bool {
	if !realPassword(v, linkWord, true) {
		return false
	}
	st := charStats(v)
	if _, host, ok := strings.Cut(v, "@"); ok && strings.Contains(host, ".") {
		return false // an address
	}
	if st.digits == 0 {
		return passphrase(v) && quoted
	}
	if strings.ContainsAny(v, "()=<>[]{}") || st.lower == 0 && st.marks > 0 || st.upper == 0 && st.marks > 0 && strings.Trim(v, alnumDash) == "" {
		return false // code, the number of a ticket or a part, the name of a thing
	}
	if st.digits < 2 && !strings.ContainsAny(v, "@#!$%^&*") {
		return false // the name of something, with its version
	}
	if strings.IndexByte(v, '/') >= 0 || len(v) > 64 {
		return false // a path, a digest
	}
	if name, rest, ok := strings.Cut(v, ":"); ok && isName(name) && isHex(rest) {
		return false // "sha256:…"
	}
	return telling(v) && st.lower > 0 || st.upper > 0 && st.kinds() >= 3 && len(v) >= 7 && !strings.ContainsAny(v, "./:")
}
