package agent

import (
	"io"

	"github.com/memsvc/memsvc/internal/memory"
)

// readBounded reads a text of which at most memory.MaxMemoryBytes+1 bytes are of
// interest, and returns how many there are in all.
func readBounded(r io.Reader) (text []byte, size int64, err error) {
	if text, err = io.ReadAll(io.LimitReader(r, memory.MaxMemoryBytes+1)); err != nil {
		return nil, 0, err
	}
	rest, err := io.Copy(io.Discard, r)
	return text, int64(len(text)) + rest, err
}
