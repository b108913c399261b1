package secretscan

import (
	"net/url"
	"strings"
)

// maxAuthority bounds what stands between "://" and the end of the host, in bytes.
const maxAuthority = 512

// ownURLs finds user and password before a host: "scheme://user:password@host", with an empty user too, and the form
// "user:password@tcp(host)" of Go's MySQL driver.
func (p *pass) ownURLs(start, end int) {
	s := p.v.s
	if s[start] == '@' {
		from := start
		for from > 0 && start-from < 256 && !isSpace(s[from-1]) && strings.IndexByte("\"'`=<(", s[from-1]) < 0 {
			from--
		}
		p.userinfo(from, start, "tcp")
		return
	}
	if s[start] == ':' && s[end-1] == ':' {
		p.slashPair(end)
		return
	}
	if start == 0 || !isAlnum(s[start-1]) {
		return
	}
	to := end
	for to < len(s) && to < end+maxAuthority && !isSpace(s[to]) && strings.IndexByte("/?#\"'`|\\", s[to]) < 0 {
		to++
	}
	at := strings.LastIndexByte(s[end:to], '@')
	if at < 0 {
		return
	}
	at += end
	host := s[at+1 : to]
	if host == "" {
		return
	}
	p.userinfo(end, at, host)
}

// slashPair finds Oracle's "user/password@host" within the word at i, which may begin with the driver's name.
func (p *pass) slashPair(i int) {
	s := p.v.s
	to := i
	for to < len(s) && to < i+maxAuthority && !isSpace(s[to]) && strings.IndexByte("\"'`<>", s[to]) < 0 {
		to++
	}
	at := strings.IndexByte(s[i:to], '@')
	if at < 0 {
		return
	}
	user, pass, ok := strings.Cut(s[i:i+at], "/")
	if !ok || pass == "" {
		return
	}
	if colon := strings.LastIndexByte(user, ':'); isName(user[colon+1:]) && realPassword(pass, linkSpace, true) {
		p.addOwn(ruleURL, pass, i+len(user)+1, rankKnown)
	}
}

// userinfo judges s[from:to], which stands before "@host".
func (p *pass) userinfo(from, to int, host string) {
	info := p.v.s[from:to]
	user, pass, ok := strings.Cut(info, ":")
	if !ok {
		// A token alone, as "https://TOKEN@host".
		if len(info) >= 20 && random(info) {
			p.addOwn(ruleURL, info, from, rankKnown)
		}
		return
	}
	if plain, err := url.PathUnescape(pass); err == nil {
		pass = plain
	}
	if len(pass) < 3 || placeholder(pass) || reference(pass) || strings.ContainsAny(pass, "<>{}$") && placeholderMark(pass) {
		return
	}
	if strings.EqualFold(user, pass) && localHost(host) {
		return // postgres:postgres@localhost, the same on every machine
	}
	if len(pass) < 6 && exampleHost(host) {
		return
	}
	if strings.EqualFold(pass, "pass") || strings.EqualFold(pass, "pw") || strings.EqualFold(pass, "pwd") {
		return
	}
	p.addOwn(ruleURL, pass, from+len(user)+1, rankKnown)
}

func localHost(host string) bool {
	name, _, _ := strings.Cut(host, ":")
	switch name {
	case "localhost", "127.0.0.1", "::1", "[", "db", "postgres", "mysql", "redis", "rabbitmq", "mongo", "host":
		return true
	}
	return exampleHost(host)
}

// exampleHost reports the names reserved for documentation and tests (RFC 2606).
func exampleHost(host string) bool {
	name, _, _ := strings.Cut(host, ":")
	for _, domain := range []string{"example.com", "example.org", "example.net", "example", "test"} {
		if name == domain || strings.HasSuffix(name, "."+domain) {
			return true
		}
	}
	return false
}
