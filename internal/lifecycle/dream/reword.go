package dream

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Two sentences of two memories may be one statement in other words, one statement of
// which one says more, or two statements, however alike they sound: staging and
// production, Tuesday and Thursday, always and never. What differs between them decides,
// word by word (character by character in Chinese and the like).

// likeness is what the comparison of two sentences comes to.
type likeness uint8

const (
	unlike   likeness = iota // about different things
	reworded                 // the same in other words
	narrower                 // the second is the first and a further statement
	wider                    // the first is the second and a further statement
	contrary                 // nearly the same words, and another statement
)

// Bounds of the comparison.
const (
	alikeShare  = 0.6 // of the words of the longer sentence that both have, in order
	maxCompared = 200 // words of a sentence; longer ones are unlike
	minCompared = 4   // words; shorter ones are the same or not
	// maxStatements is how many a text may have to be compared with another of as many;
	// in longer ones the same is only what has the same words.
	maxStatements = 300
)

// The words by which statements are told apart.
//
//nolint:gochecknoglobals // tables that never change
var (
	// plain are words that carry nothing by which two statements differ. Words of place,
	// time and direction are not among them: before and after, from and to.
	plain = wordSet(`a an the this that these those is are was were be been being am do does did has have had will would shall
		to of in on at for as and so since because then than also just very really please always it its we our you which who thus therefore hence such all each every`)
	// plainHan are the same in Chinese, the longer first.
	plainHan = strings.Fields(`因为 所以 由于 因此 一定 必须 务必 需要 应该 已经 而且 并且 以及 进行 一下 我们 这个 那个 这样 总是 始终 一律 首先
		的 了 地 得 着 过 都 也 就 要 会 是 在 里 中 把 被 和 与 及 而 则 请 先 很 该 此 这 那 其 它 之 于 以 个`)
	// turning are words that turn a statement round or limit it.
	turning = wordSet(`not no never none nothing without except unless only don't doesn't isn't aren't won't can't cannot mustn't shouldn't didn't wasn't
		avoid stop instead neither nor until`)
	// numerals are numbers in words.
	numerals = map[string]int{
		"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
		"thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
		"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
	}
)

const (
	turningHan  = "不没别勿无非未禁只除仅"
	numeralsHan = "零〇一二两三四五六七八九十百千万亿半第几"
)

func wordSet(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(s) {
		out[plainForm(w)] = true // as it stands in a sentence taken apart
	}
	return out
}

// wordsOf takes a sentence apart: words of spaced scripts with the marks inside them,
// single characters of others, but numbers whole.
func wordsOf(sentence string) []string {
	var out []string
	for _, w := range words(strings.ReplaceAll(normal(sentence), "`", " ")) {
		start, number := 0, false
		for i, r := range w {
			if !unspaced(r) {
				number = false
				continue
			}
			if i > start {
				out = append(out, strings.Trim(w[start:i], `.,;:!?"'()，。；：！？、`))
			}
			start = i + len(string(r))
			isNumber := strings.ContainsRune(numeralsHan, r)
			if number && isNumber {
				out[len(out)-1] += string(r)
			} else {
				out = append(out, string(r))
			}
			number = isNumber
		}
		if start < len(w) {
			out = append(out, w[start:])
		}
	}
	out = slices.DeleteFunc(out, func(w string) bool {
		return strings.IndexFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) < 0
	})
	for i, w := range out {
		out[i] = number(plainForm(strings.ToLower(w)))
	}
	return out
}

// number writes a number in words with digits.
func number(w string) string {
	if n, ok := numerals[w]; ok {
		return strconv.Itoa(n)
	}
	tens, ones, ok := strings.Cut(w, "-")
	if t, o := numerals[tens], numerals[ones]; ok && t >= 20 && o > 0 && o < 10 {
		return strconv.Itoa(t + o)
	}
	return w
}

func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// gap is what stands between two words that both sentences have.
type gap struct{ a, b []string }

// statement is a sentence taken apart, once for all comparisons.
type statement struct {
	text   string
	words  []string
	sorted []string // the same words, by which two are counted together
}

func statementOf(sentence string) statement {
	ws := wordsOf(sentence)
	return statement{sentence, ws, slices.Sorted(slices.Values(ws))}
}

// same is what two statements of the same words have in common.
func (s statement) same() string { return strings.Join(s.words, " ") }

// compare says how two sentences relate.
func compare(first, second string) likeness {
	return statementOf(first).compare(statementOf(second), nil)
}

// compare costs an effort; where none is left, all is unlike.
func (s statement) compare(other statement, e *effort) likeness {
	a, b := s.words, other.words
	if !e.spend(len(a) + len(b) + 1) {
		return unlike
	}
	longer := max(len(a), len(b))
	if longer > maxCompared || slices.Equal(a, b) {
		if slices.Equal(a, b) {
			return reworded
		}
		return unlike
	}
	if longer < minCompared {
		return unlike
	}
	shorter := min(len(a), len(b))
	if float64(inBoth(s.sorted, other.sorted)) < alikeShare*float64(shorter) {
		return unlike // nothing below can hold; aligning costs more than counting
	}
	if !e.spend(len(a)*len(b) + lineSteps*(len(s.text)+len(other.text))) {
		return unlike
	}
	common, gaps, tail := align(a, b)
	differ, turned := false, false // before the tail
	for i, g := range gaps {
		turned = turned || turns(g.a) != turns(g.b)
		last := i == len(gaps)-1 && tail && (len(g.a) == 0 || len(g.b) == 0)
		if !last && (carries(g.a) || carries(g.b)) {
			differ = true
		}
	}
	alike := float64(common) >= alikeShare*float64(longer)
	switch {
	case turned && float64(common) >= alikeShare*float64(shorter), differ && (alike || float64(common) >= 0.9*float64(shorter)):
		return contrary
	case turned || differ:
		return unlike
	case !tail && alike, tail && alike && !carries(gaps[len(gaps)-1].a) && !carries(gaps[len(gaps)-1].b):
		return reworded
	case common >= minCompared-1 && adds(s.text, other.text):
		return narrower
	case common >= minCompared-1 && adds(other.text, s.text):
		return wider
	}
	return unlike
}

