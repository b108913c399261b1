package recall

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a part of the prompt counts beside a plain word of it.
const (
	genericWeight  = 0.25 // a word that any prompt may hold
	everydayWeight = 0.6  // a word of most documents about software
	commonWeight   = 0.8  // one of many
	pairWeight     = 0.5  // two neighbouring characters: most words of Chinese make more than one pair
	codeWeight     = 0.35 // a word in code or a trace that the prompt quotes
	conceptFactor  = 0.9  // other words for the same: a guess
	nestedFactor   = 0.5  // a part of the word: a weaker one
)

// maxUnits bounds the different units of a prompt, so that a pasted log costs no more
// than a long question.
const maxUnits = 200

// query is a prompt, taken apart: what is asked for, each in all the ways in which a
// memory may say it.
type query struct {
	units   []unit
	needles int
	words   map[string][]wordNeedle // by the first stem
	texts   []textNeedle

	known    *concepts
	ofUnit   map[string]int // dedupes
	ofNeedle map[string]int
	generic  map[string]bool
	buf      []string // of the words of a text, reused
}

// unit is one thing that a prompt speaks of.
type unit struct {
	weight float64
	asks   float64 // what it counts in all that the prompt asks for
	alts   []alt
}

// alt is one way to say it.
type alt struct {
	needle int
	factor float64
}

// wordNeedle is a word or phrase that is looked for by its stems.
type wordNeedle struct {
	needle int
	stems  []string
}

// textNeedle is a piece of a script without spaces that is looked for anywhere.
type textNeedle struct {
	needle int
	text   string
}

func newQuery(prompt string) *query {
	q := &query{
		words: make(map[string][]wordNeedle), known: newConcepts(),
		ofUnit: make(map[string]int), ofNeedle: make(map[string]int), generic: make(map[string]bool),
	}
	for _, w := range stems(genericWords) {
		q.generic[w] = true
	}
	prose, code := splitPrompt(prompt)
	for _, part := range prose {
		q.addText(part, 1)
	}
	for _, part := range code {
		q.addText(part, codeWeight)
	}
	return q
}

// addText adds what a part of the prompt speaks of.
func (q *query) addText(text string, weight float64) {
	var words []string
	for at := 0; at < len(text); {
		r, n := utf8.DecodeRuneInString(text[at:])
		if !unspaced(r) {
			end := at + n
			for end < len(text) {
				r, n := utf8.DecodeRuneInString(text[end:])
				if unspaced(r) {
					break
				}
				end += n
			}
			words = append(words, stems(text[at:end])...)
			at = end
			continue
		}
		end := at
		for end < len(text) {
			r, n := utf8.DecodeRuneInString(text[end:])
			if !unspaced(r) {
				break
			}
			end += n
		}
		q.addRun([]rune(text[at:end]), weight)
		at = end
	}
	for i, w := range words {
		own, asks := weight, weight
		switch {
		case q.generic[w]:
			own *= genericWeight
			asks = own
		case len(q.known.words[w]) > 0:
		// A memory that answers to no more than such a word is likely about something else;
		// the prompt wants an answer to it all the same.
		case containsWord(everyday, w):
			own *= everydayWeight
		case containsWord(common, w):
			own *= commonWeight
		}
		alts := []alt{{q.word(w), 1}}
		for _, p := range q.known.words[w] {
			if len(p.stems) == 1 {
				factor := conceptFactor
				if weight < 1 {
					factor = nestedFactor // a name in code may mean anything
				}
				alts = append(alts, alt{q.concept(p.concept), factor})
			} else if hasPrefix(words[i:], p.stems) {
				q.add("c"+strings.Join(p.stems, " "), weight, weight, []alt{{q.concept(p.concept), 1}})
			}
		}
		q.add(w, own, asks, alts)
	}
}

// addRun adds what a run of characters speaks of: the words that are known, the longest
// first, and of the rest the pairs of neighbours.
func (q *query) addRun(run []rune, weight float64) {
	from := 0 // of what is not known
	rest := func(to int) {
		if from == to {
			return
		}
		// A single character is most often half of a word whose other half was taken for
		// a word of its own.
		lo, hi := from, to
		if hi-lo == 1 {
			lo, hi = max(lo-1, 0), min(hi+1, len(run))
		}
		for i := lo; i+1 < hi; i++ {
			pair := string(run[i : i+2])
			q.add(pair, weight*pairWeight, weight*pairWeight, []alt{{q.text(pair), 1}})
		}
	}
	for i := 0; i < len(run); {
		word, same := q.known.at(run[i:])
		if word == "" {
			i++
			continue
		}
		rest(i)
		n := utf8.RuneCountInString(word)
		switch same[0] {
		case stopConcept:
		case genericConcept:
			if n > 1 {
				q.add(word, weight*genericWeight, weight*genericWeight, []alt{{q.text(word), 1}})
			}
		default:
			alts := []alt{{q.text(word), 1}}
			for _, c := range same {
				alts = append(alts, alt{q.concept(c), conceptFactor})
			}
			for j := range n {
				if inner, nested := q.known.at(run[i+j : i+n]); inner != "" && inner != word && nested[0] >= 0 {
					for _, c := range nested {
						alts = append(alts, alt{q.concept(c), nestedFactor})
					}
				}
			}
			q.add(word, weight, weight, alts)
		}
		i += n
		from = i
	}
	rest(len(run))
}

