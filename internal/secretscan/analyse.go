package secretscan

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// maxSet bounds the sets of literals that requiredSets carries.
const maxSet = 64

// requiredSets returns sets of lower-case strings such that every match of re holds at least one string of each set.
func requiredSets(re *syntax.Regexp) [][]string {
	_, sets := literals(re)
	return sets
}

// literals returns the strings that re can match, if they are few (else nil), and the sets as requiredSets does.
func literals(re *syntax.Regexp) (exact []string, sets [][]string) {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return []string{""}, nil
	case syntax.OpLiteral:
		s := []string{strings.ToLower(string(re.Rune))}
		return s, [][]string{s}
	case syntax.OpCharClass:
		return classLiterals(re.Rune), nil
	case syntax.OpCapture:
		return literals(re.Sub[0])
	case syntax.OpPlus:
		_, sets = literals(re.Sub[0])
		return nil, sets
	case syntax.OpRepeat:
		if re.Min == 0 {
			return nil, nil
		}
		exact, sets = literals(re.Sub[0])
		if re.Min == 1 && re.Max == 1 {
			return exact, sets
		}
		return nil, sets
	case syntax.OpQuest:
		exact, _ = literals(re.Sub[0])
		if exact == nil {
			return nil, nil
		}
		return append(slices.Clone(exact), ""), nil
	case syntax.OpConcat:
		return concatLiterals(re.Sub)
	case syntax.OpAlternate:
		return alternateLiterals(re.Sub)
	}
	return nil, nil
}

// classLiterals lists the members of a small class, such as the two cases of a letter.
func classLiterals(ranges []rune) []string {
	var out []string
	for i := 0; i+1 < len(ranges); i += 2 {
		for c := ranges[i]; c <= ranges[i+1]; c++ {
			if len(out) == 8 {
				return nil
			}
			if s := strings.ToLower(string(c)); !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}

func concatLiterals(subs []*syntax.Regexp) (exact []string, sets [][]string) {
	run := []string{""} // what the neighbouring exact parts can spell together
	whole := true
	flush := func() {
		if !slices.Contains(run, "") {
			sets = append(sets, run)
		}
		run = []string{""}
	}
	for _, sub := range subs {
		e, s := literals(sub)
		sets = append(sets, s...)
		if e == nil || len(e)*len(run) > maxSet {
			flush()
			whole = false
			if e != nil {
				run = e
			}
			continue
		}
		var next []string
		for _, a := range run {
			for _, b := range e {
				if ab := a + b; !slices.Contains(next, ab) {
					next = append(next, ab)
				}
			}
		}
		run = next
	}
	if whole {
		exact = run
	}
	flush()
	return exact, sets
}

func alternateLiterals(subs []*syntax.Regexp) (exact []string, sets [][]string) {
	var union []string
	whole, known := true, true
	for _, sub := range subs {
		e, s := literals(sub)
		if e == nil {
			whole = false
		} else {
			exact = append(exact, e...)
		}
		best := e
		if slices.Contains(best, "") {
			best = nil
		}
		for _, set := range s {
			if best == nil || shortest(set) > shortest(best) {
				best = set
			}
		}
		if best == nil {
			known = false
		}
		union = append(union, best...)
	}
	if known && len(union) <= maxSet {
		sets = [][]string{union}
	}
	if !whole || len(exact) > maxSet {
		exact = nil
	}
	return exact, sets
}

func shortest(set []string) int {
	n := len(set[0])
	for _, s := range set {
		n = min(n, len(s))
	}
	return n
}

// minLength is the length of the shortest match of re, in bytes.
func minLength(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpPlus:
		return minLength(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min * minLength(re.Sub[0])
	case syntax.OpConcat:
		n := 0
		for _, s := range re.Sub {
			n += minLength(s)
		}
		return n
	case syntax.OpAlternate:
		n := minLength(re.Sub[0])
		for _, s := range re.Sub[1:] {
			n = min(n, minLength(s))
		}
		return n
	}
	return 0
}

// spaceOnlyAtEdges reports that white space can only be the first or the last character of a match.
func spaceOnlyAtEdges(re *syntax.Regexp) bool {
	if re.Op == syntax.OpCapture {
		return spaceOnlyAtEdges(re.Sub[0])
	}
	if re.Op != syntax.OpConcat {
		return !canSpace(re)
	}
	for i, s := range re.Sub {
		if canSpace(s) && !(maxOne(s) && (i == 0 || i == len(re.Sub)-1)) {
			return false
		}
	}
	return true
}

// maxOne reports that re matches at most one character, or more than one only without white space.
func maxOne(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpEmptyMatch, syntax.OpBeginText,
		syntax.OpEndText, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	case syntax.OpLiteral:
		return len(re.Rune) == 1
	case syntax.OpCapture:
		return maxOne(re.Sub[0])
	case syntax.OpAlternate:
		for _, s := range re.Sub {
			if !maxOne(s) && canSpace(s) {
				return false
			}
		}
		return true
	}
	return false
}

// canSpace reports whether a match of re can hold ASCII white space.
func canSpace(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return slices.ContainsFunc(re.Rune, func(r rune) bool { return r < 0x80 && isSpace(byte(r)) })
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			for _, c := range " \t\n\r\f\v" {
				if re.Rune[i] <= c && c <= re.Rune[i+1] {
					return true
				}
			}
		}
		return false
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return true
	}
	return slices.ContainsFunc(re.Sub, canSpace)
}

func isSpace(c byte) bool {
	return c == ' ' || c >= '\t' && c <= '\r'
}
