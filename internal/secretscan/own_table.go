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
		if byteAt(s, end) == ',' || start > 0 && s[start-1] == ',' {
			p.csv(from, start, password)
		}
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
		p.probe()
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

// laterCells looks at the cells behind the one at i, which tells what a variable is for: one of them may hold its value.
func (p *pass) laterCells(i int) {
	s := p.v.s
	to := lineStop(s, i)
	for range 4 {
		bar := strings.IndexByte(s[i:to], '|')
		if bar < 0 {
			return
		}
		i += bar + 1
		value, from, quoted := readValue(s, i)
		cell, _, _ := strings.Cut(s[min(from, to):to], "|")
		if from < to && strings.Trim(cell[min(len(value), len(cell)):], "`\"'* ") == "" && charStats(value).kinds() >= 3 && realPassword(value, linkWord, quoted) {
			p.addOwn(rulePassword, value, from, rankKnown)
			return
		}
	}
}

// csv looks below a line of names with commas between, which begins at from and names a secret at start.
func (p *pass) csv(from, start int, password bool) {
	s := p.v.s
	row := lineStop(s, from)
	names := strings.Split(strings.TrimRight(s[from:row], "\r"), ",")
	for _, n := range names {
		if !isName(strings.Trim(n, `"`)) {
			return // prose
		}
	}
	cell := strings.Count(s[from:start], ",")
	for rows := 0; row+1 < len(s) && rows < maxRows; rows++ {
		p.probe()
		row++
		to := lineStop(s, row)
		fields := strings.Split(strings.TrimRight(s[row:to], "\r"), ",")
		if len(fields) != len(names) {
			return
		}
		at := row
		for _, f := range fields[:cell] {
			at += len(f) + 1
		}
		value := strings.Trim(fields[cell], `"`)
		at += strings.Index(fields[cell], value)
		switch {
		case password && realPassword(value, linkCell, false):
			p.addOwn(rulePassword, value, at, rankKnown)
		case !password && random(value) && !p.harmlessHex(value, at, at+len(value)):
			p.addOwn(ruleSecret, value, at, rankGuess)
		}
		row = to
	}
}
