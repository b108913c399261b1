package model

import (
	"encoding/json"
	"iter"
	"strings"
)

// Values bounds what is read of an answer in search of one: every bracket may begin a value
// that goes on to the answer's end, or hold others that all do.
const (
	valuesFactor = 16       // times the answer's length
	valuesExtra  = 64 << 10 // bytes more
)

// Values yields the JSON values in an answer that begin with one of the brackets, "[", "{"
// or both, in order, whatever prose surrounds them; of those that lie in one another the
// outer one comes first. It stops where the work would be out of proportion.
func Values(answer, brackets string) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		values(answer, brackets, yield)
	}
}

// values returns how many bytes it looked at.
func values(answer, brackets string, yield func(json.RawMessage) bool) (looked int) {
	left := valuesFactor*len(answer) + valuesExtra
	for at := 0; looked < left; at++ {
		i := strings.IndexAny(answer[at:], brackets)
		if i < 0 {
			break
		}
		at += i
		from := strings.NewReader(answer[at:])
		dec := json.NewDecoder(from)
		var v json.RawMessage
		err := dec.Decode(&v)
		looked += i + len(answer) - at - from.Len() // the decoder reads on a little
		if err == nil && !yield(v) {
			break
		}
	}
	return looked
}
