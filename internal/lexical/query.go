package lexical

// MaxQueryTerms bounds the different terms of a query; later ones are left out, so
// that a pasted log costs no more than a long question.
const MaxQueryTerms = 256

// Query is a set of weighted terms. Expansion, such as synonyms or translations,
// adds terms to it before the search.
type Query struct {
	terms   []string
	weights []float64
	at      map[string]int
}

// ParseQuery returns the terms of text, each once and with weight 1. A run of one
// character in a script without spaces is a term of its own; in longer runs only the
// pairs count.
func ParseQuery(text string) Query {
	var q Query
	var single Token // a character that may turn out to stand alone
	pending := false
	flush := func() {
		if pending {
			q.Add(single.Term, 1)
		}
		pending = false
	}
	lastPairEnd := -1
	for t := range Tokens(text) {
		if len(q.terms) >= MaxQueryTerms {
			break
		}
		switch {
		case !t.Single:
			if pending && single.Start == t.Start {
				pending = false // the pair holds it
			} else {
				flush()
			}
			q.Add(t.Term, 1)
			lastPairEnd = t.End
		case t.End == lastPairEnd:
			// the second character of the pair just seen
		default:
			flush()
			single, pending = t, true
		}
	}
	flush()
	return q
}

// Add adds a term as Tokens yields it, with a weight relative to 1, the weight of
// the user's own words. A term that is there keeps the greater weight. Terms beyond
// MaxQueryTerms are left out.
func (q *Query) Add(term string, weight float64) {
	if term == "" || !(weight > 0) {
		return
	}
	if i, ok := q.at[term]; ok {
		q.weights[i] = max(q.weights[i], weight)
		return
	}
	if len(q.terms) >= MaxQueryTerms {
		return
	}
	if q.at == nil {
		q.at = make(map[string]int)
	}
	q.at[term] = len(q.terms)
	q.terms = append(q.terms, term)
	q.weights = append(q.weights, weight)
}

// Terms returns the query's terms in order.
func (q Query) Terms() []string { return append([]string(nil), q.terms...) }

// Empty reports whether the query has no term and so can find nothing.
func (q Query) Empty() bool { return len(q.terms) == 0 }
