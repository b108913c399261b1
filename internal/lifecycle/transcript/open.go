package transcript

import (
	"errors"
	"fmt"
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
