package secretscan

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// inlineAllow is the comment that lets a finding on its line through, where the policy says that it counts.
const inlineAllow = "gitleaks:allow"

// maxHits bounds how many findings of one text are reported: a text with that many is refused all the same.
const maxHits = 200

// raw is a hit with its value, alive during one scan only.
type raw struct {
	rule        string
	description string
	value       string
	at          int // offset of the value in the original text; -1 = file name
	to          int // offset in the original text where it ends
	line        int // 1-based; 0 = file name
	rank        int // how much the rule knows about what it found; see rankGuess
}

// A hit of a lower rank is dropped where one of a higher rank on the same line says the same in particular.
const (
	rankGuess   = iota // something assigned looks random
	rankGeneric        // gitleaks's generic rule
	rankKnown          // the kind of secret is known
)

// pass scans the forms of one text and collects hits.
type pass struct {
	set   *ruleSet
	path  string
	hits  []raw
	seen  map[hitKey]int // where in hits
	found []found        // reused by every form
	lines []int          // where the lines of the text as given begin; made at the first hit

	probes int // how often rules looked at a place; see maxProbes

	v      *variant
	joined bool // the form was put together from cut lines: rules for whole tokens only
	name   bool // the form is the file name
}

type hitKey struct {
	rule, value string
	line        int
}

// judge scans path and content with set. A panic in a rule becomes an error: not clean.
func judge(set *ruleSet, key []byte, path string, content []byte) (hits []hit, err error) {
	defer func() {
		switch r := recover(); r.(type) {
		case nil:
		case errTooDense:
			hits, err = nil, fmt.Errorf("scan for secrets: %w: over %d places look like credentials: split the file", ErrTooLarge, maxProbes)
		default:
			// The value of the panic may quote the text.
			hits, err = nil, fmt.Errorf("scan for secrets: the guard failed inside (%T): report this with the file's shape, not its content", r)
		}
	}()
	p := &pass{set: set, path: path}
	p.name = true
	p.forms(&variant{s: strings.TrimSuffix(path, ".md")})
	p.name = false
	text := &variant{s: string(content)}
	p.forms(text)
	return p.settle(key, text.s), nil
}

// forms scans a text as given, normalised, decoded and joined.
func (p *pass) forms(text *variant) {
	p.layers(text, false)
	base := text
	if n := normalise(text); n != nil {
		p.layers(n, false)
		base = n
	}
	if p.name {
		return
	}
	if j := join(base); j != nil {
		p.layers(j, true)
	}
}

// layers scans a form and what is encoded in it.
func (p *pass) layers(v *variant, joined bool) {
	p.scan(v, joined)
	for range maxDecodeDepth {
		d := decode(v)
		if d == nil {
			return
		}
		if n := normalise(d); n != nil {
			d = n
		}
		p.scan(d, false)
		v = d
	}
}

// scan runs all rules over one form.
func (p *pass) scan(v *variant, joined bool) {
	p.v, p.joined = v, joined
	p.found = p.set.auto.find(p.found[:0], v.s)
	for _, r := range p.set.always {
		p.runOn(r, 0, len(v.s))
	}
	var texts []*rule
	tokens := tokenRun{from: -1}
	var assigns assignSite
	for _, f := range p.found {
		w := &p.set.words[f.word]
		start, end := int(f.end)-w.len, int(f.end)
		if w.tokens != nil {
			tokens.around(v.s, start, end)
			if tokens.to-tokens.from >= w.minToken {
				p.tokens(w.tokens, &tokens, start)
			}
		}
		if !joined {
			if w.assigns != nil && assigns.after(v.s, start, end) {
				p.assigns(w.assigns, &assigns)
			}
			for _, r := range w.texts {
				if !slices.Contains(texts, r) {
					texts = append(texts, r)
				}
			}
		}
		if w.own != 0 {
			p.own(w.own, start, end)
		}
	}
	if len(texts) == 0 {
		return
	}
	lower := strings.ToLower(v.s)
	for _, r := range texts {
		if !slices.ContainsFunc(r.sets, func(set []string) bool { return !containsAny(lower, set) }) {
			p.runOn(r, 0, len(v.s))
		}
	}
}

func containsAny(s string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}

// tokenRun is the run of non-space characters around a keyword.
type tokenRun struct {
	from, to int
	ran      []ranToken // what was run on it already: a run may hold a keyword a hundred thousand times
}

// ranToken says that a rule ran on a run, and on the bare token that ends at bareTo.
type ranToken struct {
	r      *rule
	bareTo int
}

// around sets t to the run around s[start:end]. Hits come by ascending end, so a run is measured once.
func (t *tokenRun) around(s string, start, end int) {
	if t.from >= 0 && t.from <= start && end <= t.to {
		return
	}
	floor := 0
	if t.from >= 0 && t.to <= start {
		floor = t.to
	}
	t.from, t.to, t.ran = start, end, t.ran[:0]
	for t.from > floor && !isSpace(s[t.from-1]) {
		t.from--
	}
	for t.to < len(s) && !isSpace(s[t.to]) {
		t.to++
	}
}

