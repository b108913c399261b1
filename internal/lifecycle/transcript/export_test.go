package transcript

import (
	"io"
	"iter"
)

// Backward is backwardWithin as Forward is: what is longer than MaxLineBytes is passed over.
func Backward(r io.ReaderAt, size int64) iter.Seq2[Raw, error] {
	return func(yield func(Raw, error) bool) {
		for l, err := range backwardWithin(r, size, MaxLineBytes) {
			if (l.Text != nil || err != nil) && !yield(l, err) {
				return
			}
		}
	}
}