// at returns the longest known word that a run begins with, and what it means.
func (c *concepts) at(run []rune) (word string, same []int) {
	for _, g := range c.glyphs[run[0]] {
		if len(word) > len(g.text) {
			break
		}
		if word == g.text || word == "" && strings.HasPrefix(string(run[:min(len(run), maxGlyphs)]), g.text) {
			word = g.text
			if g.concept >= 0 || len(same) == 0 { // a thing is more than a word that says nothing
				same = append(same, g.concept)
			}
		}
	}
	return word, same
}

// maxGlyphs is more than the longest entry of the thesaurus has.
const maxGlyphs = 12

func (q *query) add(key string, weight, asks float64, alts []alt) {
	if i, ok := q.ofUnit[key]; ok {
		q.units[i].weight = max(q.units[i].weight, weight)
		q.units[i].asks = max(q.units[i].asks, asks)
		return
	}
	if len(q.units) < maxUnits {
		q.ofUnit[key] = len(q.units)
		q.units = append(q.units, unit{weight, asks, alts})
	}
}

// needle returns the number of a needle, and whether it is new.
func (q *query) needle(key string) (int, bool) {
	if n, ok := q.ofNeedle[key]; ok {
		return n, false
	}
	q.ofNeedle[key] = q.needles
	q.needles++
	return q.needles - 1, true
}

func (q *query) word(stem string) int {
	n, fresh := q.needle("w" + stem)
	if fresh {
		q.words[stem] = append(q.words[stem], wordNeedle{n, []string{stem}})
	}
	return n
}

func (q *query) text(text string) int {
	n, fresh := q.needle("t" + text)
	if fresh {
		q.texts = append(q.texts, textNeedle{n, text})
	}
	return n
}

func (q *query) concept(c int) int {
	n, fresh := q.needle("c" + q.known.lines[c][0])
	if fresh {
		for _, text := range q.known.lines[c] {
			if isUnspaced(text) {
				q.texts = append(q.texts, textNeedle{n, text})
			} else if s := stems(text); len(s) > 0 {
				q.words[s[0]] = append(q.words[s[0]], wordNeedle{n, s})
			}
		}
	}
	return n
}

func hasPrefix(list, prefix []string) bool {
	if len(list) < len(prefix) {
		return false
	}
	for i, p := range prefix {
		if list[i] != p {
			return false
		}
	}
	return true
}

// unspaced reports whether a character is of a script without spaces.
func unspaced(r rune) bool {
	return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// splitPrompt parts what a person says from the code, logs and traces that the prompt
// quotes.
func splitPrompt(prompt string) (prose, code []string) {
	fenced := false
	for line := range strings.SplitSeq(prompt, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
			fenced = !fenced
			continue
		}
		switch {
		case trimmed == "":
		case fenced, looksLikeCode(line):
			code = append(code, withoutPaths(trimmed))
		default:
			prose = append(prose, trimmed)
		}
	}
	if len(prose) == 0 {
		return code, nil
	}
	return prose, code
}

// withoutPaths drops the directories of what a trace or log names: they tell of the
// machine.
func withoutPaths(line string) string {
	words := strings.Fields(line)
	for i, w := range words {
		if strings.Count(w, "/") > 1 {
			words[i] = w[strings.LastIndexByte(w, '/')+1:]
		}
	}
	return strings.Join(words, " ")
}

// looksLikeCode knows a line that no person writes as a sentence: an indented one, or
// one with more of code's punctuation than prose has.
func looksLikeCode(line string) bool {
	if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "    ") {
		return true
	}
	signs, letters := 0, 0
	for _, r := range line {
		switch {
		case strings.ContainsRune("{}()[]<>=;|&$*\\+@:/_\"", r):
			signs++
		case unicode.IsLetter(r):
			letters++
			if r >= 0x2E80 {
				letters += 2
			}
		}
	}
	last := line[len(strings.TrimRight(line, " \r"))-1]
	return signs*6 > letters+6 || (last == '{' || last == ';' || last == '}') && signs > 0
}
