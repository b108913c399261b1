package syncstate

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// The meta of a record is a version, the list of its texts, the baseline entries in
// binary (they are nearly all of a state, and a command must load it in a blink) and
// the rest as JSON.

const codecVersion = 1

// textRef is one text of a record.
type textRef struct {
	etag memory.ETag
	size int64
}

// rest is what of an update or a snapshot goes as JSON. Its names are on disk:
// changing one needs a new codecVersion and a reader for the old.
type rest struct {
	Fresh         bool
	LinkID        string            `json:",omitempty"`
	Cursor        *memory.Cursor    `json:",omitempty"`
	PutConflicts  []syncer.Conflict `json:",omitempty"`
	DropConflicts []string          `json:",omitempty"`
	PutResolved   []syncer.Resolved `json:",omitempty"`
	DropResolved  []string          `json:",omitempty"`
	PutHeld       []syncer.Held     `json:",omitempty"`
	DropHeld      []memory.Path     `json:",omitempty"`
	PutIntents    []syncer.Intent   `json:",omitempty"`
	DropIntents   []memory.Path     `json:",omitempty"`
	PutAhead      []syncer.Ahead    `json:",omitempty"`
	DropAhead     []memory.Path     `json:",omitempty"`
	SetHalt       *syncer.Halt      `json:",omitempty"`
	ClearHalt     bool              `json:",omitempty"`
	PutTrash      []syncer.Trashed  `json:",omitempty"`
	DropTrash     []string          `json:",omitempty"`
	AddNotes      []syncer.Note     `json:",omitempty"`
	DropLines     []memory.Path     `json:",omitempty"`
	SetRecovery   *syncer.Recovery  `json:",omitempty"`
	ClearRecovery bool              `json:",omitempty"`
	SetRedacting  *bool             `json:",omitempty"`
	KeepMarks     *memory.Revision  `json:",omitempty"`
	PutMarks      []syncer.Mark     `json:",omitempty"`
	credits
}

// credits are the authors of the record's baseline entries. They came later than the
// entries and decide nothing, so they lie beside them, where a program that does not know
// them passes them over.
type credits struct {
	Authors []string `json:",omitempty"` // each name once
	// AuthorOf has a uvarint for each entry, in the record's order: 0 is none, n is
	// Authors[n-1].
	AuthorOf []byte `json:",omitempty"`
}

// add notes the author of the next entry; at is where each name is in Authors, plus one.
func (c *credits) add(author string, at map[string]uint64) {
	n := at[author]
	if n == 0 && author != "" {
		c.Authors = append(c.Authors, author)
		n = uint64(len(c.Authors))
		at[author] = n
	}
	c.AuthorOf = binary.AppendUvarint(c.AuthorOf, n)
}

// next takes the author of the next entry; "" is none, or what cannot be understood.
func (c *credits) next() string {
	n, size := binary.Uvarint(c.AuthorOf)
	if size <= 0 {
		return ""
	}
	c.AuthorOf = c.AuthorOf[size:]
	if n == 0 || n > uint64(len(c.Authors)) {
		return ""
	}
	return c.Authors[n-1]
}

