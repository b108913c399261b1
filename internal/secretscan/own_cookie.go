package secretscan

import "strings"

// cookies finds the values of session cookies: behind "Cookie:" and "Set-Cookie:", behind curl's "-b", and behind the
// names that frameworks give them.
func (p *pass) cookies(start, end int) {
	s := p.v.s
	stop := lineStop(s, end)
	word := strings.ToLower(s[start:end])
	if word != "cookie:" && word != "cookie " {
		// "JSESSIONID=…": the name itself is known.
		if byteAt(s, end) == '=' {
			p.cookie(end+1, stop)
		}
		return
	}
	if word == "cookie " {
		for _, verb := range [...]string{"is ", "was ", "= "} {
			if strings.HasPrefix(s[end:], verb) && strings.Contains(strings.ToLower(s[max(0, start-24):start]), "session") {
				p.cookie(end+len(verb), stop)
			}
		}
		return
	}
	for i := end; i < stop; {
		part := s[i:stop]
		if semi := strings.IndexByte(part, ';'); semi >= 0 {
			part = part[:semi]
		}
		if name, _, ok := strings.Cut(part, "="); ok && sessionName(strings.Trim(name, " \"'`")) {
			p.cookie(i+len(name)+1, i+len(part))
		}
		i += len(part) + 1
	}
}

// sessionName reports the names of cookies that stand for a logged-in person.
func sessionName(name string) bool {
	low := strings.ToLower(name)
	return len(name) <= 64 && !strings.Contains(low, "csrf") && !strings.Contains(low, "xsrf") &&
		(containsAny(low, []string{"sess", "auth", "token", "jwt", "remember", "login", "ticket"}) || strings.HasSuffix(low, "sid"))
}

// minCookie is the shortest value of a session cookie, in bytes.
const minCookie = 16

// cookie judges the value of a session cookie.
func (p *pass) cookie(from, stop int) {
	s := p.v.s
	for from < stop && strings.IndexByte(" `\"'*", s[from]) >= 0 {
		from++
	}
	to := from
	for to < stop && to < from+maxOwnToken && (isAlnum(s[to]) || strings.IndexByte("%._~+/=-", s[to]) >= 0) {
		to++
	}
	value := strings.TrimRight(s[from:to], ".-")
	if len(value) < minCookie || isUUID(value) || placeholder(value) || reference(value) {
		return
	}
	if bare := strings.NewReplacer("s%3A", "", "%", "").Replace(value); isHex(bare) && charStats(bare).kinds() > 1 || random(bare) {
		p.addOwn(ruleCookie, value, from, rankKnown)
	}
}
