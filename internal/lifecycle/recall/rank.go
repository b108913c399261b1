package recall

import (
	"path"
	"strings"

	"github.com/memsvc/memsvc/internal/lexical"
	"github.com/memsvc/memsvc/internal/memory"
)

// What a word counts by where it stands. A description is written to be found by; a
// body only mentions.
const (
	weightName        = 3
	weightDescription = 2.5
	weightFile        = 2
	weightConcept     = 2
	weightHead        = 1
)

// What a concept of the query counts beside a word of the query itself: it is a guess.
const conceptWeight = 0.7

// rarenessFloor makes the scores of a store of three memories comparable to those of a
// full scan, so that one threshold serves both.
const rarenessFloor = MaxMemories

// Scored is a memory with what a ranker thinks of it.
type Scored struct {
	Memory
	Score   float64
	Matched int // different terms of the query, words and concepts
}

// Rank orders memories by how well they fit a prompt, the best first; what shares no
// word and no concept with it is left out. It needs no model and is deterministic.
func Rank(memories []Memory, prompt string) []Scored {
	index := lexical.Index{Floor: rarenessFloor}
	known := newConcepts()
	byRef := make(map[string]*Memory, len(memories))
	for i := range memories {
		m := &memories[i]
		byRef[m.Ref] = m
		file := strings.TrimSuffix(path.Base(m.Ref), memory.Extension)
		about := strings.Join(known.of(m.Name+"\n"+m.Description+"\n"+strings.ReplaceAll(file, "_", " ")), " ")
		index.Add(m.Ref,
			lexical.Field{Text: m.Name, Weight: weightName},
			lexical.Field{Text: m.Description, Weight: weightDescription},
			lexical.Field{Text: strings.NewReplacer("_", " ", "-", " ").Replace(file), Weight: weightFile},
			lexical.Field{Text: about, Weight: weightConcept},
			lexical.Field{Text: m.Head, Weight: weightHead},
		)
	}
	q := lexical.ParseQuery(prompt)
	for _, c := range known.of(prompt) {
		q.Add(c, conceptWeight)
	}
	var out []Scored
	for _, h := range index.SearchQuery(q, 0) {
		out = append(out, Scored{Memory: *byRef[h.ID], Score: h.Score, Matched: h.Matched})
	}
	return out
}
