package lexical

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// BM25's constants at their usual values: how soon repetition stops counting, and
// how much a long text is held back.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

// MaxDocumentTerms bounds the terms counted of one document, all fields together, so
// that the index grows with the number of documents and not with their size.
const MaxDocumentTerms = 20_000

// Field is a part of a document. A term found in it counts Weight times; a weight
// that is not positive counts as 1.
type Field struct {
	Text   string
	Weight float64
}

// Hit is a document that a query found.
type Hit struct {
	ID    string
	Score float64
	// Matched is how many different terms of the query the document holds.
	Matched int
}

// Index ranks documents by BM25. The zero value is empty and ready. It is not safe
// for concurrent use while documents are added or removed; searches may run together.
//
// It holds 8 bytes for each different term of a document, and nothing of the texts.
type Index struct {
	slots    []document
	at       map[string]uint32 // id → slot of the living document
	postings map[string][]posting
	length   int64 // of the living documents, in units of 1/lengthUnit terms
}

// document is a slot. Removing a document only empties its slot; its postings go
// when the dead are many.
type document struct {
	id     string
	length int64
	alive  bool
}

// posting is a document that holds a term, and the term's weighted count.
type posting struct {
	slot  uint32
	count float32
}

// lengthUnit makes lengths whole numbers, so that adding and removing documents in
// any order gives the same sum.
const lengthUnit = 1000

// minDead keeps a small index from compacting at every change.
const minDead = 64

// Len returns the number of documents.
func (x *Index) Len() int { return len(x.at) }

// Add puts a document in, in the place of one with the same id.
func (x *Index) Add(id string, fields ...Field) {
	x.Remove(id)
	if x.at == nil {
		x.at = make(map[string]uint32)
		x.postings = make(map[string][]posting)
	}
	counts := make(map[string]float32)
	var length int64
	n := 0
	for _, f := range fields {
		weight := f.Weight
		if !(weight > 0) {
			weight = 1
		}
		units := int64(math.Round(weight * lengthUnit))
		for t := range Tokens(f.Text) {
			if n == MaxDocumentTerms {
				break
			}
			n++
			if !t.Single {
				length += units
			}
			counts[t.Term] += float32(weight)
		}
	}
	slot := uint32(len(x.slots))
	for term, count := range counts {
		p, known := x.postings[term]
		if !known {
			// A term is cut from the text; a copy lets go of the text.
			term = strings.Clone(term)
		}
		x.postings[term] = append(p, posting{slot: slot, count: count})
	}
	x.slots = append(x.slots, document{id: id, length: length, alive: true})
	x.at[id] = slot
	x.length += length
}

// Remove takes a document out; an id that is not there changes nothing.
func (x *Index) Remove(id string) {
	slot, ok := x.at[id]
	if !ok {
		return
	}
	delete(x.at, id)
	x.length -= x.slots[slot].length
	x.slots[slot] = document{}
	if dead := len(x.slots) - len(x.at); len(x.at) == 0 || dead > len(x.at) && dead >= minDead {
		x.compact()
	}
}

// compact drops the empty slots and their postings.
func (x *Index) compact() {
	moved := make([]uint32, len(x.slots))
	living := make([]document, 0, len(x.at))
	for i, d := range x.slots {
		if d.alive {
			moved[i] = uint32(len(living))
			x.at[d.id] = moved[i]
			living = append(living, d)
		}
	}
	for term, list := range x.postings {
		kept := list[:0]
		for _, p := range list {
			if x.slots[p.slot].alive {
				kept = append(kept, posting{slot: moved[p.slot], count: p.count})
			}
		}
		if len(kept) == 0 {
			delete(x.postings, term)
		} else {
			x.postings[term] = slices.Clip(slices.Clone(kept))
		}
	}
	x.slots = living
}

// Search returns the best documents for a text, best first; among equals, by id. A
// limit of 0 or less means all.
func (x *Index) Search(text string, limit int) []Hit { return x.SearchQuery(ParseQuery(text), limit) }

// SearchQuery is Search for a query that was built or expanded before.
func (x *Index) SearchQuery(q Query, limit int) []Hit {
	if len(x.at) == 0 || q.Empty() {
		return nil
	}
	average := max(float64(x.length)/float64(len(x.at)), 1)
	n := float64(len(x.at))
	scores := make([]float64, len(x.slots))
	matched := make([]int, len(x.slots))
	for i, term := range q.terms {
		df := 0.0
		for _, p := range x.postings[term] {
			if x.slots[p.slot].alive {
				df++
			}
		}
		idf := math.Log(1 + (n-df+0.5)/(df+0.5))
		for _, p := range x.postings[term] {
			d := &x.slots[p.slot]
			if !d.alive {
				continue
			}
			tf := float64(p.count)
			norm := bm25K1 * (1 - bm25B + bm25B*float64(d.length)/average)
			scores[p.slot] += q.weights[i] * idf * tf * (bm25K1 + 1) / (tf + norm)
			matched[p.slot]++
		}
	}
	var hits []Hit
	for slot, m := range matched {
		if m > 0 {
			hits = append(hits, Hit{ID: x.slots[slot].id, Score: scores[slot], Matched: m})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	if limit > 0 && len(hits) > limit {
		hits = hits[:limit:limit]
	}
	return hits
}
