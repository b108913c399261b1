package syncstate

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// salvage looks through a damaged journal for what exists nowhere else: the texts of
// conflicts and of the trash, which prove themselves by their etags, and the notes.
// Nothing that decides about files is taken; the state stays Fresh. A conflict that was
// resolved may come up again, which is better than one whose text is gone.
func salvage(f diskFile) *journal {
	j := &journal{state: syncer.NewLinkState(), texts: map[memory.ETag]span{}}
	size, err := f.Size()
	if err != nil {
		return j
	}
	all := wholeRecords(f, size)
	whole := func(e memory.ETag) bool {
		at, ok := all.texts[e]
		if !ok {
			return false
		}
		if _, err := readText(f, e, at); err != nil {
			return false
		}
		j.texts[e] = at
		return true
	}
	var u syncer.Update
	for _, c := range all.state.Conflicts {
		if whole(c.Local) {
			whole(c.Hub)
			whole(c.Base)
			u.PutConflicts = append(u.PutConflicts, c)
		}
	}
	for _, t := range all.state.Trash {
		if whole(t.ETag) {
			u.PutTrash = append(u.PutTrash, t)
		}
	}
	u.AddNotes = all.state.Notes
	j.state.Apply(u)
	j.state.Fresh = true
	return j
}

// wholeRecords takes in what of a damaged journal is whole.
func wholeRecords(f diskFile, size int64) *journal {
	all := &journal{state: syncer.NewLinkState(), texts: map[memory.ETag]span{}}
	d := newDecoder()
	for at := int64(0); at < size; {
		h, meta, err := readRecord(f, at, size)
		if err == nil {
			all.size = at
			if all.apply(d, h, meta) == nil {
				at += h.size()
				continue
			}
		}
		if at = nextMagic(f, at+1, size); at < 0 {
			break
		}
	}
	return all
}

// eachText calls look with every text that can be read in a damaged journal.
func eachText(f diskFile, look func(text []byte) error) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	for e, at := range wholeRecords(f, size).texts {
		text, err := readText(f, e, at)
		if errors.Is(err, errBroken) {
			continue
		}
		if err != nil {
			return err
		}
		if err := look(text); err != nil {
			return err
		}
	}
	return nil
}

// nextMagic returns the first offset from at on where a record may begin, or -1.
func nextMagic(f diskFile, at, size int64) int64 {
	magic := binary.LittleEndian.AppendUint32(nil, recordMagic)
	buf := make([]byte, 4<<10) // small: texts may be full of what looks like a record
	for size-at >= 4 {
		n := min(int64(len(buf)), size-at)
		if _, err := f.ReadAt(buf[:n], at); err != nil {
			return -1
		}
		if i := bytes.Index(buf[:n], magic); i >= 0 {
			return at + int64(i)
		}
		at += n - 3
	}
	return -1
}
