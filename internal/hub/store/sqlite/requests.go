package sqlite

import (
	"bytes"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"slices"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Request ids cost no row of their own as long as a commit is recent: the commit's
// row carries the id, and the project's state knows the rows. The table of requests
// takes what does not fit there: older ones, moved in bulk and sorted, so that many
// share a page; results without a commit; and results whose commit was compacted.

const (
	// maxRecent bounds the request ids that a project's state knows, and so the rows
	// that are read to load it.
	maxRecent = 1024
	// day is the width of a bucket of the table of requests, in seconds.
	day = int64(memory.RequestIDLifetime / time.Second)
	// recentAge is how far before the head's time loading looks for request ids:
	// their lifetime, and an hour for a clock that was set back.
	recentAge = memory.RequestIDLifetime + time.Hour
)

// requestTag is a request id in the row of the commit that it made.
type requestTag struct {
	key    [16]byte
	digest [sha256.Size]byte
}

// recent is a request id that the state knows: where its commit is.
type recent struct {
	seq int64
	rev memory.Revision
	at  time.Time
}

// remembered is what is kept of a request id in the table of requests.
type remembered struct {
	digest  [sha256.Size]byte
	at      time.Time
	created bool
	rev     memory.Revision
	id      memory.CommitID
	seq     int64   // of the commit's row; 0 when nothing was ever committed
	inRow   bool    // digest and id are in the commit's row only
	commit  *record // once the row is compacted
}

// requestKey is where a request id is kept; principals do not share ids.
func requestKey(req *store.Prepared) (key [16]byte) {
	if req.RequestID == "" {
		return key
	}
	h := sha256.New()
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(req.Author.Principal)))
	h.Write(n[:])
	h.Write([]byte(req.Author.Principal))
	h.Write([]byte(req.RequestID))
	copy(key[:], h.Sum(nil))
	return key
}

// firstRequest returns what is remembered of the request id, or nil.
func (t *transaction) firstRequest(o *pending, req *store.Prepared, key [16]byte) (*remembered, error) {
	r, ok := o.recent[key]
	if !ok {
		r, ok = o.p.recent[key]
	}
	if ok && req.Now.Sub(r.at) < memory.RequestIDLifetime {
		return t.inRow(o.p, &remembered{seq: r.seq, at: r.at})
	}
	if !o.p.spilled && !o.spilled {
		return nil, nil
	}
	// Days around now are looked at, so that a clock that was set back finds it too.
	var first *remembered
	today := req.Now.Unix() / day
	err := t.c.query(stRequest, func(v []driver.Value) error {
		r, err := decodeRequest(blob(v[0]))
		if err != nil {
			return err
		}
		if req.Now.Sub(r.at) < memory.RequestIDLifetime && (first == nil || r.at.After(first.at)) {
			first = r
		}
		return nil
	}, today, today-1, today+1, o.p.id, key[:])
	if err != nil || first == nil || !first.inRow {
		return first, err
	}
	return t.inRow(o.p, first)
}

// inRow completes r from the row of its commit.
func (t *transaction) inRow(p *project, r *remembered) (*remembered, error) {
	row, err := readRow(t.c, p, r.seq, false)
	if err != nil {
		return nil, err
	}
	if row == nil || row.request == nil {
		return nil, corrupt(p, r.seq)
	}
	return &remembered{digest: row.request.digest, at: r.at, created: true, rev: row.Revision, id: row.ID, seq: r.seq}, nil
}

// rememberUnchanged keeps the result of a request that made no commit: the head.
func (t *transaction) rememberUnchanged(o *pending, req *store.Prepared, key [16]byte) error {
	t.wrote = true
	if err := t.markSpilled(o); err != nil {
		return err
	}
	return t.putRequest(o.p, key, &remembered{digest: req.Digest, at: req.Now, rev: o.rev, id: o.commit, seq: o.seq})
}

// markSpilled notes that the table holds something of the project. Without the
// note, commits need not look there.
func (t *transaction) markSpilled(o *pending) error {
	if o.p.spilled || o.spilled {
		return nil
	}
	o.spilled = true
	return t.c.exec(stSetLookup, o.p.id)
}

// putRequest writes a row of requests, and drops days that are over.
func (t *transaction) putRequest(p *project, key [16]byte, r *remembered) error {
	today := r.at.Unix() / day
	if before := today - 1; before > t.w.oldDay {
		if err := t.c.exec(stDropRequests, before); err != nil {
			return err
		}
		t.after = append(t.after, func() { t.w.oldDay = max(t.w.oldDay, before) })
	}
	return t.c.exec(stPutRequest, today, p.id, key[:], appendRequest(nil, r))
}

