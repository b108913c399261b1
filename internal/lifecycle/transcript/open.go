package transcript

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
)

// Open opens a transcript and returns its size. What is no regular file is refused before
// it is opened: a pipe would hold its reader for ever, and a device never ends.
func Open(name string) (*os.File, int64, error) {
	fi, err := os.Stat(name)
	if err == nil && !fi.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, 0, fmt.Errorf("transcript %s: %w", name, err)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, fmt.Errorf("transcript: %w", err)
	}
	return f, fi.Size(), nil
}

// Until yields lines as long as ctx lasts, and then its error.
func Until(ctx context.Context, lines iter.Seq2[Raw, error]) iter.Seq2[Raw, error] {
	return func(yield func(Raw, error) bool) {
		for l, err := range lines {
			if cerr := ctx.Err(); cerr != nil {
				yield(Raw{}, cerr)
				return
			}
			if !yield(l, err) {
				return
			}
		}
	}
}
