package recall

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memsvc/memsvc/internal/lexical"
)

// concepts is the thesaurus, taken apart once for a prompt.
type concepts struct {
	lines  [][]string          // the phrases of each concept
	words  map[string][]phrase // spaced scripts, by the first stem
	glyphs map[rune][]glyphs   // scripts without spaces, by the first character, the longest first
}

// phrase is an entry of the thesaurus in a spaced script.
type phrase struct {
	concept int
	stems   []string
}

// glyphs is an entry of the thesaurus in a script without spaces, or a stop phrase.
type glyphs struct {
	concept int // stopConcept: says nothing; genericConcept: says little
	text    string
}

// What a glyphs entry is besides a concept.
const (
	stopConcept    = -1
	genericConcept = -2
)

func newConcepts() *concepts {
	c := &concepts{words: make(map[string][]phrase), glyphs: make(map[rune][]glyphs)}
	addGlyphs := func(concept int, text string) {
		first, _ := utf8.DecodeRuneInString(text)
		c.glyphs[first] = append(c.glyphs[first], glyphs{concept, text})
	}
	for line := range strings.SplitSeq(strings.TrimSpace(thesaurus), "\n") {
		n := len(c.lines)
		list := strings.Split(line, ", ")
		c.lines = append(c.lines, list)
		for _, text := range list {
			if isUnspaced(text) {
				addGlyphs(n, text)
			} else if s := stems(text); len(s) > 0 {
				c.words[s[0]] = append(c.words[s[0]], phrase{n, s})
			}
		}
	}
	for _, text := range strings.Fields(chineseStops) {
		addGlyphs(stopConcept, text)
	}
	for _, text := range strings.Fields(chineseGeneric) {
		addGlyphs(genericConcept, text)
	}
	for _, list := range c.glyphs {
		slices.SortStableFunc(list, func(a, b glyphs) int { return len(b.text) - len(a.text) })
	}
	return c
}

// isUnspaced reports whether a phrase holds a character of a script without spaces.
func isUnspaced(s string) bool {
	for _, r := range s {
		if r >= 0x2E80 {
			return true
		}
	}
	return false
}

// stems returns the words of a text as the index knows them.
func stems(text string) []string { return appendStems(nil, text) }

func appendStems(out []string, text string) []string {
	for t := range lexical.Tokens(text) {
		if !t.Single {
			out = append(out, t.Term)
		}
	}
	return out
}
