package secretscan

import (
	"strings"
	"unicode"
)

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
			if c == '=' && strings.IndexByte("\"'", s[i]) >= 0 && j > 0 && isAlnum(s[j-1]) {
				return linkNone, 0 // the next attribute of an element
			}
			if open := strings.LastIndexByte(s[i:j], '['); c == '=' && open >= 0 && strings.IndexByte(s[i+open:j], ']') < 0 {
				return linkNone, 0 // the attribute of a selector
			}
			if j+1 < len(s) && (isSpace(s[j+1]) || strings.IndexByte("`\"'*", s[j+1]) >= 0) {
				if value, _, _ := readValue(s, j+1); isHex(value) && len(value) >= 32 && containsAny(strings.ToLower(s[i:j]), digestWords()) {
					return linkNone, 0 // "password sha256: …"
				}
				return linkWord, j + 1
			}
		}
		if c := s[j]; c != ' ' && c != '\'' && c < 0x80 {
			continue
		}
		if s[j] == ' ' && han(s, i, j) {
			// Chinese needs no verb: "密码还是老的 value".
			if value, _, quoted := readValue(s, j); telling(value) && realPassword(value, linkWord, quoted) {
				return linkWord, j
			}
		}
		if at := verb(s, j); at > 0 {
			if value, _, quoted := readValue(s, at); realPassword(value, linkWord, quoted) || random(value) {
				return linkWord, at
			}
		}
	}
	return linkNone, 0
}

// maxHan bounds the characters between a Chinese name and its value in a sentence without a verb, in bytes.
const maxHan = 36

// han reports whether s[i:j] is Chinese text without punctuation, which goes on from a Chinese name before it.
func han(s string, i, j int) bool {
	if i == 0 || s[i-1] < 0x80 || j == i || j-i > maxHan {
		return false
	}
	for _, r := range s[i:j] {
		if !unicode.Is(unicode.Han, r) {
			return false
		}
	}
	return true
}

// verb reads " is ", " was set to ", "是" and their like at i; it returns where they end, 0 if there is none.
func verb(s string, i int) int {
	n, after := verbAt(s[i:])
	if n == 0 {
		return 0
	}
	at := i + n
	for _, more := range []string{"now ", "still ", "set to ", "currently ", "always ", "just ", "simply ", "called ", "the same: ", "jetzt ", "nun ", "了", "：", ":", " "} {
		if strings.HasPrefix(s[at:], more) {
			at += len(more)
		}
	}
	if after != "" && !followed(s, at, after) {
		return 0
	}
	return at
}

// verbAt returns the length of what may stand between a name and its value in a sentence and begins s; and, if it says
// so only together with a word after the value, how this word must begin, alternatives divided by "|". It is asked at
// every blank near a name, so it looks at as few words as it can.
func verbAt(s string) (n int, after string) {
	if len(s) < 2 {
		return 0, ""
	}
	first := func(list ...string) (int, string) {
		for _, w := range list {
			if strings.HasPrefix(s, w) {
				return len(w), ""
			}
			// The value may stand in the next line, marked.
			if n := len(w); n+1 < len(s) && s[n-1] == '\n' && w[n-1] == ' ' && strings.IndexByte("`*\"", s[n]) >= 0 && s[:n-1] == w[:n-1] {
				return n, ""
			}
		}
		return 0, ""
	}
	if s[0] == '\'' {
		return first("'s ")
	}
	if s[0] != ' ' {
		// Chinese, Japanese and Korean write no blank before; what comes behind decides where the word is a particle.
		for _, w := range [...]string{"を", "를 ", "을 "} {
			if strings.HasPrefix(s, w) {
				return len(w), "に変更|に設定|にし|に更新|로|으로"
			}
		}
		return first("是", "为", "為", "改成", "设成", "設為", "等于", "は", "는 ", "은 ")
	}
	switch s[1] {
	case 'i':
		return first(" is ", " ist ")
	case 'w':
		return first(" was ", " war ")
	case 'a':
		if strings.HasPrefix(s, " auf ") {
			return len(" auf "), "ge|um|zurück"
		}
		return first(" are ", " as ")
	case 't':
		return first(" to ")
	case 's':
		return first(" set to ", " still ", " says ", " stays ")
	case 'r':
		return first(" reads ", " remains ")
	case 'b':
		return first(" became ")
	case 'u':
		return first(" use ")
	case 'e':
		return first(" es ", " est ", " era ", " equals ")
	case 'l':
		return first(" lautet ", " lautete ")
	case 'h':
		return first(" heißt ")
	case '-':
		return first(" - ")
	case 0xc3:
		return first(" è ", " é ")
	case 0xe2:
		return first(" – ", " — ")
	}
	return 0, ""
}

// followed reports whether the value at i is followed by one of the alternatives.
func followed(s string, i int, after string) bool {
	value, from, _ := readValue(s, i)
	rest := strings.TrimLeft(s[from+len(value):min(len(s), from+len(value)+32)], " `\"'*“”」』")
	for _, a := range strings.Split(after, "|") {
		if strings.HasPrefix(rest, a) {
			return true
		}
	}
	return false
}

// before looks for sentences that name the value first: "use VALUE as the admin password".
func (p *pass) before(start int, password bool) {
	s := p.v.s
	from := max(lineStart(s, start), start-maxBetween)
	for from < start && s[from]&0xc0 == 0x80 {
		from++
	}
	head := s[from:start]
	if password && strings.HasSuffix(head, " (") {
		text := strings.TrimRight(head[:len(head)-1], "`\"'*_ ")
		word := strings.LastIndexAny(text, " `\"'*(") + 1
		if value := text[word:]; telling(value) && realPassword(value, linkWord, true) {
			p.addOwn(rulePassword, value, from+word, rankKnown) // "VALUE (password)"
		}
		return
	}
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
