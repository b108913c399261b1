package archive

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/memsvc/memsvc/internal/hub/store"
)

// writer writes the frames of an archive.
type writer struct {
	w   *bufio.Writer
	sum hash.Hash
	all io.Writer // w and sum
}

func newWriter(w io.Writer) (*writer, error) {
	a := &writer{w: bufio.NewWriterSize(w, 1<<16), sum: sha256.New()}
	a.all = io.MultiWriter(a.w, a.sum)
	_, err := io.WriteString(a.all, magic)
	return a, err
}

func (a *writer) write(f frame) error {
	doc, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if _, err := a.all.Write(binary.BigEndian.AppendUint32(nil, uint32(len(doc)))); err != nil {
		return err
	}
	_, err = a.all.Write(doc)
	return err
}

// close writes the trailer: a frame of length zero, and the digest of all before it.
func (a *writer) close() error {
	if _, err := a.all.Write([]byte{0, 0, 0, 0}); err != nil {
		return err
	}
	if _, err := a.w.Write(a.sum.Sum(nil)); err != nil {
		return err
	}
	return a.w.Flush()
}

// reader reads the frames of an archive.
type reader struct {
	r   *bufio.Reader
	sum hash.Hash
	buf bytes.Buffer
}

func newReader(r io.Reader) (*reader, error) {
	a := &reader{r: bufio.NewReaderSize(r, 1<<16), sum: sha256.New()}
	got := make([]byte, len(magic))
	if err := a.full(got); err != nil || string(got) != magic {
		return nil, errNotArchive(got, err)
	}
	return a, nil
}

// Beginnings of files that are taken for archives by mistake.
const (
	sqliteMagic = "SQLite format 3"
	gzipMagic   = "\x1f\x8b"
	zstdMagic   = "\x28\xb5\x2f\xfd"
	xzMagic     = "\xfd7zXZ"
)

// errNotArchive says that this is no archive, unless reading itself failed.
func errNotArchive(got []byte, err error) error {
	begins := func(m string) bool { return bytes.HasPrefix(got, []byte(m)) }
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return err
	}
	read := bytes.TrimRight(got, "\x00")
	switch {
	case begins(sqliteMagic):
		return store.Invalid("archive: this is a database, as memsvc backup writes it, and no archive; memsvc restore-backup takes it")
	case begins(gzipMagic), begins(zstdMagic), begins(xzMagic):
		return store.Invalid("archive: the file is compressed; unpack it first")
	case err != nil && bytes.HasPrefix([]byte(magic), read): // the beginning of one, or empty
		return damaged("it ends too early")
	}
	return store.Invalid("archive: the file does not begin as one; name a file that memsvc export wrote")
}

// full fills b and counts it into the digest.
func (a *reader) full(b []byte) error {
	_, err := io.ReadFull(a.r, b)
	a.sum.Write(b)
	return err
}

// read returns the next frame, or io.EOF after the last one, when the digest is
// right and nothing follows it.
func (a *reader) read() (frame, error) {
	var n [4]byte
	if err := a.full(n[:]); err != nil {
		return frame{}, cut(err)
	}
	size := binary.BigEndian.Uint32(n[:])
	if size == 0 {
		return frame{}, a.trailer()
	}
	if size > maxFrameBytes {
		return frame{}, damaged("a part of %d bytes, at most %d are written", size, maxFrameBytes)
	}
	// Grown as bytes arrive: a length alone allocates nothing.
	a.buf.Reset()
	if _, err := io.CopyN(&a.buf, a.r, int64(size)); err != nil {
		return frame{}, cut(err)
	}
	a.sum.Write(a.buf.Bytes())
	var f frame
	dec := json.NewDecoder(bytes.NewReader(a.buf.Bytes()))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return frame{}, damaged("a part cannot be read")
	}
	return f, nil
}

func (a *reader) trailer() error {
	want := a.sum.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(a.r, got); err != nil {
		return cut(err)
	}
	if !bytes.Equal(got, want) {
		return damaged("the digest does not match")
	}
	if _, err := a.r.ReadByte(); !errors.Is(err, io.EOF) {
		return damaged("something follows the end")
	}
	return io.EOF
}

// cut turns an early end into an error that says so.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged("it ends too early")
	}
	return fmt.Errorf("archive: %w", err)
}
