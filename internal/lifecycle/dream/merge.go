package dream

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// known is what a body says, in the forms by which a line is found to be said already.
type known struct {
	normals, gists, blocks map[string]bool
	values                 map[string][]string // of the keys of lines "X: value"
	statements             []statement
	effort                 *effort // what looking may cost
}

func knownOf(e *effort, texts ...string) *known {
	k := &known{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string][]string{}, nil, e}
	for _, text := range texts {
		for _, u := range unitsOf(text) {
			k.add(u)
		}
	}
	return k
}

func (k *known) add(u unit) {
	if u.kind == blankUnit {
		return
	}
	if isFence(strings.TrimSpace(u.raw)) {
		k.blocks[u.block()] = true
		return
	}
	if u.kind != headUnit && len(k.statements) <= maxStatements {
		k.statements = append(k.statements, statements(u.raw)...)
	}
	for line := range strings.Lines(u.raw) {
		k.line(line)
		for _, s := range sentences(strings.TrimSpace(line)) {
			k.line(s)
		}
		if key, value := keyOf(line); key != "" {
			k.values[key] = append(k.values[key], value)
		}
	}
}

func (k *known) line(line string) {
	if n := normal(line); n != "" {
		k.normals[n] = true
	}
	if g := gist(line); g != "" {
		k.gists[g] = true
	}
}

// says reports whether a line is said already.
func (k *known) says(line string) bool {
	if !k.effort.spend(lineSteps * len(line)) {
		return false
	}
	n := normal(line)
	if n == "" || saidOn.MatchString(n) || k.normals[n] || k.gists[gist(line)] {
		return true
	}
	if key, _ := keyOf(line); key != "" {
		return false // another value is another fact
	}
	if len(k.statements) > maxStatements {
		return false
	}
	said := statementOf(line)
	return slices.ContainsFunc(k.statements, func(s statement) bool {
		l := said.compare(s, k.effort)
		return l == reworded || l == narrower
	})
}

// covers reports whether all of a unit is said already.
func (k *known) covers(u unit) bool {
	switch {
	case u.kind == blankUnit:
		return true
	case isFence(strings.TrimSpace(u.raw)):
		return k.blocks[u.block()]
	}
	for line := range strings.Lines(u.raw) {
		if k.says(line) {
			continue
		}
		list := sentences(strings.TrimSpace(line))
		if len(list) == 1 {
			return false // it is the line
		}
		for _, s := range list {
			if !k.says(s) {
				return false
			}
		}
	}
	return true
}

// coversAll reports whether a whole body is said already; headings are no facts.
func (k *known) coversAll(body string) bool {
	for _, u := range unitsOf(body) {
		if u.kind != headUnit && !k.covers(u) {
			return false
		}
	}
	return true
}

// otherwise reports whether the newer text plainly says otherwise than an older line: it
// has another value for the key that the line has, of the same kind, and each text has the
// key once. Under one label there may be two facts; then both stay.
func (k *known) otherwise(u unit, old *known) bool {
	if u.kind != lineUnit {
		return false
	}
	key, value := keyOf(u.raw)
	return key != "" && len(k.values[key]) == 1 && len(old.values[key]) == 1 && k.values[key][0] != value && k.sameKind(k.values[key][0], value)
}

// maxUnspaced is how many characters a value of Chinese and the like has at most that is no
// sentence.
const maxUnspaced = 4

// sameKind reports whether of two values of a key one can take the other's place: nearly the
// same words with another statement, the same words with other numbers, or one word each, of
// one kind.
func (k *known) sameKind(a, b string) bool {
	if statementOf(a).compare(statementOf(b), k.effort) == contrary {
		return true
	}
	if n := numbers.ReplaceAllString(a, "0"); n != a && n == numbers.ReplaceAllString(b, "0") {
		return true
	}
	short := func(s string) bool {
		return len(strings.Fields(s)) == 1 && (utf8.RuneCountInString(s) <= maxUnspaced || strings.IndexFunc(s, unspaced) < 0)
	}
	return short(a) && short(b) && wordKind(a) == wordKind(b)
}

// numbers are numbers, times and versions.
var numbers = regexp.MustCompile(`\d+(?:[.:]\d+)*`)

// wordKind is what a value of one word is.
func wordKind(s string) string {
	switch {
	case strings.Contains(s, "://"):
		return "address"
	case strings.Contains(s, "/"):
		return "path"
	case strings.IndexAny(strings.TrimPrefix(s, "v"), "0123456789") == 0:
		return "number"
	}
	return "name"
}

