package syncstate

import (
	"errors"
	"fmt"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// span is where a text lies in the journal.
type span struct{ at, size int64 }

// journal is what a journal file holds.
type journal struct {
	state syncer.LinkState
	texts map[memory.ETag]span
	base  int64 // length of the snapshot
	size  int64 // length of all whole records
	cut   int64 // bytes behind them that were promised to nobody
}

// damage says that something which was promised cannot be read.
type damage struct {
	at  int64
	why string
}

func (d *damage) Error() string { return fmt.Sprintf("damaged at byte %d: %s", d.at, d.why) }

// replay reads a journal. The error is a *damage, or the disk's.
func replay(f diskFile) (*journal, error) {
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	j := &journal{state: syncer.NewLinkState(), texts: map[memory.ETag]span{}}
	d := newDecoder()
	for j.size < size {
		h, meta, err := readRecord(f, j.size, size)
		if err == nil && (h.kind == kindSnapshot) != (j.size == 0) {
			err = errBroken
		}
		if errors.Is(err, errBroken) {
			if j.size == 0 {
				return nil, &damage{0, "the snapshot is not whole"}
			}
			promised, err := promisedBehind(f, j.size, size)
			if err != nil {
				return nil, err
			}
			if promised {
				return nil, &damage{j.size, "a record is not whole, and later ones rely on it"}
			}
			j.cut = size - j.size
			break
		}
		if err != nil {
			return nil, err
		}
		if err := j.apply(d, h, meta); err != nil {
			return nil, err
		}
	}
	if j.size == 0 {
		return nil, &damage{0, "the file is empty"}
	}
	return j, nil
}

// apply takes in one record.
func (j *journal) apply(d *decoder, h header, meta []byte) error {
	u, fresh, texts, err := d.decode(meta)
	if err != nil {
		return &damage{j.size, err.Error()}
	}
	at := j.size + headerBytes + h.metaLen
	end := j.size + h.size()
	for _, t := range texts {
		if t.size > end-at {
			return &damage{j.size, "its texts are longer than the record"}
		}
		j.texts[t.etag] = span{at, t.size}
		at += t.size
	}
	if h.kind == kindSnapshot {
		j.base = end
	}
	j.state.Apply(u)
	j.state.Fresh = fresh
	j.size = end
	return nil
}

// promisedBehind reports whether a whole record behind at was written when at was
// known to be durable. Then the record at at was promised to somebody and is damaged;
// else it is the torn tail of writes that nobody was told of.
func promisedBehind(f diskFile, at, size int64) (bool, error) {
	for next := nextMagic(f, at, size); next >= 0; next = nextMagic(f, next+1, size) {
		h, _, err := readRecord(f, next, size)
		if err != nil && !errors.Is(err, errBroken) {
			return false, err
		}
		if err == nil && h.durable > at {
			return true, nil
		}
	}
	return false, nil
}
