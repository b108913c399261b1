package secretscan

import "strings"

// codeList looks at a list of recovery codes that begins at an offset: at least two of one form.
func (p *pass) codeList(from, level int) {
	s := p.v.s
	to := from
	for n := 0; to < len(s) && n < maxItems; n++ {
		stop := lineStop(s, to)
		text := itemStart(s, to, stop)
		if level == 0 && strings.TrimRight(s[text:stop], "\r ") == "" || byteAt(s, text) == '#' {
			break
		}
		to = stop + 1
	}
	p.codes(from, min(to, len(s)))
}

// minCodes is how many codes of one length make a list of recovery codes.
const minCodes = 2

// codes reports the recovery codes in s[from:to], if they are a list.
func (p *pass) codes(from, to int) {
	s := p.v.s
	type span struct{ from, to int }
	var found []span
	for i := from; i < to && len(found) < maxItems; {
		for i < to && !isAlnum(s[i]) {
			i++
		}
		end := i
		for end < to && (isAlnum(s[end]) || s[end] == '-') {
			end++
		}
		if end > i && (i == 0 || s[i-1] != '_') && recoveryCode(strings.TrimRight(s[i:end], "-")) && (end == to || strings.IndexByte("_.:/@=(", s[end]) < 0) {
			found = append(found, span{i, end})
		}
		i = max(end, i+1)
	}
	alike := map[int]int{} // by length: codes of one list have one
	for _, f := range found {
		alike[f.to-f.from]++
	}
	for _, f := range found {
		if alike[f.to-f.from] < minCodes {
			continue
		}
		p.addOwn(ruleFactor, strings.TrimRight(s[f.from:f.to], "-"), f.from, rankKnown)
	}
}

// compactDate reports a day of this or the last century as eight digits, as versions and files have it.
func compactDate(v string) bool {
	return len(v) == 8 && charStats(v).digits == 8 && (v[:2] == "20" || v[:2] == "19") && v[4:6] >= "01" && v[4:6] <= "12" && v[6:] >= "01" && v[6:] <= "31"
}

// recoveryCode reports groups of four to six letters and digits with dashes between, eight to sixteen of them that mix,
// or six to ten digits.
func recoveryCode(v string) bool {
	st := charStats(v)
	if st.digits == 0 || isDate(v) || compactDate(v) || placeholder(v) {
		return false
	}
	if st.marks == 0 {
		return st.letters() == 0 && len(v) >= 6 && len(v) <= 10 || len(v) >= 8 && len(v) <= 16 && st.letters() > 0
	}
	groups := strings.Split(v, "-")
	for _, g := range groups {
		if len(g) < 4 || len(g) > 6 || len(g) != len(groups[0]) {
			return false
		}
	}
	return true
}