// spill moves what the state knows of request ids to the table, if it is too much.
// It runs in the transaction after the one that made it so.
func (t *transaction) spill(o *pending, now time.Time) error {
	p := o.p
	if len(p.recent) < maxRecent {
		return nil
	}
	t.wrote = true
	if err := t.markSpilled(o); err != nil {
		return err
	}
	keys := make([][16]byte, 0, len(p.recent))
	for k, r := range p.recent {
		if now.Sub(r.at) < memory.RequestIDLifetime {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	for _, k := range keys {
		r := p.recent[k]
		if err := t.putRequest(p, k, &remembered{at: r.at, rev: r.rev, seq: r.seq, inRow: true, created: true}); err != nil {
			return err
		}
	}
	// All of p.recent is at or below the durable head; what this transaction adds is
	// in o.recent, and above it.
	t.after = append(t.after, func() { p.recent, o.recent = o.recent, nil })
	return t.c.exec(stSetSpilled, int64(p.rev), p.id)
}

// keepResults gives the remembered results whose commit is hidden by compaction a
// copy of it, so that a late retry is still answered with the first result.
func (t *transaction) keepResults(o *pending, hidden map[memory.Revision]*record) error {
	var moved [][16]byte
	if err := t.markSpilled(o); err != nil {
		return err
	}
	for k, r := range o.p.recent {
		row := hidden[r.rev]
		if row == nil {
			continue
		}
		moved = append(moved, k)
		err := t.putRequest(o.p, k, &remembered{digest: row.request.digest, at: r.at, created: true,
			rev: r.rev, id: row.ID, seq: r.seq, commit: row})
		if err != nil {
			return err
		}
	}
	if len(moved) > 0 {
		t.after = append(t.after, func() {
			for _, k := range moved {
				delete(o.p.recent, k)
			}
		})
	}
	return t.eachRequest(o.p, func(r *remembered) bool {
		row := hidden[r.rev]
		if r.commit != nil || row == nil {
			return false
		}
		if r.inRow {
			r.digest, r.id, r.inRow = row.request.digest, row.ID, false
		}
		r.commit = row
		return true
	})
}

// eachRequest calls f with everything that the table remembers of p's request ids,
// and keeps what f changed.
func (t *transaction) eachRequest(p *project, f func(r *remembered) (changed bool)) error {
	var from, to int64
	err := t.c.query(stRequestDays, func(v []driver.Value) error {
		from, to = v[0].(int64), v[1].(int64)
		return nil
	})
	if err != nil {
		return err
	}
	for day := from; day <= to; {
		type changed struct{ key, entry []byte }
		var todo []changed
		err := t.c.query(stRequestsOfDay, func(v []driver.Value) error {
			r, err := decodeRequest(blob(v[1]))
			if err != nil {
				return err
			}
			if f(r) {
				todo = append(todo, changed{blob(v[0]), appendRequest(nil, r)})
			}
			return nil
		}, day, p.id)
		if err != nil {
			return err
		}
		for _, c := range todo {
			if err := t.c.exec(stPutRequest, day, p.id, c.key, c.entry); err != nil {
				return err
			}
		}
		next := to + 1 // days without requests are skipped, however long ago the first was
		err = t.c.query(stNextRequestDay, func(v []driver.Value) error {
			next = v[0].(int64)
			return nil
		}, day)
		if err != nil {
			return err
		}
		day = next
	}
	return nil
}

// loadRecent reads the request ids of p's recent commits, those above the revision
// through which they were moved to the table.
func loadRecent(c *conn, p *project, places []place, through memory.Revision) error {
	var newest time.Time
	return eachDown(c, p, places, span{max(p.oldest, through+1), p.rev}, func(v []driver.Value) error {
		r, err := decodeMeta(blob(v[2]), nil, false)
		if err != nil {
			return err
		}
		if newest.IsZero() {
			newest = r.Time
		}
		if newest.Sub(r.Time) > recentAge {
			return errStop
		}
		if r.request != nil {
			ref := recent{seq: v[0].(int64), rev: memory.Revision(v[1].(int64)), at: r.Time}
			if have, ok := p.recent[r.request.key]; !ok || ref.rev > have.rev {
				p.recent[r.request.key] = ref
			}
		}
		return nil
	})
}

// Flags of an encoded remembered.
const (
	flagCreated = 1 << iota
	flagCommit
	flagInRow
)

func appendRequest(b []byte, r *remembered) []byte {
	var flags byte
	if r.created {
		flags |= flagCreated
	}
	if r.commit != nil {
		flags |= flagCommit
	}
	if r.inRow {
		flags |= flagInRow
	}
	b = append(b, codecVersion, flags)
	b = appendTime(b, r.at)
	b = binary.AppendUvarint(b, uint64(r.rev))
	b = binary.AppendUvarint(b, uint64(r.seq))
	if !r.inRow {
		b = append(b, r.digest[:]...)
		b = appendHex(b, string(r.id))
	}
	if r.commit != nil {
		b = appendMeta(b, r.commit)
	}
	return b
}

func decodeRequest(b []byte) (*remembered, error) {
	d := decoder{b: b}
	if d.byte() != codecVersion {
		return nil, errCorrupt
	}
	flags := d.byte()
	r := &remembered{created: flags&flagCreated != 0, inRow: flags&flagInRow != 0}
	r.at = d.time()
	r.rev = memory.Revision(d.int())
	r.seq = d.int()
	if !r.inRow {
		copy(r.digest[:], d.take(sha256.Size))
		r.id = memory.CommitID(d.hex())
	}
	if d.bad || flags > flagCreated|flagCommit|flagInRow || flags&flagCommit == 0 && len(d.b) > 0 {
		return nil, errCorrupt
	}
	if flags&flagCommit != 0 {
		var err error
		if r.commit, err = decodeMeta(d.b, nil, false); err != nil {
			return nil, err
		}
	}
	return r, nil
}