// encode returns the meta of an update. fresh is for snapshots: it says that the
// state in them was never really saved.
func encode(u syncer.Update, fresh bool, texts []textRef) ([]byte, error) {
	b := binary.AppendUvarint(make([]byte, 0, 512), codecVersion)
	b = binary.AppendUvarint(b, uint64(len(texts)))
	for _, t := range texts {
		b = appendETag(b, t.etag)
		b = binary.AppendUvarint(b, uint64(t.size))
	}
	b = binary.AppendUvarint(b, uint64(len(u.PutBaseline)))
	var by credits
	at := map[string]uint64{}
	for p, e := range u.PutBaseline {
		by.add(e.Author, at)
		b = appendString(b, string(p))
		b = appendETag(b, e.Text)
		var same byte
		if e.Hub == e.Text {
			same |= 1
		}
		if e.Local == e.Text {
			same |= 2
		}
		b = append(b, same)
		if same&1 == 0 {
			b = appendETag(b, e.Hub)
		}
		if same&2 == 0 {
			b = appendETag(b, e.Local)
		}
		b = binary.AppendVarint(b, int64(e.HubRevision))
	}
	b = binary.AppendUvarint(b, uint64(len(u.DropBaseline)))
	for _, p := range u.DropBaseline {
		b = appendString(b, string(p))
	}
	if len(by.Authors) == 0 {
		by = credits{}
	}
	js, err := json.Marshal(rest{
		Fresh: fresh, LinkID: u.LinkID, Cursor: u.Cursor,
		PutConflicts: u.PutConflicts, DropConflicts: u.DropConflicts,
		PutResolved: u.PutResolved, DropResolved: u.DropResolved,
		PutHeld: u.PutHeld, DropHeld: u.DropHeld,
		PutIntents: u.PutIntents, DropIntents: u.DropIntents,
		PutAhead: u.PutAhead, DropAhead: u.DropAhead,
		SetHalt: u.SetHalt, ClearHalt: u.ClearHalt,
		PutTrash: u.PutTrash, DropTrash: u.DropTrash,
		AddNotes: u.AddNotes, DropLines: u.DropLines,
		SetRecovery: u.SetRecovery, ClearRecovery: u.ClearRecovery, SetRedacting: u.SetRedacting,
		KeepMarks: u.KeepMarks, PutMarks: u.PutMarks,
		credits: by,
	})
	if err != nil {
		return nil, err
	}
	b = append(b, js...)
	if len(b) > maxMetaBytes {
		return nil, errors.New("the update is too large")
	}
	return b, nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// The ways an etag is written.
const (
	etagNone = 0
	etagHash = 1 // 32 bytes
	etagText = 2 // anything else, as a string
)

func appendETag(b []byte, e memory.ETag) []byte {
	if e == "" {
		return append(b, etagNone)
	}
	var raw [32]byte
	if n, err := hex.Decode(raw[:], []byte(e)[:min(len(e), 64)]); err == nil && n == 32 && len(e) == 64 && hex.EncodeToString(raw[:]) == string(e) {
		return append(append(b, etagHash), raw[:]...)
	}
	return appendString(append(b, etagText), string(e))
}

// decoder reads metas. Equal etags become one string, since a baseline names each
// text several times.
type decoder struct {
	b    []byte
	bad  bool
	seen map[[32]byte]memory.ETag
	put  []memory.Path // of the record's baseline entries, in its order
}

func newDecoder() *decoder { return &decoder{seen: map[[32]byte]memory.ETag{}} }

var errMeta = errors.New("a record cannot be understood")

// decode is the inverse of encode.
func (d *decoder) decode(meta []byte) (u syncer.Update, fresh bool, texts []textRef, err error) {
	d.b, d.bad, d.put = meta, false, d.put[:0]
	if v := d.uvarint(); v != codecVersion || d.bad {
		return u, false, nil, fmt.Errorf("%w: it has version %d, this program knows %d", errMeta, v, codecVersion)
	}
	for n := d.count(2); n > 0 && !d.bad; n-- {
		texts = append(texts, textRef{d.etag(), int64(d.uvarint())})
	}
	if n := d.count(4); n > 0 {
		u.PutBaseline = make(map[memory.Path]syncer.BaseEntry, n)
		for ; n > 0 && !d.bad; n-- {
			p := memory.Path(d.string())
			u.PutBaseline[p] = d.entry()
			d.put = append(d.put, p)
		}
	}
	for n := d.count(1); n > 0 && !d.bad; n-- {
		u.DropBaseline = append(u.DropBaseline, memory.Path(d.string()))
	}
	if d.bad {
		return syncer.Update{}, false, nil, errMeta
	}
	for _, t := range texts {
		if t.size < 0 || t.size > maxTextBytes {
			return syncer.Update{}, false, nil, errMeta
		}
	}
	var r rest
	if err := json.Unmarshal(d.b, &r); err != nil {
		return syncer.Update{}, false, nil, errMeta
	}
	for _, p := range d.put {
		if author := r.next(); author != "" {
			e := u.PutBaseline[p]
			e.Author = author
			u.PutBaseline[p] = e
		}
	}
	u.LinkID, u.Cursor = r.LinkID, r.Cursor
	u.PutConflicts, u.DropConflicts = r.PutConflicts, r.DropConflicts
	u.PutResolved, u.DropResolved = r.PutResolved, r.DropResolved
	u.PutHeld, u.DropHeld = r.PutHeld, r.DropHeld
	u.PutIntents, u.DropIntents = r.PutIntents, r.DropIntents
	u.PutAhead, u.DropAhead = r.PutAhead, r.DropAhead
	u.SetHalt, u.ClearHalt = r.SetHalt, r.ClearHalt
	u.PutTrash, u.DropTrash = r.PutTrash, r.DropTrash
	u.AddNotes, u.DropLines = r.AddNotes, r.DropLines
	u.SetRecovery, u.ClearRecovery, u.SetRedacting = r.SetRecovery, r.ClearRecovery, r.SetRedacting
	u.KeepMarks, u.PutMarks = r.KeepMarks, r.PutMarks
	return u, r.Fresh, texts, nil
}

// entry reads a baseline entry, less its author.
func (d *decoder) entry() syncer.BaseEntry {
	e := syncer.BaseEntry{Text: d.etag()}
	e.Hub, e.Local = e.Text, e.Text
	same := d.byte()
	if same&1 == 0 {
		e.Hub = d.etag()
	}
	if same&2 == 0 {
		e.Local = d.etag()
	}
	e.HubRevision = memory.Revision(d.varint())
	return e
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count reads a number of things of at least least bytes each, so that a damaged
// number cannot ask for more memory than the record has.
func (d *decoder) count(least int) int {
	n := d.uvarint()
	if n > uint64(len(d.b)/least) {
		d.bad = true
		return 0
	}
	return int(n)
}

func (d *decoder) bytes(n uint64) []byte {
	if d.bad || n > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) string() string { return string(d.bytes(d.uvarint())) }

func (d *decoder) etag() memory.ETag {
	switch d.byte() {
	case etagNone:
		return ""
	case etagHash:
		b := d.bytes(32)
		if b == nil {
			return ""
		}
		raw := [32]byte(b)
		e, ok := d.seen[raw]
		if !ok {
			e = memory.ETag(hex.EncodeToString(b))
			d.seen[raw] = e
		}
		return e
	case etagText:
		return memory.ETag(d.string())
	}
	d.bad = true
	return ""
}

// snapshotOf returns the update that makes a fresh state into s. Its order is fixed,
// so that equal states are equal bytes but for the baseline's order.
func snapshotOf(s *syncer.LinkState) syncer.Update {
	u := syncer.Update{
		LinkID: s.LinkID, Cursor: &s.Cursor, PutBaseline: s.Baseline,
		SetHalt: s.Halt, AddNotes: s.Notes, SetRecovery: s.Recovery, PutMarks: s.Marks,
	}
	if s.Redacting {
		u.SetRedacting = &s.Redacting
	}
	for _, c := range s.Conflicts {
		u.PutConflicts = append(u.PutConflicts, c)
	}
	for _, r := range s.Resolved {
		u.PutResolved = append(u.PutResolved, r)
	}
	for _, h := range s.Held {
		u.PutHeld = append(u.PutHeld, h)
	}
	for _, i := range s.Intents {
		u.PutIntents = append(u.PutIntents, i)
	}
	for _, a := range s.Ahead {
		u.PutAhead = append(u.PutAhead, a)
	}
	for _, t := range s.Trash {
		u.PutTrash = append(u.PutTrash, t)
	}
	slices.SortFunc(u.PutConflicts, func(a, b syncer.Conflict) int { return compare(a.ID, b.ID) })
	slices.SortFunc(u.PutResolved, func(a, b syncer.Resolved) int { return compare(a.ID, b.ID) })
	slices.SortFunc(u.PutHeld, func(a, b syncer.Held) int { return compare(a.Path, b.Path) })
	slices.SortFunc(u.PutIntents, func(a, b syncer.Intent) int { return compare(a.Path, b.Path) })
	slices.SortFunc(u.PutAhead, func(a, b syncer.Ahead) int { return compare(a.Path, b.Path) })
	slices.SortFunc(u.PutTrash, func(a, b syncer.Trashed) int { return compare(a.ID, b.ID) })
	return u
}

func compare[S ~string](a, b S) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