// section is a heading and what stands below it.
type section struct {
	heading string
	units   []unit
}

func sectionsOf(body string) []section {
	out := []section{{}}
	for _, u := range unitsOf(body) {
		if u.kind == headUnit {
			out = append(out, section{heading: u.heading})
		}
		s := &out[len(out)-1]
		s.units = append(s.units, u)
	}
	return out
}

// mergeBodies returns the newer body with what only the older one says, below the same
// heading where there is one, and the older lines that the newer text says otherwise.
//
// Where the effort is spent before the end, the result is of no use.
func mergeBodies(newer, older string, e *effort) (merged string, superseded []string) {
	older = strings.ReplaceAll(older, "\r\n", "\n")
	end := "\n"
	if strings.Contains(newer, "\r\n") {
		end = "\r\n"
	}
	k, old := knownOf(e, newer), knownOf(e, older)
	out := sectionsOf(newer)
	below := map[string]int{} // the first section of a heading
	for i, s := range slices.Backward(out) {
		below[s.heading] = i
	}
	changed := false
	for _, s := range sectionsOf(older) {
		adjacent := false // the unit before this one was taken over, too
		for _, u := range s.units {
			if e.spent {
				return newer, nil
			}
			switch {
			case u.kind == headUnit || u.kind == blankUnit, k.covers(u):
				adjacent = false
				continue
			case k.otherwise(u, old):
				superseded = append(superseded, strings.TrimSpace(u.raw))
				adjacent = false
				continue
			}
			u = k.rest(u)
			if replaceNarrower(out, u, end, e) {
				k.add(u)
				adjacent, changed = false, true
				continue
			}
			at, ok := below[s.heading]
			if !ok {
				out = append(out, section{heading: s.heading, units: []unit{{raw: end, kind: blankUnit}, s.units[0].ending(end)}})
				at = len(out) - 1
				below[s.heading] = at
			}
			out[at].add(u.ending(end), adjacent, end, e)
			k.add(u)
			adjacent, changed = true, true
		}
	}
	if !changed {
		return newer, superseded
	}
	var b strings.Builder
	for _, s := range out {
		for _, u := range s.units {
			b.WriteString(u.raw)
			if !strings.HasSuffix(u.raw, "\n") {
				b.WriteString(end)
			}
		}
	}
	return b.String(), superseded
}

// replaceNarrower puts a line in the place of one that says less, and nothing else.
func replaceNarrower(in []section, u unit, end string, e *effort) bool {
	if u.kind != lineUnit {
		return false
	}
	said := statementOf(u.raw)
	for _, s := range in {
		for i := range s.units {
			if !e.spend(1) {
				return false
			}
			old := &s.units[i]
			if old.kind != lineUnit {
				continue
			}
			if old.said == nil { // once for all that are compared with it
				st := statementOf(old.raw)
				old.said, old.single = &st, len(sentences(strings.TrimSpace(old.raw))) == 1
			}
			if old.single && old.said.compare(said, e) == narrower && marker.FindString(old.raw) == marker.FindString(u.raw) {
				*old = unit{raw: u.ending(end).raw, heading: old.heading, kind: old.kind}
				return true
			}
		}
	}
	return false
}

// rest returns what of a line of prose is not said already.
func (k *known) rest(u unit) unit {
	if u.kind != lineUnit {
		return u
	}
	line := strings.TrimRight(u.raw, "\n")
	list := sentences(line)
	kept := slices.DeleteFunc(slices.Clone(list), func(s string) bool { return k.says(s) })
	if len(kept) == 0 || len(kept) == len(list) {
		return u
	}
	text := strings.TrimSpace(strings.Join(kept, ""))
	if mark := marker.FindString(line); mark != "" && !strings.HasPrefix(text, strings.TrimSpace(mark)) {
		text = mark + text
	}
	u.raw = text + "\n"
	return u
}

// add puts a unit at the end of a section, before the blank lines that end it.
func (s *section) add(u unit, adjacent bool, eol string, e *effort) {
	end := len(s.units)
	for end > 0 && s.units[end-1].kind == blankUnit && (end > 1 || s.heading != "") {
		end--
	}
	e.spend(2 * (len(s.units) - end))
	put := []unit{u}
	if end > 0 {
		last := s.units[end-1]
		lists := marker.MatchString(u.raw) && marker.MatchString(last.raw) && last.kind != headUnit
		if !adjacent && !lists && last.kind != blankUnit {
			put = []unit{{raw: eol, kind: blankUnit}, u}
		}
	}
	s.units = slices.Insert(s.units, end, put...)
}
