package workspace

import (
	"os"
	"slices"
	"strings"
	"time"
)

// everything ignores every path.
func everything() *Ignore {
	return &Ignore{rules: []ignoreRule{{segments: []string{"**", "*"}}}}
}

// settleRules takes over the rules that were read. A file is seldom saved in one step: it
// is emptied or renamed first, and what it hides must not leave meanwhile. So what was
// ignored stays so until the new rules have been there for Options.RulesGrace; what they
// hide beyond that is hidden at once. The snapshot says when to look again.
func (s *scan) settleRules(root *os.Root, rules *Ignore, text []byte) {
	w := s.w
	switch {
	case !w.rulesKnown:
		// After a start nobody knows what was ignored before.
		if at, young := s.rulesInTheMaking(root); young {
			w.keptRules, w.rulesSince = []*Ignore{everything()}, at
		}
	case !slices.Equal(text, w.ignoreText):
		if len(w.rules.rules) > 0 && !slices.ContainsFunc(w.keptRules, w.rules.equal) {
			w.keptRules = append(w.keptRules, w.rules)
		}
		w.rulesSince = s.now
	}
	changed := !w.rulesKnown || !slices.Equal(text, w.ignoreText)
	w.rules, w.ignoreText, w.rulesKnown = rules, text, true
	if len(w.keptRules) > 0 {
		left := w.opts.RulesGrace - s.now.Sub(w.rulesSince)
		if left > w.opts.RulesGrace { // the clock was set back
			w.rulesSince, left = s.now, w.opts.RulesGrace
		}
		if s.snap.Again = max(left, 0); left <= 0 {
			w.keptRules, changed = nil, true
		} else if slices.ContainsFunc(w.keptRules, func(old *Ignore) bool { return !rules.extends(old) }) {
			rules = &Ignore{rules: rules.rules, also: slices.Clone(w.keptRules)}
		} else {
			w.keptRules, s.snap.Again, changed = nil, 0, true
		}
	}
	if changed {
		w.ignore = rules
	}
}

// rulesInTheMaking reports whether the ignore file is young, or is not there a moment
// after something happened in the root while a copy of it lies beside it, and since when.
func (s *scan) rulesInTheMaking(root *os.Root) (since time.Time, young bool) {
	fi, err := root.Lstat(IgnoreName)
	if err != nil {
		infos, err := list(root)
		if err != nil || !slices.ContainsFunc(infos, func(fi os.FileInfo) bool { return strings.Contains(fi.Name(), IgnoreName) }) {
			return time.Time{}, false
		}
		if fi, err = root.Stat("."); err != nil {
			return time.Time{}, false
		}
	}
	age := s.now.Sub(fi.ModTime())
	return fi.ModTime(), age >= 0 && age < s.w.opts.RulesGrace
}

// equal reports whether both have the same rules of their own.
func (ig *Ignore) equal(other *Ignore) bool { return slices.EqualFunc(ig.rules, other.rules, sameRule) }

// extends reports whether ig surely ignores all that old does: it begins with the same
// rules, and takes nothing back after them.
func (ig *Ignore) extends(old *Ignore) bool {
	n := len(old.rules)
	return len(ig.rules) >= n && slices.EqualFunc(ig.rules[:n], old.rules, sameRule) &&
		!slices.ContainsFunc(ig.rules[n:], func(r ignoreRule) bool { return r.keep })
}

func sameRule(a, b ignoreRule) bool {
	return a.keep == b.keep && a.dirOnly == b.dirOnly && slices.Equal(a.segments, b.segments)
}
