package dream

import (
	"bytes"
	"context"
	"reflect"
	"strings"

	"github.com/memsvc/memsvc/internal/lifecycle/dates"
	"github.com/memsvc/memsvc/internal/memory"
)

// The reasons of changes.
const (
	reasonDates      = "relative dates are absolute now"
	reasonDuplicate  = "another memory says the same"
	reasonRestates   = "the team's memory says the same"
	reasonMerged     = "took in what an older memory of the same subject said"
	reasonInto       = "a newer memory of the same subject took in what it said"
	reasonSuperseded = "a newer memory of the same subject says otherwise in part, and took in the rest"
	reasonLinks      = "links lead to the memory that took the place of another"
	reasonCitations  = "marked what it cites and is no longer there"
	reasonHook       = "took in the rest of an index line that was too long"
	reasonModel      = "consolidated by the model"
	reasonModelPrune = "pruned by the model"
)

// tidy follows the rules, without a model. Done twice, the second time finds nothing.
func (d *Dreamer) tidy(ctx context.Context, t *tree) error {
	t.absoluteDates()
	// What one rule writes, another may have to look at: again, until nothing changes.
	for range 5 {
		before := t.changes()
		if err := t.duplicates(ctx); err != nil {
			return err
		}
		t.tidyIndexes()
		if err := d.citations(ctx, t); err != nil {
			return err
		}
		if reflect.DeepEqual(before, t.changes()) {
			break
		}
	}
	return ctx.Err()
}

// absoluteDates makes the dates of the memories absolute, as of each memory's own time, in
// the zone that people here live in.
func (t *tree) absoluteDates() {
	for _, it := range t.items {
		at := it.Age()
		if it.frozen || it.gone || at.IsZero() {
			continue
		}
		at = at.In(t.now.Location())
		if text, ok := withDescription(it, dates.Absolute(it.Front.Description, at)); ok {
			t.set(it, text, reasonDates)
		}
		t.set(it, it.withBody(dates.Absolute(string(it.Body()), at)), reasonDates)
	}
}

// withDescription returns the text with another description, if that can be done by
// changing this one value and no other byte.
func withDescription(it *item, description string) ([]byte, bool) {
	old := it.Front.Description
	f, ok := it.Front.Field("description")
	if !ok || old == "" || description == old || bytes.Count(f.Raw, []byte(old)) != 1 {
		return nil, false
	}
	raw := bytes.Replace(f.Raw, []byte(old), []byte(description), 1)
	text := bytes.Clone(it.Content[:f.Offset])
	text = append(append(text, raw...), it.Content[f.Offset+len(f.Raw):]...)
	fm, _, err := memory.ParseFrontmatter(text)
	if err != nil || fm.Description != description || fm.Name != it.Front.Name || fm.Type != it.Front.Type || len(fm.Fields) != len(it.Front.Fields) {
		return nil, false
	}
	return text, true
}

// plainBody is a body without the differences that mean nothing.
func plainBody(body []byte) string {
	var b strings.Builder
	for _, u := range unitsOf(strings.ReplaceAll(string(body), "\r\n", "\n")) {
		switch {
		case u.kind == blankUnit, saidOn.MatchString(normal(u.raw)):
		case u.kind == blockUnit:
			b.WriteString(strings.TrimRight(u.raw, " \t\n") + "\n")
		default:
			b.WriteString(normal(u.raw) + "\n")
		}
	}
	return b.String()
}
