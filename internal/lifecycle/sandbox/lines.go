package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
)

const (
	maxLine    = 2000     // bytes shown of a line
	maxScanned = 64 << 20 // bytes read by one call
	textHead   = 8000     // bytes that tell whether it is a text
)

// isBinary knows what is no text by its beginning.
func isBinary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), textHead)], 0) >= 0 }

// line is one line of a text, cut to maxLine at the end of a word.
type line struct {
	n    int // from 1
	text string
}

// lines yields the lines of a text, however long they are, until ctx or the budget of
// bytes ends, and takes what it read from that budget.
func lines(ctx context.Context, from io.Reader, budget *int) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		in := bufio.NewReaderSize(from, 64<<10)
		if head, _ := in.Peek(textHead); isBinary(head) {
			yield(line{}, errBinary)
			return
		}
		var b []byte
		for n := 1; ; {
			piece, more, err := in.ReadLine()
			*budget -= len(piece) + 1
			if room := maxLine + 1 - len(b); room > 0 {
				b = append(b, piece[:min(room, len(piece))]...)
			}
			switch {
			case errors.Is(err, io.EOF) || *budget < 0:
				return
			case err != nil:
				yield(line{}, said("it cannot be read"))
				return
			case ctx.Err() != nil:
				yield(line{}, ctx.Err())
				return
			case more:
				continue
			}
			if !yield(line{n, strings.ToValidUTF8(model.Head(string(b), maxLine), "?")}, nil) {
				return
			}
			b = b[:0]
			n++
		}
	}
}
