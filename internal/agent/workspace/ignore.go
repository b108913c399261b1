package workspace

import (
	"fmt"
	"path"
	"strings"

	"github.com/memsvc/memsvc/internal/memory"
)

// IgnoreName is the file in the root that says which paths stay out of the sync:
// neither sent, pulled nor deleted (ruling 13.18).
const IgnoreName = ".memsyncignore"

// Bounds of an ignore file; beyond them it is not obeyed in part but refused.
const (
	maxIgnoreBytes    = 64 << 10
	maxIgnorePatterns = 1000
)

// Ignore is a parsed .memsyncignore. Its language is a subset of .gitignore:
//
//   - one pattern a line; empty lines and lines that begin with # say nothing; a
//     backslash takes the meaning from a leading # or ! and from * ? [ within a name;
//     blanks at the end do not count;
//   - * and ? match within a name, [a-z] and [!a-z] one character of it; ** as a whole
//     name matches any number of directories, also none;
//   - a pattern with a slash at its beginning or inside is bound to the root, any
//     other matches at every depth;
//   - a slash at the end matches directories only; what matches a directory holds for
//     everything below it;
//   - ! before a pattern takes back what an earlier line ignored, but not below a
//     directory that stays ignored; the last line that matches decides.
//
// Matching is by character, case counts, names are compared in NFC. The zero value
// ignores nothing.
type Ignore struct {
	rules []ignoreRule
	also  []*Ignore // what these ignore is ignored too; see settleRules
}

type ignoreRule struct {
	segments []string // "**" stands for any number of names
	keep     bool     // !
	dirOnly  bool
}

// IgnoreError is a line of an ignore file that cannot be understood.
type IgnoreError struct {
	Line    int // 1-based; 0 = the file as a whole
	Message string
}

// Error returns the file's name, the line and what is wrong with it.
func (e *IgnoreError) Error() string {
	if e.Line == 0 {
		return IgnoreName + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d: %s", IgnoreName, e.Line, e.Message)
}

// ParseIgnore reads an ignore file. The error is an *IgnoreError.
func ParseIgnore(content []byte) (*Ignore, error) {
	if len(content) > maxIgnoreBytes {
		return nil, &IgnoreError{Message: fmt.Sprintf("the file has over %d bytes; shorten it", maxIgnoreBytes)}
	}
	ig := &Ignore{}
	line := 0
	for text := range strings.Lines(strings.TrimPrefix(string(content), "\ufeff")) {
		line++
		rule, ok, err := parseIgnoreLine(strings.TrimRight(text, "\r\n"))
		if err != nil {
			return nil, &IgnoreError{Line: line, Message: err.Error()}
		}
		if !ok {
			continue
		}
		if len(ig.rules) == maxIgnorePatterns {
			return nil, &IgnoreError{Line: line, Message: fmt.Sprintf("there are over %d patterns; use fewer", maxIgnorePatterns)}
		}
		ig.rules = append(ig.rules, rule)
	}
	return ig, nil
}

func parseIgnoreLine(text string) (rule ignoreRule, ok bool, err error) {
	text = trimBlanks(text)
	if text == "" || text[0] == '#' {
		return rule, false, nil
	}
	if text[0] == '!' {
		rule.keep, text = true, text[1:]
	}
	if rest, cut := strings.CutSuffix(text, "/"); cut {
		rule.dirOnly, text = true, rest
	}
	bound := strings.Contains(text, "/")
	text = strings.TrimPrefix(text, "/")
	if text == "" {
		return rule, false, fmt.Errorf("the pattern names nothing")
	}
	text = memory.NormalizePath(text)
	if !bound {
		rule.segments = append(rule.segments, "**")
	}
	for seg := range strings.SplitSeq(text, "/") {
		if seg == "" || seg == "." || seg == ".." {
			return rule, false, fmt.Errorf("a name in the pattern is empty, '.' or '..'")
		}
		if seg != "**" {
			seg = strings.ReplaceAll(seg, "[!", "[^")
			if _, err := path.Match(seg, "x"); err != nil {
				return rule, false, fmt.Errorf("a bracket or a backslash in the pattern is not closed")
			}
		} else if n := len(rule.segments); n > 0 && rule.segments[n-1] == "**" {
			continue // two in a row say the same and cost more
		}
		rule.segments = append(rule.segments, seg)
	}
	if rule.segments[len(rule.segments)-1] == "**" {
		// a/** is everything below a, and not a itself.
		rule.segments = append(rule.segments, "*")
	}
	return rule, true, nil
}

// trimBlanks cuts blanks from the end unless a backslash holds one.
func trimBlanks(s string) string {
	for {
		t := strings.TrimRight(s, " \t")
		if t == s || strings.HasSuffix(t, `\`) && !strings.HasSuffix(t, `\\`) {
			return s
		}
		s = t
	}
}

// Match reports whether p is ignored: itself, or a directory above it.
func (ig *Ignore) Match(p memory.Path) bool {
	for _, other := range ig.also {
		if other.Match(p) {
			return true
		}
	}
	if len(ig.rules) == 0 {
		return false
	}
	names := strings.Split(string(p), "/")
	for n := 1; n < len(names); n++ {
		if ig.match(names[:n], true) {
			return true
		}
	}
	return ig.match(names, false)
}

// matchDir reports whether the directory p, and with it all below, is ignored, given
// that nothing above it is.
func (ig *Ignore) matchDir(p string) bool {
	for _, other := range ig.also {
		if other.matchDir(p) {
			return true
		}
	}
	return len(ig.rules) > 0 && ig.match(strings.Split(p, "/"), true)
}

// match judges names by the last rule that matches them.
func (ig *Ignore) match(names []string, dir bool) bool {
	for i := len(ig.rules) - 1; i >= 0; i-- {
		r := &ig.rules[i]
		if (dir || !r.dirOnly) && matchSegments(r.segments, names) {
			return !r.keep
		}
	}
	return false
}

// matchSegments matches names against a pattern in time proportional to the product
// of their lengths: on a mismatch only the last ** is tried further on.
func matchSegments(pattern, names []string) bool {
	p, n := 0, 0
	star, mark := -1, 0
	for n < len(names) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			star, mark = p, n
			p++
		case p < len(pattern) && matchName(pattern[p], names[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == "**" {
		p++
	}
	return p == len(pattern)
}

func matchName(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
