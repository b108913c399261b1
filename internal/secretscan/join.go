package secretscan

import "strings"

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
		if to-tail < minJoinPiece {
			start = next
			continue
		}
		// Follow the word through as many lines as it fills.
		type piece struct{ from, to int }
		pieces := []piece{{from, to}}
		length, stats := to-tail, charStats(s[tail:to])
		for next < len(s) {
			nextEnd := lineEnd(s, next)
			f, t := trimLine(s, next, nextEnd)
			head := headToken(s, f, t)
			if head-f < minJoinPiece {
				break
			}
			length += head - f
			stats = stats.add(charStats(s[f:head]))
			pieces = append(pieces, piece{f, t})
			next = nextEnd + 1
			if head != t {
				break
			}
		}
		if len(pieces) == 1 || length < minJoined || !mixedWord(stats) {
			start = end + 1
			continue
		}
		any = true
		for _, p := range pieces {
			b.keep(p.from, p.to)
		}
		b.put("\n", pieces[len(pieces)-1].to)
		// The last line may begin another cut word at its end, unless it was all one word.
		last := pieces[len(pieces)-1]
		start = max(end+1, strings.LastIndexByte(s[:last.from], '\n')+1)
		if headToken(s, last.from, last.to) == last.to {
			start = next
		}
	}
	if !any {
		return nil
	}
	return b.variant()
}

// mixedWord tells a cut token from two words of prose: letters and digits, or capitals where prose has none.
func mixedWord(st stats) bool {
	return st.letters() > 0 && st.digits > 0 || st.upper >= 8 && st.lower <= 4 || st.turns >= 4
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