// inBoth counts the words that both have; both are sorted.
func inBoth(a, b []string) int {
	n := 0
	for len(a) > 0 && len(b) > 0 {
		switch c := strings.Compare(a[0], b[0]); {
		case c < 0:
			a = a[1:]
		case c > 0:
			b = b[1:]
		default:
			a, b = a[1:], b[1:]
			n++
		}
	}
	return n
}

// further begins what adds a statement instead of limiting the one before it.
var further = regexp.MustCompile(`^(?:\s*[:(—–：（]\s*|,? (?:and|because|since|as|so|which) |，(?:并且?|而且|因为|所以|由于|也|另外|以及))`)

// adds reports whether the longer sentence is the shorter one and a further statement.
func adds(short, long string) bool {
	commas := strings.NewReplacer(";", ",", "；", "，")
	s, l := commas.Replace(normal(short)), commas.Replace(normal(long))
	rest, ok := strings.CutPrefix(l, s)
	return ok && further.MatchString(rest)
}

// align finds the longest sequence of words that both have in order, and what stands
// between them; tail says that the last gap is the end of the sentences.
func align(a, b []string) (common int, gaps []gap, tail bool) {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				table[i][j] = table[i+1][j+1] + 1
			} else {
				table[i][j] = max(table[i+1][j], table[i][j+1])
			}
		}
	}
	var g gap
	flush := func() {
		if len(g.a)+len(g.b) > 0 {
			gaps = append(gaps, g)
		}
		g = gap{}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			flush()
			common++
			i, j = i+1, j+1
		case table[i+1][j] >= table[i][j+1]:
			g.a = append(g.a, a[i])
			i++
		default:
			g.b = append(g.b, b[j])
			j++
		}
	}
	g.a, g.b = append(g.a, a[i:]...), append(g.b, b[j:]...)
	tail = len(g.a)+len(g.b) > 0
	flush()
	return common, gaps, tail
}

// carries reports whether words hold something by which two statements differ.
func carries(ws []string) bool {
	var han strings.Builder
	for _, w := range ws {
		if r := []rune(w); unspaced(r[0]) {
			han.WriteString(w)
			continue
		}
		if !plain[w] {
			return true
		}
	}
	rest := han.String()
	for _, w := range plainHan {
		rest = strings.ReplaceAll(rest, w, "")
	}
	return rest != ""
}

// turns reports whether words turn a statement round.
func turns(ws []string) bool {
	return slices.ContainsFunc(ws, func(w string) bool { return turning[w] || strings.ContainsAny(w, turningHan) })
}

// contradicts reports whether a text says, in nearly the words of a sentence of the other,
// something else than that: then nobody but a person or a model can tell which holds, or
// whether both do. Lines "X: value" are not meant: there the newer value holds.
func contradicts(ours, theirs []statement, e *effort) bool {
	verbatim := map[string]bool{}
	for _, o := range theirs {
		verbatim[o.same()] = true
	}
	for _, s := range ours {
		if verbatim[s.same()] {
			continue
		}
		against := false
	others:
		for _, o := range theirs {
			switch s.compare(o, e) {
			case reworded, narrower, wider:
				against = false
				break others
			case contrary:
				against = true
			case unlike:
			}
			if e.spent {
				return false // for whoever asks to see
			}
		}
		if against {
			return true
		}
	}
	return false
}

// sameStatements reports whether two bodies hold the same statements in other words.
func sameStatements(first, second []statement, e *effort) bool {
	within := func(these, those []statement) bool {
		return !slices.ContainsFunc(these, func(s statement) bool {
			return !slices.ContainsFunc(those, func(o statement) bool { l := s.compare(o, e); return l == reworded || l == narrower })
		})
	}
	return len(first) > 0 && len(second) > 0 && max(len(first), len(second)) <= maxSayings && (within(first, second) || within(second, first))
}

// statements returns the sentences of a body that are prose or items of lists.
func statements(body string) []statement {
	var out []statement
	for _, u := range unitsOf(strings.ReplaceAll(body, "\r\n", "\n")) {
		if u.kind == blankUnit || u.kind == headUnit || isFence(strings.TrimSpace(u.raw)) {
			continue
		}
		for line := range strings.Lines(u.raw) {
			line = strings.TrimSpace(line)
			if key, _ := keyOf(line); key != "" || saidOn.MatchString(normal(line)) {
				continue
			}
			for _, sentence := range sentences(line) {
				out = append(out, statementOf(sentence))
			}
		}
	}
	return out
}
