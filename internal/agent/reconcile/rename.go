package reconcile

import (
	"bytes"

	"github.com/memsvc/memsvc/internal/memory"
)

// Bounds of the search for renames with changed text: beyond maxRenameCandidates on
// either side only equal bytes are paired, since the search compares all with all.
const (
	maxRenameCandidates = 40
	// minSimilarity is the share of common lines, by bytes, in percent, from which
	// two texts count as one file that moved.
	minSimilarity = 60
)

// PairRenames finds the moves among the deletes and creations that go to the hub and
// links the two actions. A move is a path that is gone and a new one with the same
// bytes; or with the same name but for its case; or with a similar text, if neither
// has another candidate. While the old path still exists the new one is a copy, and a
// copy is no move. text returns the bytes behind an action (of a PushDelete the
// agreed text, of a Push the local one), or false if they cannot be had; it is asked
// only where equal bytes do not decide. The slice is changed in place.
func PairRenames(actions []Action, text func(Action) ([]byte, bool)) {
	var gone, come []int
	for i, a := range actions {
		switch {
		case memory.IsIndex(a.Path):
		case a.Kind == PushDelete:
			gone = append(gone, i)
		case a.Kind == Push && a.Base == (Base{}) && a.Remote == "":
			come = append(come, i)
		}
	}
	if len(gone) == 0 || len(come) == 0 {
		return
	}
	link := func(g, c int) {
		actions[c].RenamedFrom = actions[g].Path
		actions[g].RenamedTo = actions[c].Path
	}
	free := func(list []int) []int {
		var out []int
		for _, i := range list {
			if actions[i].RenamedFrom == "" && actions[i].RenamedTo == "" {
				out = append(out, i)
			}
		}
		return out
	}

	// The same name but for its case first: nothing else can be meant.
	folded := map[string]int{}
	for _, g := range gone {
		folded[actions[g].Path.FoldKey()] = g
	}
	for _, c := range come {
		if g, ok := folded[actions[c].Path.FoldKey()]; ok && actions[g].RenamedTo == "" {
			link(g, c)
		}
	}

	// Then equal bytes, in path order on both sides.
	empty := memory.ETagOf(nil)
	byText := map[memory.ETag][]int{}
	for _, g := range free(gone) {
		if e := actions[g].Base.Text; e != empty {
			byText[e] = append(byText[e], g)
		}
	}
	for _, c := range free(come) {
		if list := byText[actions[c].Local]; len(list) > 0 {
			link(list[0], c)
			byText[actions[c].Local] = list[1:]
		}
	}

	gone, come = free(gone), free(come)
	if len(gone) == 0 || len(come) == 0 || len(gone) > maxRenameCandidates || len(come) > maxRenameCandidates {
		return
	}
	pairSimilar(actions, gone, come, text, link)
}

// pairSimilar links the pairs that have exactly each other as candidates.
func pairSimilar(actions []Action, gone, come []int, text func(Action) ([]byte, bool), link func(g, c int)) {
	bags := func(list []int) []lineBag {
		out := make([]lineBag, len(list))
		for i, at := range list {
			if b, ok := text(actions[at]); ok {
				out[i] = bagOf(b)
			}
		}
		return out
	}
	goneBags, comeBags := bags(gone), bags(come)
	goneHits, comeHits := make([][]int, len(gone)), make([][]int, len(come))
	for i, g := range goneBags {
		for j, c := range comeBags {
			if g.similar(c) {
				goneHits[i] = append(goneHits[i], j)
				comeHits[j] = append(comeHits[j], i)
			}
		}
	}
	for i, hits := range goneHits {
		if len(hits) == 1 && len(comeHits[hits[0]]) == 1 {
			link(gone[i], come[hits[0]])
		}
	}
}

// lineBag counts the bytes of each distinct line of a text.
type lineBag struct {
	lines map[string]int
	size  int
}

func bagOf(text []byte) lineBag {
	b := lineBag{lines: map[string]int{}}
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		if len(bytes.TrimSpace(line)) == 0 || bytes.Equal(line, []byte("---")) {
			continue // what every memory has says nothing
		}
		b.lines[string(line)]++
		b.size += len(line)
	}
	return b
}

func (b lineBag) similar(c lineBag) bool {
	if b.size == 0 || c.size == 0 {
		return false
	}
	common := 0
	for line, n := range b.lines {
		common += len(line) * min(n, c.lines[line])
	}
	return 2*common*100 >= minSimilarity*(b.size+c.size)
}
