package dream

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/memory"
)

// texts returns two bodies of so many lines, no line of which is the other's.
func unequalTexts(lines int) (a, b string) {
	var first, second strings.Builder
	for i := range lines {
		fmt.Fprintf(&first, "w%d %d a%d\n", i*7%1009, i, i)
		fmt.Fprintf(&second, "w%d %d a%d\n", i*7%1009, i+1, i)
	}
	return first.String(), second.String()
}

func TestAPairCostsNoMoreThanItsSteps(t *testing.T) {
	a, b := unequalTexts(4_000)
	first, second := statements(a), statements(b)
	for name, do := range map[string]func(e *effort){
		"contradicts": func(e *effort) { contradicts(first, second, e) },
		"mergeBodies": func(e *effort) { mergeBodies(a, b, e) },
		"coversAll":   func(e *effort) { knownOf(e, a).coversAll(strings.Repeat(a, 100) + b) },
	} {
		e := newEffort()
		do(e)
		if !e.spent || dreamSteps-e.dream > pairSteps || dreamSteps-e.dream < pairSteps/2 {
			t.Errorf("%s: spent %v after %d steps of %d", name, e.spent, dreamSteps-e.dream, pairSteps)
		}
	}
	// What is the same needs no comparing, however long.
	e := newEffort()
	if contradicts(first, slices.Clone(first), e) || e.dream != dreamSteps {
		t.Errorf("the same text costs %d steps", dreamSteps-e.dream)
	}
}

// storeOf is a tree of personal memories with these bodies.
func storeOf(name func(int) string, bodies ...string) *tree {
	t := &tree{effort: newEffort(), vain: map[vain]bool{}, touched: map[*item]bool{}, deletes: len(bodies)}
	for i, body := range bodies {
		it := &item{}
		it.Scope, it.Path = memory.ScopePrivate, memory.Path(fmt.Sprintf("m%05d.md", i))
		it.parse(fmt.Appendf(nil, "---\nname: %s\ntype: project\n---\n\n%s", name(i), body))
		t.items = append(t.items, it)
	}
	return t
}

func TestADreamCostsNoMoreThanItsSteps(t *testing.T) {
	var bodies []string
	for i := range 5_000 {
		bodies = append(bodies, fmt.Sprintf("The importer of customer number %d runs every night at 03:00 and mails its report to the owner.\n", i))
	}
	tr := storeOf(func(i int) string { return fmt.Sprintf("Importer %d", i) }, bodies...)
	for range 3 {
		if _, err := tr.pairs(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if tr.effort.dream != 0 || len(tr.left) != 1 || tr.left[0].Why != whyTooMany {
		t.Errorf("%d steps are left, and it says %+v", tr.effort.dream, tr.left)
	}
	tr = storeOf(func(int) string { return "Importers" }, bodies[:100]...)
	if _, err := tr.pairs(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := tr.effort.dream
	again, err := tr.pairs(t.Context())
	if err != nil || tr.effort.dream != before || len(again) != 100*99/2 {
		t.Errorf("looking again at what did not change costs %d steps and finds %d pairs: %v", before-tr.effort.dream, len(again), err)
	}
}

func TestALineOfMarksIsTakenApartAtOnce(t *testing.T) {
	if got := normal(strings.Repeat("- > 1. ## ", 300_000) + "Words."); got != "words" {
		t.Errorf("%.40q", got)
	}
	e, ok := shorter(memory.IndexEntry{Title: "A", Target: "a.md", Hook: strings.Repeat("word ", 400_000)}, fitsChars)
	if !ok || !strings.HasSuffix(e.Hook, "word…") || len(e.Hook) > memory.MaxIndexLineChars || len(e.Hook) < memory.MaxIndexLineChars/2 {
		t.Errorf("%v, %d bytes", ok, len(e.Hook))
	}
}
