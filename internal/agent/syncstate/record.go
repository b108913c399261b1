package syncstate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A record is a header, meta (what changed, or the whole state, see codec.go) and
// texts, one after the other without space between. All numbers are little-endian.
const (
	recordMagic  = 0x314a534d // "MSJ1"
	headerBytes  = 40
	maxMetaBytes = 256 << 20
	maxTextBytes = 1 << 40
)

// The kinds of record.
const (
	kindSnapshot = 1 // the whole state; its texts carry no checksum but their etags
	kindUpdate   = 2
)

// header is the fixed part of a record.
type header struct {
	kind    uint8
	metaLen int64
	textLen int64
	metaCRC uint32
	textCRC uint32 // of an update only
	// durable is how much of the file was fsynced when the record was written: what
	// lies below it was promised to somebody.
	durable int64
}

// size is the length of the whole record.
func (h header) size() int64 { return headerBytes + h.metaLen + h.textLen }

func (h header) append(b []byte) []byte {
	at := len(b)
	b = binary.LittleEndian.AppendUint32(b, recordMagic)
	b = append(b, h.kind, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.metaLen))
	b = binary.LittleEndian.AppendUint64(b, uint64(h.textLen))
	b = binary.LittleEndian.AppendUint32(b, h.metaCRC)
	b = binary.LittleEndian.AppendUint32(b, h.textCRC)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.durable))
	return binary.LittleEndian.AppendUint32(b, checksum(b[at:]))
}

// errBroken means that what was read is no whole record.
var errBroken = errors.New("broken record")

// parseHeader reads a header; b has headerBytes bytes.
func parseHeader(b []byte) (header, error) {
	u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(b[i:]) }
	u64 := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
	if u32(0) != recordMagic || u32(headerBytes-4) != checksum(b[:headerBytes-4]) {
		return header{}, errBroken
	}
	h := header{
		kind: b[4], metaLen: int64(u32(8)), textLen: int64(u64(12)),
		metaCRC: u32(20), textCRC: u32(24), durable: int64(u64(28)),
	}
	if h.kind != kindSnapshot && h.kind != kindUpdate || h.metaLen > maxMetaBytes || h.textLen < 0 || h.textLen > maxTextBytes || h.durable < 0 {
		return header{}, errBroken
	}
	return h, nil
}

// castagnoli has hardware support on the machines we run on.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli()) }

// readRecord reads the record at offset at of a file of the given size. The texts are
// checked but not kept. The error is errBroken unless the disk failed.
func readRecord(f io.ReaderAt, at, size int64) (header, []byte, error) {
	h, meta, err := readMeta(f, at, size)
	if err != nil {
		return header{}, nil, err
	}
	if h.kind == kindUpdate && h.textLen > 0 {
		sum := crc32.New(castagnoli())
		if _, err := io.Copy(sum, io.NewSectionReader(f, at+headerBytes+h.metaLen, h.textLen)); err != nil {
			return header{}, nil, readError(err)
		}
		if sum.Sum32() != h.textCRC {
			return header{}, nil, errBroken
		}
	}
	return h, meta, nil
}

// readMeta is readRecord without a look at the texts.
func readMeta(f io.ReaderAt, at, size int64) (header, []byte, error) {
	if size-at < headerBytes {
		return header{}, nil, errBroken
	}
	var hb [headerBytes]byte
	if _, err := f.ReadAt(hb[:], at); err != nil {
		return header{}, nil, readError(err)
	}
	h, err := parseHeader(hb[:])
	if err != nil {
		return header{}, nil, err
	}
	if h.size() > size-at {
		return header{}, nil, errBroken
	}
	meta := make([]byte, h.metaLen)
	if _, err := f.ReadAt(meta, at+headerBytes); err != nil {
		return header{}, nil, readError(err)
	}
	if checksum(meta) != h.metaCRC {
		return header{}, nil, errBroken
	}
	return h, meta, nil
}

func readError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errBroken // the file was cut while it was read
	}
	return fmt.Errorf("read journal: %w", err)
}
