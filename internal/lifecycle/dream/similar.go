package dream

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/lexical"
	"github.com/memsvc/memsvc/internal/memory"
)

// When two personal memories of a type are near duplicates: by the share of the terms of
// both bodies that they have in common, less where their names have as much in common, or
// where both begin with the same statement or hold the same ones in other words.
const (
	nearBody      = 0.70
	nearNamedBody = 0.50
	nearBegun     = 0.35
	nearName      = 0.60
	nearTerms     = 5 // that each body has at least; shorter ones say too little to compare

	maxTries   = 3      // merges of one memory that may fail, before it is left as it is
	maxCloser  = 20_000 // pairs of a dream that are looked at sentence by sentence
	maxSayings = 12     // sentences of a body that is looked at so
)

// maxPairs bounds the near duplicates of which as many as a dream may delete are merged, far
// above what a store needs that people wrote.
const (
	maxPairs   = 10_000
	whyTooMany = "the personal memories are too many and too alike to compare all of them"
)

// termsOf returns the terms of a text: stemmed words, and pairs of characters of Chinese
// and the like.
func termsOf(text string) map[string]bool {
	out := map[string]bool{}
	for tok := range lexical.Tokens(text) {
		if !tok.Single {
			out[tok.Term] = true
		}
	}
	if len(out) == 0 {
		for tok := range lexical.Tokens(text) {
			out[tok.Term] = true
		}
	}
	return out
}

func overlap(a, b map[string]bool) float64 {
	common := 0
	for t := range a {
		if b[t] {
			common++
		}
	}
	if common == 0 {
		return 0
	}
	return float64(common) / float64(len(a)+len(b)-common)
}

// similar merges personal memories that are near duplicates, the older into the newer,
// until none is left. A fact that one of the two has alone is kept.
func (t *tree) similar(ctx context.Context) error {
	failed := map[*item]int{}
	for again := true; again; {
		again = false
		pairs, err := t.pairs(ctx)
		if err != nil {
			return err
		}
		for _, p := range pairs {
			if err := ctx.Err(); err != nil {
				return err
			}
			switch {
			case p[0].gone || p[1].gone || failed[p[1]] >= maxTries:
			case t.absorb(p[0], p[1], reasonInto):
				again = true
			default:
				failed[p[1]]++
			}
		}
	}
	return nil
}

// pairs returns the near duplicates, the newer memory first. Whoever has enough in common
// has one of the rarest terms in common, so that only few are compared.
func (t *tree) pairs(ctx context.Context) (out [][2]*item, err error) {
	list := t.byAge(memory.ScopePrivate)
	bodies := make([][]int, len(list))
	number := map[string]int{} // of a term
	var count []int            // the memories that have a term
	for i, it := range list {
		for term := range termsOf(string(it.Body())) {
			n, ok := number[term]
			if !ok {
				n = len(count)
				number[term], count = n, append(count, 0)
			}
			count[n]++
			bodies[i] = append(bodies[i], n)
		}
		slices.Sort(bodies[i])
	}
	was, is := t.looked, &looked{texts: map[*item]int{}, near: map[[2]*item]bool{}}
	if was == nil {
		was = is
	}
	seen := make([][]int, len(count))
	compared := make([]int, len(list)) // by the memory with this number and one
	closer := maxCloser
	t.looked = is
	for i, it := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(bodies[i]) < nearTerms {
			continue
		}
		if t.effort.over() || len(out) >= maxPairs {
			t.say(Left{Why: whyTooMany})
			break
		}
		rare := slices.Clone(bodies[i])
		slices.SortFunc(rare, func(a, b int) int { return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(a, b)) })
		rare = rare[:min(len(rare), len(rare)-int(nearBegun*float64(len(rare)))+1)]
		for _, term := range rare {
			for _, j := range seen[term] {
				if compared[j] == i+1 {
					continue
				}
				compared[j] = i + 1
				pair := [2]*item{list[j], it}
				isNear := was.near[pair]
				if !was.has(pair) {
					t.effort.next()
					isNear = t.effort.spend(len(bodies[i])+len(bodies[j])) && near(list[j], it, bodies[j], bodies[i], &closer, t.effort)
				}
				if isNear {
					is.near[pair] = true
					out = append(out, pair)
				}
			}
			seen[term] = append(seen[term], i)
		}
		is.texts[it] = it.version
	}
	return out, nil
}

