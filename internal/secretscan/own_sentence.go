package secretscan

import "strings"

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
		if c := s[j]; c != ' ' && c != '\'' && c < 0x80 {
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
	for _, w := range []string{" is ", " was ", " are ", " set to ", " to ", " reads ", " as ", " equals ", "'s ", " - ", " – ", " — ", "是", "为", "為", "改成", "设成", "設為", "等于"} {
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

// before looks for sentences that name the value first: "use VALUE as the admin password".
func (p *pass) before(start int, password bool) {
	s := p.v.s
	from := max(lineStart(s, start), start-maxBetween)
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
