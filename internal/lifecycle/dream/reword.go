package dream

import (
	"slices"
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
	narrower                 // the first says less than the second, and nothing else
	wider                    // the first says more than the second
	contrary                 // nearly the same words, and another statement
)

// Bounds of the comparison.
const (
	alikeShare  = 0.6 // of the words of the longer sentence that both have, in order
	maxCompared = 200 // words of a sentence; longer ones are unlike
	minCompared = 4   // words; shorter ones are the same or not
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
	numerals = map[string]string{
		"one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12",
	}
)

const turningHan = "不没别勿无非未禁只除仅"

func wordSet(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}

// wordsOf takes a sentence apart: words of spaced scripts with the marks inside them,
// single characters of others.
func wordsOf(sentence string) []string {
	var out []string
	for _, w := range words(strings.ReplaceAll(normal(sentence), "`", " ")) {
		start := 0
		for i, r := range w {
			if !unspaced(r) {
				continue
			}
			if i > start {
				out = append(out, strings.Trim(w[start:i], `.,;:!?"'()，。；：！？、`))
			}
			out = append(out, string(r))
			start = i + len(string(r))
		}
		if start < len(w) {
			out = append(out, w[start:])
		}
	}
	out = slices.DeleteFunc(out, func(w string) bool {
		return strings.IndexFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) < 0
	})
	for i, w := range out {
		w = plainForm(strings.ToLower(w))
		if n, ok := numerals[w]; ok {
			w = n
		}
		out[i] = w
	}
	return out
}

func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// gap is what stands between two words that both sentences have.
type gap struct{ a, b []string }

// compare says how two sentences relate.
func compare(first, second string) likeness {
	a, b := wordsOf(first), wordsOf(second)
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
	common, gaps := align(a, b)
	shorter := min(len(a), len(b))
	less, more, turned, replaced := false, false, false, false
	for _, g := range gaps {
		inA, inB := carries(g.a), carries(g.b)
		less, more = less || inB, more || inA
		replaced = replaced || inA && inB
		turned = turned || turns(g.a) != turns(g.b)
	}
	alike := float64(common) >= alikeShare*float64(longer)
	switch {
	case !less && !more && !turned && alike:
		return reworded
	case turned && float64(common) >= alikeShare*float64(shorter), replaced && alike, less && more && alike:
		return contrary
	case replaced || less && more || turned || common < minCompared-1:
		return unlike
	case less && float64(common) >= 0.9*float64(len(a)):
		return narrower
	case more && float64(common) >= 0.9*float64(len(b)):
		return wider
	}
	return unlike
}

// align finds the longest sequence of words that both have in order.
func align(a, b []string) (common int, gaps []gap) {
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
	flush()
	return common, gaps
}

// carries reports whether words hold something by which two statements differ.
func carries(ws []string) bool {
	var han strings.Builder
	for _, w := range ws {
		if r := []rune(w); len(r) == 1 && unspaced(r[0]) {
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
func contradicts(body, other string) bool {
	theirs := statements(other)
	for _, s := range statements(body) {
		said := slices.ContainsFunc(theirs, func(o string) bool { l := compare(s, o); return l == reworded || l == narrower || l == wider })
		if !said && slices.ContainsFunc(theirs, func(o string) bool { return compare(s, o) == contrary }) {
			return true
		}
	}
	return false
}

// statements returns the sentences of a body that are prose or items of lists.
func statements(body string) []string {
	var out []string
	for _, u := range unitsOf(strings.ReplaceAll(body, "\r\n", "\n")) {
		if u.kind == blankUnit || u.kind == headUnit || isFence(strings.TrimSpace(u.raw)) {
			continue
		}
		for line := range strings.Lines(u.raw) {
			line = strings.TrimSpace(line)
			if key, _ := keyOf(line); key != "" || saidOn.MatchString(normal(line)) {
				continue
			}
			out = append(out, sentences(line)...)
		}
	}
	return out
}
