package secretscan

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
)

// allowlist says which hits of a rule are no secrets, by their value, match or line. Paths and commits are left out on
// purpose: who writes a file chooses its path, and nobody may allow himself.
type allowlist struct {
	all     bool // both criteria must hold, if both are given
	never   bool // an "and" with a path or commit, which never holds here
	target  string
	sources []string
	words   []string

	once    sync.Once
	regexes *regexp.Regexp      // nil if none
	byStart map[string][]string // stop words by their first bytes
}

// stopStart is how many leading bytes index the stop words.
const stopStart = 3

func newAllowlist(t tomlAllow) (*allowlist, error) {
	a := &allowlist{target: t.RegexTarget, sources: t.Regexes}
	switch strings.ToUpper(t.Condition) {
	case "", "OR", "||":
	case "AND", "&&":
		a.all = true
		a.never = len(t.Paths) > 0 || len(t.Commits) > 0
	default:
		return nil, fmt.Errorf("condition %q is neither and nor or", t.Condition)
	}
	switch a.target {
	case "secret":
		a.target = ""
	case "", "match", "line":
	default:
		return nil, fmt.Errorf("regexTarget %q is none of secret, match, line", t.RegexTarget)
	}
	if len(t.Paths)+len(t.Commits)+len(t.Regexes)+len(t.StopWords) == 0 {
		return nil, fmt.Errorf("allowlist has no criterion")
	}
	for _, list := range [][]string{t.Regexes, t.Paths} {
		for _, s := range list {
			if _, err := syntax.Parse(s, syntax.Perl); err != nil {
				return nil, fmt.Errorf("allowlist regex: %w", err)
			}
		}
	}
	for _, w := range t.StopWords {
		if w != "" {
			a.words = append(a.words, strings.ToLower(w))
		}
	}
	return a, nil
}

func (a *allowlist) prepare() {
	a.once.Do(func() {
		if len(a.sources) > 0 {
			a.regexes = regexp.MustCompile("(?:" + strings.Join(a.sources, "|") + ")")
		}
		if len(a.words) > 0 {
			a.byStart = map[string][]string{}
			for _, w := range a.words {
				k := w[:min(stopStart, len(w))]
				a.byStart[k] = append(a.byStart[k], w)
			}
		}
	})
}

// allows reports whether a hit with this value, match and line is none.
func (a *allowlist) allows(secret, match, line string) bool {
	if a.never || len(a.sources) == 0 && len(a.words) == 0 {
		return false
	}
	a.prepare()
	target := secret
	switch a.target {
	case "match":
		target = match
	case "line":
		target = line
	}
	byRegex := a.regexes != nil && target != "" && a.regexes.MatchString(target)
	if !a.all {
		return byRegex || a.stops(secret)
	}
	return (a.regexes == nil || byRegex) && (len(a.words) == 0 || a.stops(secret))
}

func (a *allowlist) stops(secret string) bool {
	if len(a.words) == 0 {
		return false
	}
	s := strings.ToLower(secret)
	for i := range len(s) {
		for n := 1; n <= stopStart && i+n <= len(s); n++ {
			for _, w := range a.byStart[s[i:i+n]] {
				if strings.HasPrefix(s[i:], w) {
					return true
				}
			}
		}
	}
	return false
}