// tokens runs token rules on a run that holds a keyword at start: first in its place, then, for what gitleaks would
// overlook because of markup beside it ("**token**", "(token)", "token."), on the bare token.
func (p *pass) tokens(rules []*rule, t *tokenRun, start int) {
	for _, r := range rules {
		if t.to-t.from < r.minLen-2 {
			continue
		}
		at := slices.IndexFunc(t.ran, func(x ranToken) bool { return x.r == r })
		if at < 0 {
			at = len(t.ran)
			t.ran = append(t.ran, ranToken{r: r})
			if p.runOn(r, max(t.from-1, 0), min(t.to+2, len(p.v.s))) {
				t.ran[at].bareTo = t.to
			}
		}
		if start >= t.ran[at].bareTo {
			t.ran[at].bareTo = p.bare(r, t, start)
		}
	}
}

// bare tries a rule on the token around start alone, then without punctuation at its end. It returns where the token
// ends.
func (p *pass) bare(r *rule, t *tokenRun, start int) int {
	s := p.v.s
	from, to := start, start
	for from > t.from && isToken(s[from-1]) {
		from--
	}
	for to < t.to && isToken(s[to]) {
		to++
	}
	for from < start && !isAlnum(s[from]) {
		from++
	}
	if p.name {
		// Names join words with "_", which counts as a letter in expressions.
		from, to = start, max(to, start+1)
	}
	end := to
	for end > from && !isAlnum(s[end-1]) {
		end--
	}
	if to-from >= r.minLen-2 && !p.runOn(r, from, to) && end < to && end-from >= r.minLen-2 {
		p.runOn(r, from, end)
	}
	if p.name {
		return start + 1
	}
	return max(to, start+1)
}

// assignSite is a place that looks like "name = value", seen from a keyword in the name.
type assignSite struct {
	operator int // offset of the operator of the last site looked at
	ok       bool
	digits   bool // the value has more than letters
	from, to int  // what an expression must see
	name     int  // where the keyword ends
	runEnd   int  // where the value looked at last ends
	ran      []ranAssign
}

// ranAssign says up to where a rule has seen the text already.
type ranAssign struct {
	r  *rule
	to int
}

const (
	maxNameTail  = 64  // from a keyword to its operator: 23 in gitleaks's expressions, and the rest of a long name
	maxNameHead  = 128 // from the start of a match to the keyword: 50, and the rest of a long name
	minAssigned  = 10  // no value of these rules is shorter
	maxOperators = 12  // operator, quotes and spaces between name and value
)

// after looks for an operator after the keyword s[start:end] and a value after it.
func (a *assignSite) after(s string, start, end int) bool {
	i := end
	for limit := min(end+maxNameTail, len(s)); i < limit; i++ {
		c := s[i]
		if !isAlnum(c) && !isSpace(c) && c != '_' && c != '-' && c != '.' && c != '"' && c != '\'' {
			break
		}
	}
	if i >= len(s) || !isOperator(s[i]) {
		return false
	}
	if a.name != 0 && a.operator == i {
		// The same site, seen from another keyword of the name.
		a.from = min(a.from, max(start-maxNameHead, 0))
		return a.ok
	}
	a.operator, a.name, a.ok = i, end, false
	value := i + 1
	for limit := min(i+maxOperators, len(s)); value < limit; value++ {
		if c := s[value]; !isOperator(c) && !isSpace(c) && strings.IndexByte("`'\"", c) < 0 {
			break
		}
	}
	first := value
	for first > i+1 && s[first-1] == '=' { // "=" may be part of a value
		first--
	}
	to := value
	a.digits = first < value
	if value < a.runEnd {
		to, a.digits = a.runEnd, true // inside the value before, which has an operator in it
	}
	for to < len(s) && isAssigned(s[to]) {
		a.digits = a.digits || !isLetter(s[to]) && strings.IndexByte("_.-", s[to]) < 0
		to++
	}
	a.runEnd = to
	if to-first < minAssigned {
		return false
	}
	a.ok, a.from, a.to = true, max(start-maxNameHead, 0), min(to+3, len(s))
	return true
}

func isOperator(c byte) bool {
	return c == '=' || c == ':' || c == '>' || c == '|' || c == '?' || c == ','
}

func (p *pass) assigns(rules []*rule, a *assignSite) {
	for _, r := range rules {
		if r.needsNonAbc && !a.digits {
			continue
		}
		at := slices.IndexFunc(a.ran, func(x ranAssign) bool { return x.r == r })
		if at < 0 {
			at = len(a.ran)
			a.ran = append(a.ran, ranAssign{r: r, to: -1})
		}
		if a.to > a.ran[at].to {
			a.ran[at].to = a.to
			p.probe()
			p.runOn(r, a.from, a.to)
		}
	}
}

