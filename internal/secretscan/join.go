package secretscan

import (
	"strings"
	"unicode"
)

const (
	// minJoinPiece and minJoined bound what looks like a token that a line end cut in two, in characters.
	minJoinPiece = 3
	minJoined    = 16
)

// join returns the lines of v whose last word may go on in the next line, put together; or nil if there are none. A
// cut word is one of sixteen characters or more with letters and digits, whatever quoting, list or continuation marks
// stand at the line end and the next line's start.
func join(v *variant) *variant {
	s := v.s
	b := &builder{parent: v}
	any := false
	for start := 0; start < len(s); {
		end := lineEnd(s, start)
		if end == len(s) {
			break
		}
		from, to := trimLine(s, start, end)
		tail := tailToken(s, from, to)
		next := end + 1
		if to-tail < minJoinPiece || !fragment(s[tail:to]) {
			start = next
			continue
		}
		// Follow the word through as many lines as it fills.
		pieces := []piece{{from, to}}
		length, stats := to-tail, charStats(s[tail:to])
		for next < len(s) {
			nextEnd := lineEnd(s, next)
			f, t := trimLine(s, next, nextEnd)
			head := headToken(s, f, t)
			if head-f < minJoinPiece || !fragment(s[f:head]) {
				break
			}
			length += head - f
			stats = stats.add(charStats(s[f:head]))
			pieces = append(pieces, piece{f, t})
			if head != t {
				break // the line goes on after the word; another cut word may stand at its end
			}
			next = nextEnd + 1
		}
		// No part of these lines can be a cut word if the whole is none.
		start = max(next, end+1)
		if len(pieces) == 1 || length < minJoined || !mixedWord(stats) {
			continue
		}
		any = true
		// Where the token begins and ends is a guess: the lines at both ends may be its neighbours.
		b.cutLines(pieces)
		if n := len(pieces); n > 2 {
			b.cutLines(pieces[1:])
			b.cutLines(pieces[:n-1])
			if n > 3 {
				b.cutLines(pieces[1 : n-1])
			}
		}
	}
	if !any {
		return nil
	}
	return b.variant()
}

// piece is the text of one line.
type piece struct{ from, to int }

// cutLines writes pieces as one line.
func (b *builder) cutLines(pieces []piece) {
	for _, p := range pieces {
		b.keep(p.from, p.to)
	}
	end := pieces[len(pieces)-1].to
	b.put("\n", end, end)
}

// goesOn returns where in s a value ends that was found up to s[to]: a rule may know it by its beginning, and a line end
// may have cut the rest off. What follows is its rest while a line holds nothing but what can be a part of a token.
func goesOn(s string, to int) int {
	for to > 0 && s[to-1] == '\n' {
		to--
	}
	end := lineEnd(s, to)
	if f, t := trimLine(s, headToken(s, to, end), end); f < t {
		return to // its line goes on after it
	}
	for next := end + 1; next < len(s); {
		end = lineEnd(s, next)
		f, t := trimLine(s, next, end)
		head := headToken(s, f, t)
		if head-f < minJoinPiece || !fragment(s[f:head]) || named(s[f:head]) || hasAlnum(s[head:t]) {
			break
		}
		to, next = head, end+1
	}
	return to
}

// named knows a word that says what it is: "name=value", or a link.
func named(s string) bool {
	return strings.Contains(strings.TrimRight(s, "="), "=") || strings.Contains(s, "://")
}

func hasAlnum(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) >= 0
}

// fragment tells a part of a token from a word of prose.
func fragment(s string) bool {
	st := charStats(s)
	return st.digits > 0 || st.upper >= 3 || st.turns >= 2 || len(s) >= minJoined || strings.IndexByte(s, '_') >= 0
}

// mixedWord tells a cut token from two words of prose: letters and digits, or capitals where prose has none.
func mixedWord(st stats) bool {
	return st.letters() > 0 && st.digits > 0 || st.upper >= 8 && st.lower <= 4 || st.turns >= 3
}

func lineEnd(s string, from int) int {
	if n := strings.IndexByte(s[from:], '\n'); n >= 0 {
		return from + n
	}
	return len(s)
}

// trimLine drops what is not the text of a line: indentation, quote and list marks, quotes, continuation marks.
func trimLine(s string, from, to int) (int, int) {
	for from < to {
		c := s[from]
		marker := (c == '-' || c == '*' || c == '+' || c == '#' || c == '.') && from+1 < to && s[from+1] == ' '
		if !marker && !isSpace(c) && strings.IndexByte(">\"'`|(", c) < 0 {
			break
		}
		from++
	}
	for from < to && (isSpace(s[to-1]) || strings.IndexByte("\\\"'`|+,", s[to-1]) >= 0) {
		to--
	}
	return from, to
}

func tailToken(s string, from, to int) int {
	for to > from && isToken(s[to-1]) {
		to--
	}
	return to
}

func headToken(s string, from, to int) int {
	for from < to && isToken(s[from]) {
		from++
	}
	return from
}
