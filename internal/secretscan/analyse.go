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
	return literals(re).sets
}

// spelled is what is known of the texts that an expression matches, all in lower case.
type spelled struct {
	exact []string   // all of them, if they are few; else nil
	start []string   // each begins with one of these; nil if not known
	sets  [][]string // each holds one string of every set
}

func literals(re *syntax.Regexp) spelled {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return spelled{exact: []string{""}, start: []string{""}}
	case syntax.OpLiteral:
		s := []string{strings.ToLower(string(re.Rune))}
		return spelled{s, s, [][]string{s}}
	case syntax.OpCharClass:
		s := classLiterals(re.Rune)
		return spelled{exact: s, start: s}
	case syntax.OpCapture:
		return literals(re.Sub[0])
	case syntax.OpPlus:
		l := literals(re.Sub[0])
		l.exact = nil
		return l
	case syntax.OpRepeat:
		if re.Min == 0 {
			return spelled{}
		}
		l := literals(re.Sub[0])
		if re.Min != 1 || re.Max != 1 {
			l.exact = nil
		}
		return l
	case syntax.OpQuest:
		l := literals(re.Sub[0])
		if l.exact == nil {
			return spelled{}
		}
		s := append(slices.Clone(l.exact), "")
		return spelled{exact: s, start: s}
	case syntax.OpConcat:
		return concatLiterals(re.Sub)
	case syntax.OpAlternate:
		return alternateLiterals(re.Sub)
	}
	return spelled{}
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

func concatLiterals(subs []*syntax.Regexp) spelled {
	var out spelled
	run := []string{""} // what the neighbouring exact parts can spell together
	whole := true
	end := func(set []string) {
		if !slices.Contains(set, "") {
			out.sets = append(out.sets, set)
		}
		if whole {
			out.start = set
		}
		whole = false
		run = []string{""}
	}
	for _, sub := range subs {
		l := literals(sub)
		out.sets = append(out.sets, l.sets...)
		if next := cross(run, l.exact); next != nil {
			run = next
			continue
		}
		if next := cross(run, l.start); next != nil {
			end(next)
		} else {
			end(run)
			if l.exact != nil && len(l.exact) <= maxSet {
				run = l.exact
			}
		}
	}
	if whole {
		out.exact = run
	}
	end(run)
	return out
}

// cross joins every string of a with every one of b; nil if b is nil or the result too large.
func cross(a, b []string) []string {
	if b == nil || len(a)*len(b) > maxSet {
		return nil
	}
	var out []string
	for _, x := range a {
		for _, y := range b {
			if xy := x + y; !slices.Contains(out, xy) {
				out = append(out, xy)
			}
		}
	}
	return out
}

func alternateLiterals(subs []*syntax.Regexp) spelled {
	var out spelled
	var union []string
	exact, start, known := true, true, true
	for _, sub := range subs {
		l := literals(sub)
		exact = exact && l.exact != nil
		start = start && l.start != nil
		out.exact = append(out.exact, l.exact...)
		out.start = append(out.start, l.start...)
		var best []string
		for _, set := range append([][]string{l.exact, l.start}, l.sets...) {
			if len(set) > 0 && !slices.Contains(set, "") && (best == nil || shortest(set) > shortest(best)) {
				best = set
			}
		}
		known = known && best != nil
		union = append(union, best...)
	}
	if known && len(union) <= maxSet {
		out.sets = [][]string{union}
	}
	if !exact || len(out.exact) > maxSet {
		out.exact = nil
	}
	if !start || len(out.start) > maxSet {
		out.start = nil
	}
	return out
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