// runOn runs a rule's expression on s[from:to] of the form at hand and records what passes the rule's tests. It reports
// whether anything did.
func (p *pass) runOn(r *rule, from, to int) bool {
	if r.source == "" {
		if p.name && p.v.parent == nil && r.appliesTo(p.path) {
			p.add(raw{rule: r.id, description: r.description, value: p.path, at: -1, rank: rankKnown})
			return true
		}
		return false
	}
	if !r.appliesTo(p.path) {
		return false
	}
	if len(p.hits) >= maxHits {
		return true
	}
	any := false
	window := p.v.s[from:to]
	re := r.compiled()
	for _, m := range re.FindAllStringIndex(window, -1) {
		match := strings.Trim(window[m[0]:m[1]], "\n")
		start := from + m[0] + strings.Index(window[m[0]:m[1]], match)
		value, at := match, start
		if g := re.FindStringSubmatchIndex(match); len(g) > 2 {
			for n := 1; n < len(g)/2; n++ {
				if r.group > 0 && n != r.group {
					continue
				}
				if g[2*n] >= 0 && (g[2*n+1] > g[2*n] || r.group > 0) {
					value, at = match[g[2*n]:g[2*n+1]], start+g[2*n]
					break
				}
			}
		}
		if r.entropy != 0 && entropy(value) <= r.entropy {
			continue
		}
		if p.allowed(r, value, match, start, start+len(match)) {
			continue
		}
		generic := strings.Contains(r.id, "generic")
		if generic && harmlessAssigned(value, p.lineOf(start, start+len(match))) {
			continue
		}
		any = true
		rank := rankKnown
		if generic {
			rank = rankGeneric
		}
		p.add(raw{rule: r.id, description: r.description, value: value, at: at, rank: rank})
	}
	return any
}

func (p *pass) allowed(r *rule, value, match string, from, to int) bool {
	line := ""
	for _, list := range [2][]*allowlist{p.set.allow, r.allow} {
		for _, a := range list {
			if a.target == "line" && line == "" {
				line = p.lineOf(from, to)
			}
			if a.allows(value, match, line) {
				return true
			}
		}
	}
	return false
}

// maxLine bounds how far around a place its line is looked at, in bytes: a text may be one line.
const maxLine = 2048

// lineOf returns the lines that s[from:to] touches.
func (p *pass) lineOf(from, to int) string {
	s := p.v.s
	return s[lineStart(s, from):lineStop(s, to)]
}

// lineStart is where the line of s[at] begins, or maxLine before it.
func lineStart(s string, at int) int {
	floor := max(0, at-maxLine)
	return floor + strings.LastIndexByte(s[floor:at], '\n') + 1
}

// lineStop is where the line of s[at] ends, or maxLine after it.
func lineStop(s string, at int) int {
	return lineEnd(s[:min(len(s), at+maxLine)], at)
}

// add records a hit whose at and to are offsets of the form at hand; to may be left to the value.
func (p *pass) add(h raw) {
	if len(p.hits) >= maxHits {
		return
	}
	if p.name {
		h.at, h.to = -1, -1
	} else {
		h.to = p.v.originEnd(max(h.to, h.at+len(h.value)))
		h.at = p.v.origin(h.at)
		h.line = p.lineNumber(h.at)
	}
	key := hitKey{h.rule, h.value, h.line}
	if i, ok := p.seen[key]; ok {
		p.hits[i].to = max(p.hits[i].to, h.to)
		return
	}
	if p.seen == nil {
		p.seen = map[hitKey]int{}
	}
	p.seen[key] = len(p.hits)
	p.hits = append(p.hits, h)
}

// lineNumber is the 1-based line of an offset in the text as given.
func (p *pass) lineNumber(at int) int {
	if p.lines == nil {
		root := p.v
		for root.parent != nil {
			root = root.parent
		}
		p.lines = []int{0}
		for i := range len(root.s) {
			if root.s[i] == '\n' {
				p.lines = append(p.lines, i+1)
			}
		}
	}
	return sort.SearchInts(p.lines, at+1)
}

// settle orders the hits, drops those that say again in general what another says in particular, and forgets the values.
func (p *pass) settle(key []byte, text string) []hit {
	if len(p.hits) == 0 {
		return nil
	}
	says := func(o, h raw) bool { // o says in particular what h says
		return o.rank > h.rank && o.line == h.line && (strings.Contains(o.value, h.value) || strings.Contains(h.value, o.value))
	}
	var out []hit
	for _, h := range p.hits {
		if slices.ContainsFunc(p.hits, func(o raw) bool { return says(o, h) }) {
			continue
		}
		inline, endLine := false, h.line
		if h.line > 0 {
			for _, o := range p.hits {
				if says(h, o) {
					h.to = max(h.to, o.to)
				}
			}
			endLine = max(endLine, p.lineNumber(goesOn(text, h.to)-1))
			inline = strings.Contains(text[lineStart(text, h.at):lineStop(text, h.at)], inlineAllow)
		}
		out = append(out, hit{line: h.line, endLine: endLine, rule: h.rule, description: h.description, fingerprint: fingerprint(key, h.rule, h.value), inline: inline})
	}
	slices.SortFunc(out, func(a, b hit) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.rule, b.rule), cmp.Compare(a.fingerprint, b.fingerprint))
	})
	return slices.Compact(out)
}
