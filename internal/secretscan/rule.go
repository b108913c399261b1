package secretscan

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
)

// rule is one expression-based rule.
type rule struct {
	id          string
	description string
	source      string // regex text; empty for a rule about file names alone
	group       int
	entropy     float64 // a value must have more, in bits a character; 0 = not asked
	path        string  // regex a path must match; empty = any
	keywords    []string
	allow       []*allowlist
	tree        *syntax.Regexp

	shape       shape
	minLen      int  // shortest match, in bytes
	needsNonAbc bool // an allowance drops values of letters, ".", "_" and "-" alone

	once   sync.Once
	regex  *regexp.Regexp
	pathRE *regexp.Regexp
	sets   [][]string // every match holds a string of each of these sets, lower-case
}

// shape says how little of a text must be shown to a rule's expression to find all its matches.
type shape int

const (
	_ shape = iota // the zero value: all of the text
	// shapeToken: a match holds a keyword and no white space but as its first or last character, so the run of
	// non-space characters around a keyword is enough.
	shapeToken
	// shapeAssign: name, operator, value, with the keyword in the name: the surroundings of the operator are enough.
	shapeAssign
)

// assignOperator is the part that gitleaks's generated "name = value" expressions share.
const assignOperator = `(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}`

// assignHead is how these expressions begin; their names are matched without regard to case.
const assignHead = `[\w.-]{0,50}?`

func (r *rule) clone() *rule {
	return &rule{
		id: r.id, description: r.description, source: r.source, group: r.group, entropy: r.entropy, path: r.path,
		keywords: slices.Clone(r.keywords), allow: slices.Clone(r.allow), tree: r.tree,
	}
}

// split cuts a rule whose expression is an alternation into one rule for each branch, so that each branch can have its
// own shape. It cuts only where groups keep their meaning: no chosen group.
func (r *rule) split() []*rule {
	if r.group != 0 || !strings.Contains(r.source, assignOperator) {
		return []*rule{r}
	}
	parts := topAlternatives(r.source)
	if len(parts) < 2 {
		return []*rule{r}
	}
	var out []*rule
	for _, p := range parts {
		if strings.HasPrefix(r.source, "(?i)") && !strings.HasPrefix(p, "(?i)") {
			p = "(?i)" + p
		}
		tree, err := syntax.Parse(p, syntax.Perl)
		if err != nil {
			return []*rule{r}
		}
		c := r.clone()
		c.source, c.tree = p, tree
		out = append(out, c)
	}
	return out
}

// topAlternatives splits an expression at the "|" outside of any group or class.
func topAlternatives(s string) []string {
	var parts []string
	depth, from, class := 0, 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
			if i+1 < len(s) && s[i+1] == '^' {
				i++
			}
			if i+1 < len(s) && s[i+1] == ']' {
				i++
			}
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth == 0:
			parts = append(parts, s[from:i])
			from = i + 1
		}
	}
	return append(parts, s[from:])
}

// analyse finds the rule's shape. It claims a narrow shape only where the expression proves it.
func (r *rule) analyse() {
	if r.tree == nil {
		return
	}
	r.minLen = minLength(r.tree)
	r.sets = requiredSets(r.tree)
	for _, a := range r.allow {
		if !a.all && a.target == "" && slices.Contains(a.sources, `^[a-zA-Z_.-]+$`) {
			r.needsNonAbc = true
		}
	}
	if head, _, ok := strings.Cut(r.source, assignOperator); ok && strings.Contains(r.source, assignHead) {
		// The head may leave one group open ("(?i:name" closes right before the operator).
		for range 2 {
			if tree, err := syntax.Parse(head, syntax.Perl); err == nil {
				if covered(requiredSets(tree), r.keywords) {
					r.shape = shapeAssign
				}
				return
			}
			head += ")"
		}
		return
	}
	if covered(requiredSets(r.tree), r.keywords) && spaceOnlyAtEdges(r.tree) {
		r.shape = shapeToken
	}
}

// covered reports whether some set consists of strings that all hold a keyword: then every match holds one.
func covered(sets [][]string, keywords []string) bool {
	for _, set := range sets {
		if !slices.ContainsFunc(set, func(s string) bool {
			return !slices.ContainsFunc(keywords, func(k string) bool { return strings.Contains(s, k) })
		}) {
			return true
		}
	}
	return false
}

func (r *rule) compiled() *regexp.Regexp {
	r.compile()
	return r.regex
}

func (r *rule) compile() {
	r.once.Do(func() {
		if r.source != "" {
			r.regex = regexp.MustCompile(r.source)
		}
		if r.path != "" {
			r.pathRE = regexp.MustCompile(r.path)
		}
	})
}

// appliesTo reports whether the rule is meant for files of this name.
func (r *rule) appliesTo(path string) bool {
	if r.path == "" {
		return true
	}
	r.compile()
	return r.pathRE.MatchString(path)
}