// looked is what a search for near duplicates has compared: the next need not again.
type looked struct {
	texts map[*item]int // their versions
	near  map[[2]*item]bool
}

// has reports whether both memories were compared, as they are now.
func (l *looked) has(pair [2]*item) bool {
	for _, it := range pair {
		if text, ok := l.texts[it]; !ok || text != it.version {
			return false
		}
	}
	return true
}

// share is what part of their terms two texts have in common; both are sorted.
func share(a, b []int) float64 {
	common, all := 0, len(a)+len(b)
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			a, b = a[1:], b[1:]
			common++
		}
	}
	if common == 0 {
		return 0
	}
	return float64(common) / float64(all-common)
}

// near reports whether two memories are near duplicates. closer is how many more pairs may
// be looked at sentence by sentence.
func near(a, b *item, inA, inB []int, closer *int, e *effort) bool {
	if 4*min(len(inA), len(inB)) < max(len(inA), len(inB)) || kindOf(a) != kindOf(b) {
		return false
	}
	share := share(inA, inB)
	switch {
	case share >= nearBody:
	case share >= nearNamedBody && nameShare(a, b) >= nearName:
	case share >= nearBegun:
		if first := a.begins(); selfContained(first) && first == b.begins() {
			break
		}
		*closer--
		if *closer < 0 || !sameStatements(a.statements(), b.statements(), e) {
			return false
		}
	default:
		return false
	}
	return !apart(a, b)
}

// apart reports whether two memories are about different things, however alike they are
// told: each name has a word that the other's text lacks and its own text needs, or the
// names differ in a number or a letter on both sides (v1 and v2, service A and B).
func apart(a, b *item) bool {
	return numbered(a, b) && numbered(b, a) || own(a, b) && own(b, a)
}

// own reports whether the name of a has a term that stands in its text and nowhere in b.
func own(a, b *item) bool {
	name, text := a.terms()
	otherName, otherText := b.terms()
	for term := range name {
		if text[term] && !otherName[term] && !otherText[term] {
			return true
		}
	}
	return false
}

// begins returns firstGist of the body.
func (it *item) begins() string {
	if it.begin == nil {
		g := firstGist(string(it.Body()))
		it.begin = &g
	}
	return *it.begin
}

// terms returns those of the name, and those of the description and the body.
func (it *item) terms() (name, text map[string]bool) {
	if it.nameTerms == nil {
		it.nameTerms = termsOf(it.Front.Name)
		it.textTerms = termsOf(it.Front.Description + "\n" + string(it.Body()))
	}
	return it.nameTerms, it.textTerms
}

func nameShare(a, b *item) float64 {
	nameA, _ := a.terms()
	nameB, _ := b.terms()
	return overlap(nameA, nameB)
}

// words returns those of the name.
func (it *item) words() []string {
	if it.nameWords == nil {
		it.nameWords = append([]string{}, strings.Fields(plainName(it.Front.Name))...)
	}
	return it.nameWords
}

// statements returns those of the body.
func (it *item) statements() []statement {
	if it.said == nil {
		it.said = append([]statement{}, statements(string(it.Body()))...)
	}
	return it.said
}

func numbered(a, b *item) bool {
	there := b.words()
	for _, w := range a.words() {
		if !slices.Contains(there, w) && (strings.ContainsAny(w, "0123456789") || len(w) == 1) {
			return true
		}
	}
	return false
}
