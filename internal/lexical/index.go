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
type Index struct {
	docs     map[string]*document
	postings map[string]map[*document]float64 // term → documents and weighted counts
	length   float64                          // of all documents
}

type document struct {
	id     string
	terms  []string // each once, sharing the key of postings
	length float64
}

// Len returns the number of documents.
func (x *Index) Len() int { return len(x.docs) }

// Add puts a document in, in the place of one with the same id.
func (x *Index) Add(id string, fields ...Field) {
	x.Remove(id)
	if x.docs == nil {
		x.docs = make(map[string]*document)
		x.postings = make(map[string]map[*document]float64)
	}
	d := &document{id: id}
	counts := make(map[string]float64)
	n := 0
	for _, f := range fields {
		weight := f.Weight
		if !(weight > 0) {
			weight = 1
		}
		for t := range Tokens(f.Text) {
			if n == MaxDocumentTerms {
				break
			}
			n++
			if !t.Single {
				d.length += weight
			}
			if _, ok := counts[t.Term]; !ok {
				d.terms = append(d.terms, t.Term)
			}
			counts[t.Term] += weight
		}
	}
	for i, term := range d.terms {
		p, ok := x.postings[term]
		if !ok {
			// A term is cut from the text; a copy lets go of the text.
			term = strings.Clone(term)
			p = make(map[*document]float64, 1)
			x.postings[term] = p
		}
		p[d] = counts[term]
		d.terms[i] = term
	}
	x.docs[id] = d
	x.length += d.length
}

// Remove takes a document out; an id that is not there changes nothing.
func (x *Index) Remove(id string) {
	d, ok := x.docs[id]
	if !ok {
		return
	}
	delete(x.docs, id)
	for _, term := range d.terms {
		p := x.postings[term]
		delete(p, d)
		if len(p) == 0 {
			delete(x.postings, term)
		}
	}
	x.length -= d.length
	if len(x.docs) == 0 {
		x.length = 0 // no rounding error survives an empty index
	}
}

// Search returns the best documents for a text, best first; among equals, by id. A
// limit of 0 or less means all.
func (x *Index) Search(text string, limit int) []Hit { return x.SearchQuery(ParseQuery(text), limit) }

// SearchQuery is Search for a query that was built or expanded before.
func (x *Index) SearchQuery(q Query, limit int) []Hit {
	if len(x.docs) == 0 || q.Empty() {
		return nil
	}
	n := float64(len(x.docs))
	average := x.length / n
	if average <= 0 {
		average = 1
	}
	found := make(map[*document]*Hit)
	for i, term := range q.terms {
		p := x.postings[term]
		if len(p) == 0 {
			continue
		}
		df := float64(len(p))
		idf := math.Log(1 + (n-df+0.5)/(df+0.5))
		for d, tf := range p {
			norm := bm25K1 * (1 - bm25B + bm25B*d.length/average)
			h := found[d]
			if h == nil {
				h = &Hit{ID: d.id}
				found[d] = h
			}
			h.Score += q.weights[i] * idf * tf * (bm25K1 + 1) / (tf + norm)
			h.Matched++
		}
	}
	hits := make([]Hit, 0, len(found))
	for _, h := range found {
		hits = append(hits, *h)
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	if limit > 0 && len(hits) > limit {
		hits = hits[:limit:limit]
	}
	return hits
}
