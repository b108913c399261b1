package sqlite

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// codecVersion is the first byte of every encoded commit.
const codecVersion = 1

// errCorrupt is what decoding answers to bytes that no encoder made.
var errCorrupt = errors.New("the stored record is damaged; restore a backup")

// version is one change of a commit together with where the path's version before
// it is kept: the links that make history readable without an index.
type version struct {
	memory.AppliedChange
	prevSeq int64 // 0 = none
	prevRev memory.Revision
}

// record is a commit as a row of commits keeps it. Project is not part of it.
type record struct {
	memory.Commit // its Changes are nil; see versions
	versions      []version
	request       *requestTag // nil if the commit had no request id
}

// commit returns the record as a commit that shares its contents.
func (r *record) commit() memory.Commit {
	c := r.Commit
	c.Changes = make([]memory.AppliedChange, len(r.versions))
	for i := range r.versions {
		c.Changes[i] = r.versions[i].AppliedChange
	}
	return c
}

// at returns the change of path, or nil.
func (r *record) at(path memory.Path) *version {
	for i := range r.versions {
		if r.versions[i].Path == path {
			return &r.versions[i]
		}
	}
	return nil
}

// content returns the texts of the record, one after the other.
func (r *record) content() []byte {
	if len(r.versions) == 1 {
		return r.versions[0].Content
	}
	var n int64
	for i := range r.versions {
		n += r.versions[i].Size
	}
	b := make([]byte, 0, n)
	for i := range r.versions {
		b = append(b, r.versions[i].Content...)
	}
	return b
}

// appendMeta encodes all of r but its revision and contents.
func appendMeta(b []byte, r *record) []byte {
	b = append(b, codecVersion)
	b = appendHex(b, string(r.ID))
	b = appendTime(b, r.Time)
	b = appendText(b, r.Author.Principal)
	b = appendText(b, r.Author.Machine)
	b = appendText(b, r.Author.Client)
	b = appendText(b, r.Author.Session)
	b = appendText(b, r.Message)
	b = binary.AppendUvarint(b, uint64(len(r.versions)))
	for i := range r.versions {
		v := &r.versions[i]
		b = append(b, byte(v.Kind))
		b = appendText(b, string(v.Path))
		b = appendHex(b, string(v.ETag))
		b = appendHex(b, string(v.PreviousETag))
		b = binary.AppendUvarint(b, uint64(v.Size))
		b = appendTime(b, v.ModTime)
		b = appendText(b, string(v.RenamedFrom))
		b = binary.AppendUvarint(b, uint64(v.prevSeq))
		b = binary.AppendUvarint(b, uint64(v.prevRev))
	}
	if r.request == nil {
		return append(b, 0)
	}
	b = append(b, 1)
	b = append(b, r.request.key[:]...)
	return append(b, r.request.digest[:]...)
}

// decodeMeta reads what appendMeta wrote. With content, the changes share it.
func decodeMeta(meta, content []byte, withContent bool) (*record, error) {
	d := decoder{b: meta}
	if d.byte() != codecVersion {
		return nil, errCorrupt
	}
	r := &record{}
	r.ID = memory.CommitID(d.hex())
	r.Time = d.time()
	r.Author = memory.Author{Principal: d.text(), Machine: d.text(), Client: d.text(), Session: d.text()}
	r.Message = d.text()
	n := d.count()
	r.versions = make([]version, n)
	for i := range r.versions {
		v := &r.versions[i]
		v.Kind = memory.ChangeKind(d.byte())
		v.Path = memory.Path(d.text())
		v.ETag = memory.ETag(d.hex())
		v.PreviousETag = memory.ETag(d.hex())
		v.Size = d.int()
		v.ModTime = d.time()
		v.RenamedFrom = memory.Path(d.text())
		v.prevSeq = d.int()
		v.prevRev = memory.Revision(d.int())
		if v.Kind < memory.Put || v.Kind > memory.Redact {
			d.bad = true
		}
		if withContent && v.ETag != "" {
			if v.Size > int64(len(content)) {
				return nil, errCorrupt
			}
			v.Content, content = content[:v.Size:v.Size], content[v.Size:]
			if v.Content == nil {
				v.Content = []byte{}
			}
		}
	}
	switch d.byte() {
	case 0:
	case 1:
		r.request = &requestTag{}
		copy(r.request.key[:], d.take(uint64(len(r.request.key))))
		copy(r.request.digest[:], d.take(uint64(len(r.request.digest))))
	default:
		d.bad = true
	}
	if d.bad || len(d.b) != 0 || withContent && len(content) != 0 {
		return nil, errCorrupt
	}
	return r, nil
}

