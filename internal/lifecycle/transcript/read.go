package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
)

// MaxLineBytes bounds one line. Clients write whole tool results into one; a longer
// line is passed over.
const MaxLineBytes = 32 << 20

// chunkBytes is how much is read at once.
const chunkBytes = 256 << 10

// Raw is a line as it stands in the file.
type Raw struct {
	Offset int64  // where it begins
	Text   []byte // without its line end; valid until the next line is taken
	Size   int64  // bytes of the line without its end, of backwardWithin's alone
}

// backwardWithin yields the lines of the first size bytes of r from the last to the first. A
// last line without line end is one that is being written, and comes first; it may be
// half. A line of more bytes than most is yielded without its text. A read that fails is
// yielded as an error, and ends the sequence.
func backwardWithin(r io.ReaderAt, size int64, most int) iter.Seq2[Raw, error] {
	return func(yield func(Raw, error) bool) {
		w := backward{r: r, at: size, size: size, end: size, most: most, buf: make([]byte, 2*chunkBytes)}
		w.lo, w.hi = len(w.buf), len(w.buf)
		for w.at > 0 {
			if err := w.read(); err != nil {
				yield(Raw{}, err)
				return
			}
			if !w.lines(yield) {
				return
			}
		}
		if size > 0 {
			yield(w.line(0, w.buf[w.lo:w.hi]), nil)
		}
	}
}

// backward is a window that moves from a file's end to its beginning. buf[lo:hi] are
// the bytes of the file from at on, up to the line that was yielded last.
type backward struct {
	r        io.ReaderAt
	at, size int64
	end      int64 // where the line under way ends in the file
	most     int   // bytes of a line that is held
	buf      []byte
	lo, hi   int
	fresh    int   // bytes of buf[lo:] that no one has looked through
	ends     []int // where the line ends of the fresh bytes stand; reused
	drop     bool  // the line under way is too long: its bytes are let go
}

// read puts the bytes before the window into it.
func (w *backward) read() error {
	if w.hi-w.lo > w.most {
		w.lo, w.drop = w.hi, true
	}
	kept := w.hi - w.lo
	n := int(min(int64(max(chunkBytes, kept)), w.at)) // in doubling steps while a line is long
	if n+kept > len(w.buf) {
		grown := make([]byte, 2*(n+kept))
		copy(grown[len(grown)-kept:], w.buf[w.lo:w.hi])
		w.buf = grown
	} else {
		copy(w.buf[len(w.buf)-kept:], w.buf[w.lo:w.hi])
	}
	w.hi = len(w.buf)
	w.lo = w.hi - kept - n
	w.at -= int64(n)
	w.fresh = n
	if _, err := w.r.ReadAt(w.buf[w.lo:w.lo+n], w.at); err != nil {
		return fmt.Errorf("read a transcript backwards: %w", err)
	}
	return nil
}

// lines yields the lines that begin in the fresh bytes; false is that nobody wants more.
func (w *backward) lines(yield func(Raw, error) bool) bool {
	// Looking forwards is many times faster than backwards.
	w.ends = w.ends[:0]
	for i := w.lo; i < w.lo+w.fresh; i++ {
		n := bytes.IndexByte(w.buf[i:w.lo+w.fresh], '\n')
		if n < 0 {
			break
		}
		i += n
		w.ends = append(w.ends, i)
	}
	for _, end := range slices.Backward(w.ends) {
		line := w.line(w.at+int64(end+1-w.lo), w.buf[end+1:w.hi])
		w.hi, w.end, w.drop = end, line.Offset-1, false
		// What follows the file's last line end is no line.
		if line.Offset < w.size && !yield(line, nil) {
			return false
		}
	}
	return true
}

// line is the one under way, which begins at offset; text is what is held of it.
func (w *backward) line(offset int64, text []byte) Raw {
	l := Raw{Offset: offset, Size: w.end - offset}
	if !w.drop && len(text) <= w.most {
		l.Text = text
	}
	return l
}

// Forward yields the lines of r, whose first byte stands at offset of the file. A last
// line without line end is not yielded: it is being written. A read that fails is
// yielded as an error, and ends the sequence.
func Forward(r io.Reader, offset int64) iter.Seq2[Raw, error] {
	return func(yield func(Raw, error) bool) {
		buf := make([]byte, 0, chunkBytes)
		drop := false
		for {
			if len(buf) == cap(buf) {
				buf = append(buf, 0)[:len(buf)]
			}
			n, err := r.Read(buf[len(buf):cap(buf)])
			buf = buf[:len(buf)+n]
			rest := buf
			for {
				i := bytes.IndexByte(rest, '\n')
				if i < 0 {
					break
				}
				if !drop && i <= MaxLineBytes && !yield(Raw{Offset: offset, Text: rest[:i]}, nil) {
					return
				}
				drop = false
				offset += int64(i) + 1
				rest = rest[i+1:]
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Raw{}, fmt.Errorf("read a transcript: %w", err))
				return
			}
			if len(rest) > MaxLineBytes {
				offset += int64(len(rest))
				rest, drop = rest[:0], true
			}
			buf = buf[:copy(buf, rest)]
		}
	}
}
