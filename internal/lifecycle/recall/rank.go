package recall

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memsvc/memsvc/internal/memory"
)

// What a word counts by where it stands. A description is written to be found by; a
// body only mentions.
const (
	weightName        = 3
	weightDescription = 2.5
	weightFile        = 2
	weightHead        = 0.7
)

// How soon repetition stops counting, and how much a long text is held back; as in BM25,
// with less of the latter, since all that is read of a memory is its head.
const (
	saturation = 1.2
	lengthBias = 0.6
)

// rarenessFloor makes the scores of a store of three memories comparable to those of a
// full scan, so that one threshold serves both.
const rarenessFloor = MaxMemories

// Scored is a memory with what a ranker thinks of it.
type Scored struct {
	Memory
	Score   float64
	Covered float64 // share of what the prompt speaks of, 0 to 1
	Matched int     // different things of the prompt that it speaks of
	Common  float64 // share, 0 to 1, of what the best one speaks of of the prompt that it does, too

	covers []float64 // by unit of the prompt, as long as it is ranked
}

// Rank orders memories by how well they fit a prompt, the best first; what shares no
// word and no concept with it is left out. Among equals the pinned ones come first, then the
// newer. It needs no model and is deterministic.
func Rank(memories []Memory, prompt string) []Scored {
	q := newQuery(prompt)
	if len(q.units) == 0 {
		return nil
	}
	counts := make([]float32, len(memories)*q.needles)
	lengths := make([]float64, len(memories))
	df := make([]int, q.needles)
	seen := make([]int, q.needles)
	mark := 0
	total := 0.0
	count := func(i int, text string, weight float64) {
		mark++
		n := q.count(text, seen, mark, counts[i*q.needles:(i+1)*q.needles], float32(weight))
		lengths[i] += weight * float64(n)
	}
	for i := range memories {
		m := &memories[i]
		file := strings.TrimSuffix(path.Base(m.Ref), memory.Extension)
		count(i, m.Name, weightName)
		count(i, m.Description, weightDescription)
		count(i, file, weightFile)
		count(i, m.Head, weightHead)
		total += lengths[i]
		for n, c := range counts[i*q.needles : (i+1)*q.needles] {
			if c > 0 {
				df[n]++
			}
		}
	}
	average := max(total/float64(max(len(memories), 1)), 1)
	all := float64(max(len(memories), rarenessFloor))
	idf := make([]float64, q.needles)
	for n := range idf {
		idf[n] = math.Log(1 + (all-float64(df[n])+0.5)/(float64(df[n])+0.5))
	}
	reach := q.reach(idf, df, len(memories))
	var out []Scored
	for i := range memories {
		own := counts[i*q.needles : (i+1)*q.needles]
		norm := saturation * (1 - lengthBias + lengthBias*lengths[i]/average)
		s := Scored{Memory: memories[i]}
		covered := 0.0
		for n, u := range q.units {
			best, cover := 0.0, 0.0
			for _, a := range u.alts {
				tf := float64(own[a.needle])
				if tf == 0 {
					continue
				}
				best = max(best, a.factor*idf[a.needle]*tf*(saturation+1)/(tf+norm))
				cover = max(cover, a.factor*idf[a.needle])
			}
			if best > 0 {
				s.Score += u.weight * best
				covered += u.weight * cover
				s.Matched++
				if s.covers == nil {
					s.covers = make([]float64, len(q.units))
				}
				s.covers[n] = u.weight * cover
			}
		}
		if s.Matched > 0 {
			s.Covered = min(covered/reach, 1)
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b Scored) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), compareBool(b.Pinned, a.Pinned), b.Time.Compare(a.Time), cmp.Compare(a.Ref, b.Ref))
	})
	shared(out)
	return out
}

// shared fills in what each of the ranked has in common with the best one.
func shared(ranked []Scored) {
	if len(ranked) == 0 {
		return
	}
	best, all := ranked[0].covers, 0.0
	for _, c := range best {
		all += c
	}
	for i := range ranked {
		both := 0.0
		for n, c := range best {
			both += min(c, ranked[i].covers[n])
		}
		ranked[i].Common = both / all
	}
	for i := range ranked {
		ranked[i].covers = nil
	}
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// maxReach is how many things of a prompt a memory can be asked to speak of: a long
// prompt speaks of many.
const maxReach = 3

// What a word that no memory holds counts in a prompt's reach, with a full shelf and with
// an empty one. With few memories a prompt is likely about something else, however rare
// a word in common looks.
const (
	unknownFactor = 0.8
	unknownAlone  = 1.5
)

// reach is what a memory that speaks of all that the prompt does would have.
func (q *query) reach(idf []float64, df []int, memories int) float64 {
	unknown := unknownAlone + (unknownFactor-unknownAlone)*min(float64(memories)/rarenessFloor, 1)
	all := make([]float64, 0, len(q.units))
	for _, u := range q.units {
		best, never := 0.0, 0.0
		for _, a := range u.alts {
			if df[a.needle] > 0 {
				best = max(best, a.factor*idf[a.needle])
			} else {
				never = max(never, a.factor*idf[a.needle])
			}
		}
		if best == 0 {
			best = never * unknown
		}
		all = append(all, u.asks*best)
	}
	slices.SortFunc(all, func(a, b float64) int { return cmp.Compare(b, a) })
	sum := 0.0
	for _, v := range all[:min(len(all), maxReach)] {
		sum += v
	}
	return max(sum, 1e-9)
}

// count adds the weight to each needle that a text holds, and returns the text's length
// in words.
func (q *query) count(text string, seen []int, mark int, counts []float32, weight float32) int {
	hit := func(n int) {
		if seen[n] != mark {
			seen[n] = mark
			counts[n] += weight
		}
	}
	q.buf = appendStems(q.buf[:0], text)
	words := q.buf
	for i, w := range words {
		for _, needle := range q.words[w] {
			if hasPrefix(words[i:], needle.stems) {
				hit(needle.needle)
			}
		}
	}
	if strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		for _, needle := range q.texts {
			if strings.Contains(text, needle.text) {
				hit(needle.needle)
			}
		}
	}
	return len(words)
}