// head is what a project's state keeps of one path: its newest version.
type head struct {
	seq     int64
	rev     memory.Revision
	size    int64
	sum     [32]byte // of a tombstone: the deleted text's
	deleted bool
}

func (h head) etag() memory.ETag { return memory.ETag(hex.EncodeToString(h.sum[:])) }

// newHead returns the head that change v of the commit rev, kept at seq, leaves.
func newHead(v *memory.AppliedChange, rev memory.Revision, seq int64) head {
	h := head{seq: seq, rev: rev, size: v.Size}
	etag := v.ETag
	if etag == "" {
		etag, h.deleted, h.size = v.PreviousETag, true, 0
	}
	// An etag that is not a SHA-256 cannot get here: commits hash their contents
	// and imports are checked.
	_, _ = hex.Decode(h.sum[:], []byte(etag))
	return h
}

func appendHead(b []byte, h head) []byte {
	var flags byte
	if h.deleted {
		flags = 1
	}
	b = append(b, codecVersion, flags)
	b = append(b, h.sum[:]...)
	b = binary.AppendUvarint(b, uint64(h.size))
	b = binary.AppendUvarint(b, uint64(h.rev))
	return binary.AppendUvarint(b, uint64(h.seq))
}

func decodeHead(b []byte) (head, error) {
	d := decoder{b: b}
	if d.byte() != codecVersion {
		return head{}, errCorrupt
	}
	h := head{deleted: d.byte() == 1}
	copy(h.sum[:], d.take(32))
	h.size, h.rev, h.seq = d.int(), memory.Revision(d.int()), d.int()
	if d.bad || len(d.b) != 0 {
		return head{}, errCorrupt
	}
	return h, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendHex packs lower-case hex into half its length, and keeps other text.
func appendHex(b []byte, s string) []byte {
	if len(s)%2 == 0 && isHex(s) {
		b = binary.AppendUvarint(b, uint64(len(s)/2)<<1|1)
		for i := 0; i < len(s); i += 2 {
			b = append(b, nibble(s[i])<<4|nibble(s[i+1]))
		}
		return b
	}
	return append(binary.AppendUvarint(b, uint64(len(s))<<1), s...)
}

func isHex(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func nibble(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c - 'a' + 10
}

// appendTime keeps any instant to the nanosecond, the zero one too.
func appendTime(b []byte, t time.Time) []byte {
	b = binary.AppendVarint(b, t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

// decoder reads from b; after the first impossible read it is bad and answers zeros.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n uint64) []byte {
	if d.bad || n > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) byte() byte {
	if b := d.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || d.bad {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v := d.uvarint()
	if v > 1<<62 {
		d.bad = true
		return 0
	}
	return int64(v)
}

// count reads how many changes follow; each takes at least nine bytes, so a count
// that does not fit the rest is damage and allocates nothing.
func (d *decoder) count() int {
	n := d.uvarint()
	if n > uint64(len(d.b))/9 {
		d.bad = true
		return 0
	}
	return int(n)
}

func (d *decoder) text() string { return string(d.take(d.uvarint())) }

func (d *decoder) hex() string {
	n := d.uvarint()
	if n&1 == 1 {
		return hex.EncodeToString(d.take(n >> 1))
	}
	return string(d.take(n >> 1))
}

func (d *decoder) time() time.Time {
	sec, n := binary.Varint(d.b)
	if n <= 0 || d.bad {
		d.bad = true
		return time.Time{}
	}
	d.b = d.b[n:]
	nsec := d.uvarint()
	if nsec > 999_999_999 {
		d.bad = true
		return time.Time{}
	}
	return time.Unix(sec, int64(nsec)).UTC()
}

func decodeTime(b []byte) time.Time {
	d := decoder{b: b}
	return d.time()
}
