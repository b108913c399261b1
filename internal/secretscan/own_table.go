package secretscan

import "strings"

// maxRows bounds how many rows of a table are looked at below a heading.
const maxRows = 50

// column looks below a table heading that names a secret.
func (p *pass) column(start, end int, password bool) {
	s := p.v.s
	from := lineStart(s, start)
	head := s[from:lineStop(s, end)]
	if strings.IndexByte(head, '|') < 0 {
		return
	}
	next := from + len(head) + 1
	if next >= len(s) {
		return
	}
	rule := s[next:lineStop(s, next)]
	if strings.IndexByte(rule, '-') < 0 || strings.Trim(rule, " \t\r|:->") != "" {
		return
	}
	if _, ok := nameTail(s, end); !ok {
		return
	}
	cell := strings.Count(s[from:start], "|")
	rows := 0
	for row := next + len(rule) + 1; row < len(s) && rows < maxRows; rows++ {
		to := lineStop(s, row)
		at, rest := row, s[row:to]
		if strings.IndexByte(rest, '|') < 0 {
			return
		}
		for range cell {
			bar := strings.IndexByte(rest, '|')
			if bar < 0 {
				break
			}
			at, rest = at+bar+1, rest[bar+1:]
		}
		value, from, quoted := readValue(s, at)
		switch {
		case from > to:
		case password && realPassword(value, linkCell, quoted):
			p.addOwn(rulePassword, value, from, rankKnown)
		case !password && random(value):
			p.addOwn(ruleSecret, value, from, rankGuess)
		}
		row = to + 1
	}
}
