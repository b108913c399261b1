package syncstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/memsvc/memsvc/internal/memory"
)

// Authors returns who put texts on the hub, by path, as far as the state of a link knows.
// texts are the etags of files in the workspace: of one that was edited since, the state
// knows no author.
//
// Hooks ask at every prompt, so this opens nothing for writing, keeps nothing of the state
// but what is asked for, and reads no texts. While a daemon writes it sees some whole
// earlier state; of a damaged one it takes what comes before the damage.
func Authors(stateDir, linkID string, texts map[memory.Path]memory.ETag) (map[memory.Path]string, error) {
	if !linkIDPattern.MatchString(linkID) {
		return nil, fmt.Errorf("read authors: %q is no link id", linkID)
	}
	f, err := osDisk{}.Open(filepath.Join(stateDir, linksDir, linkID, journalName), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read authors of link %s: %w", linkID, err)
	}
	defer func() { _ = f.Close() }() // only read
	found, err := authors(f, texts)
	if err != nil {
		return nil, fmt.Errorf("read authors of link %s: %w", linkID, err)
	}
	return found, nil
}

func authors(f diskFile, texts map[memory.Path]memory.ETag) (map[memory.Path]string, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	d, found := newDecoder(), map[memory.Path]string{}
	for at := int64(0); at < size; {
		h, meta, err := readMeta(f, at, size)
		if errors.Is(err, errBroken) || err == nil && !d.authors(meta, texts, found) {
			break // a record that is being written, or damage
		}
		if err != nil {
			return nil, err
		}
		at += h.size()
	}
	return found, nil
}

// authors takes from a record what it says of these texts into found.
func (d *decoder) authors(meta []byte, texts map[memory.Path]memory.ETag, found map[memory.Path]string) (ok bool) {
	d.b, d.bad = meta, false
	if d.uvarint() != codecVersion {
		return false
	}
	for n := d.count(2); n > 0 && !d.bad; n-- {
		d.skipETag()
		d.uvarint()
	}
	type hit struct {
		at    int // among the record's entries
		path  memory.Path
		local memory.ETag
	}
	var hits []hit
	for i, n := 0, d.count(4); i < n && !d.bad; i++ {
		name := d.bytes(d.uvarint())
		if _, asked := texts[memory.Path(name)]; asked {
			hits = append(hits, hit{i, memory.Path(name), d.entry().Local})
		} else {
			d.skipEntry()
		}
	}
	for n := d.count(1); n > 0 && !d.bad; n-- {
		delete(found, memory.Path(d.bytes(d.uvarint())))
	}
	if d.bad || len(hits) == 0 {
		return !d.bad
	}
	var c credits
	if json.Unmarshal(d.b, &c) != nil {
		return false
	}
	at := 0
	for _, h := range hits {
		for ; at < h.at; at++ {
			c.next()
		}
		author := c.next()
		at++
		delete(found, h.path)
		if author != "" && h.local == texts[h.path] {
			found[h.path] = author
		}
	}
	return true
}

func (d *decoder) skipETag() {
	switch d.byte() {
	case etagNone:
	case etagHash:
		d.bytes(32)
	case etagText:
		d.bytes(d.uvarint())
	default:
		d.bad = true
	}
}

func (d *decoder) skipEntry() {
	d.skipETag()
	same := d.byte()
	if same&1 == 0 {
		d.skipETag()
	}
	if same&2 == 0 {
		d.skipETag()
	}
	d.varint()
}
