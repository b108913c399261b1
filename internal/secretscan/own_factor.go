package secretscan

import "strings"

const (
	// minSeed is the shortest seed of one-time codes, in base32 characters: ten bytes.
	minSeed = 16
	// maxSeedAway bounds how far behind its name a seed is looked for, in bytes.
	maxSeedAway = 120
)

// factors finds what makes the codes of a second factor: a seed in base32 after a word for it or in an otpauth URI, the
// data of an export, groups of digits of a BitLocker key, and what a carrier's QR code holds.
func (p *pass) factors(start, end int) {
	s := p.v.s
	stop := min(lineStop(s, end), end+maxSeedAway)
	switch strings.ToLower(s[start:end]) {
	case "otpauth-migration://":
		if at := strings.Index(s[end:stop], "data="); at >= 0 {
			from := end + at + len("data=")
			to := from
			for to < len(s) && to < from+maxOwnToken && (isBase64(s[to]) || s[to] == '%' || s[to] == '=') {
				to++
			}
			if to-from >= 24 && random(strings.ReplaceAll(s[from:to], "%", "")) {
				p.addOwn(ruleFactor, s[from:to], from, rankKnown)
			}
		}
		return
	case "lpa:1$":
		if host, code, ok := strings.Cut(s[end:stop], "$"); ok && host != "" {
			value, from, _ := readValue(s, end+len(host)+1)
			if len(code) >= 8 && len(value) >= 8 && charStats(value).digits > 1 && !placeholder(value) {
				p.addOwn(ruleFactor, value, from, rankKnown)
			}
		}
		return
	case "bitlocker":
		p.groups(end, stop)
		return
	case "app password", "app-specific password", "授权码":
		p.appPassword(end, stop)
		return
	}
	for i := end; i < stop; {
		to := i
		for to < len(s) && to < i+maxValue && base32Digit(s[to]) {
			to++
		}
		// What the run goes on with may make it part of something else.
		if to-i >= minSeed && !(i > 0 && isAlnum(s[i-1])) && (to == len(s) || !isAlnum(s[to])) && charStats(s[i:to]).digits > 0 && entropy(s[i:to]) > 2.9 {
			p.addOwn(ruleFactor, s[i:to], i, rankKnown)
			return
		}
		if n := spacedSeed(s[i:stop]); n > 0 && !(i > 0 && isAlnum(s[i-1])) {
			p.addOwn(ruleFactor, s[i:i+n], i, rankKnown)
			return
		}
		i = max(to, i+1)
	}
}

func base32Digit(c byte) bool { return c >= 'A' && c <= 'Z' || c >= '2' && c <= '7' }

// spacedSeed returns the length of a seed in groups of four that s begins with, as sites show it; 0 if there is none.
func spacedSeed(s string) int {
	n, digits := 0, 0
	for ; n+4 <= len(s); n += 5 {
		group := strings.ToUpper(s[n : n+4])
		for i := range len(group) {
			if !base32Digit(group[i]) {
				return 0
			}
			if isDigit(group[i]) {
				digits++
			}
		}
		if n+4 == len(s) || s[n+4] != ' ' && s[n+4] != '-' {
			n += 4
			break
		}
		if n+9 > len(s) || !isAlnum(s[n+5]) {
			n += 4
			break
		}
	}
	if n < 4*5-1 || digits < 2 || n < len(s) && isAlnum(s[n]) {
		return 0
	}
	return n
}

// appPassword finds sixteen small letters, alone or in four groups, as mail providers give them to programs.
func (p *pass) appPassword(i, stop int) {
	s := p.v.s
	for ; i < stop; i++ {
		if !isLetter(s[i]) || i > 0 && isAlnum(s[i-1]) {
			continue
		}
		to := i
		for to < stop && s[to] >= 'a' && s[to] <= 'z' {
			to++
		}
		if to-i == 4 {
			for to+5 <= len(s) && to-i < 19 && s[to] == ' ' && lowerWord(s[to+1:to+5]) {
				to += 5
			}
		}
		v := s[i:to]
		if bare := strings.ReplaceAll(v, " ", ""); len(bare) == 16 && (to == len(s) || !isAlnum(s[to])) && vowels(bare)*3 < len(bare) {
			p.addOwn(ruleFactor, v, i, rankKnown)
			return
		}
		i = to
	}
}

func lowerWord(s string) bool {
	return charStats(s).lower == len(s)
}

// groups finds eight groups of six digits.
func (p *pass) groups(i, stop int) {
	s := p.v.s
	for ; i < stop; i++ {
		if !isDigit(s[i]) {
			continue
		}
		to := i
		for to < len(s) && to < i+maxValue && (isDigit(s[to]) || s[to] == '-') {
			to++
		}
		if v := s[i:to]; len(v) == 8*6+7 && strings.Count(v, "-") == 7 {
			p.addOwn(ruleFactor, v, i, rankKnown)
			return
		}
		i = to
	}
}
