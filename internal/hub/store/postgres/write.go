package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/memsvc/memsvc/internal/memory"
)

const (
	sqlPutCommits = `INSERT INTO memsvc.commits(project, rev, id, time, time_ns, bytes, principal, machine, client, session, message)
SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::timestamptz[], $5::smallint[], $6::bigint[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[])`

	sqlPutVersions = `INSERT INTO memsvc.versions(project, rev, n, path, kind, etag, prev_etag, size, mod, mod_ns, renamed_from, content)
SELECT $1, * FROM unnest($2::bigint[], $3::int[], $4::text[], $5::smallint[], $6::bytea[], $7::bytea[], $8::bigint[], $9::timestamptz[], $10::smallint[], $11::text[], $12::bytea[])`

	sqlPutHeads = `INSERT INTO memsvc.heads(project, path, rev, etag, size, deleted)
SELECT $1, * FROM unnest($2::text[], $3::bigint[], $4::bytea[], $5::bigint[], $6::boolean[])
ON CONFLICT(project, path) DO UPDATE SET rev=excluded.rev, etag=excluded.etag, size=excluded.size, deleted=excluded.deleted`

	sqlPutProject = `UPDATE memsvc.projects SET head=$2, head_id=$3, oldest=$4, files=$5, bytes=$6 WHERE id=$1`

	sqlPutRequests = `INSERT INTO memsvc.requests(project, key, digest, at, at_ns, created, rev, id)
SELECT $1, * FROM unnest($2::bytea[], $3::bytea[], $4::timestamptz[], $5::smallint[], $6::boolean[], $7::bigint[], $8::text[])
ON CONFLICT(project, key) DO UPDATE SET digest=excluded.digest, at=excluded.at, at_ns=excluded.at_ns, created=excluded.created,
	rev=excluded.rev, id=excluded.id, result=NULL`
)

// stamp splits a time into what timestamptz holds and the nanoseconds below.
func stamp(t time.Time) (time.Time, int16) {
	t = t.UTC()
	ns := t.Nanosecond() % 1000
	return t.Add(-time.Duration(ns)), int16(ns)
}

func unstamp(t time.Time, ns int16) time.Time { return t.UTC().Add(time.Duration(ns)) }

// stamps is a column of times.
type stamps struct {
	at []time.Time
	ns []int16
}

func (s *stamps) add(t time.Time) {
	at, ns := stamp(t)
	s.at, s.ns = append(s.at, at), append(s.ns, ns)
}

// write queues all that the transaction is to write: a statement a table, whatever
// the number of rows.
func (t *txn) write(b *pgx.Batch) {
	if len(t.writes.commits) > 0 {
		t.writeCommits(b)
		t.writeHeads(b)
	}
	if len(t.writes.commits) > 0 || t.writes.oldest {
		b.Queue(t.s.sql(sqlPutProject), t.st.id, int64(t.st.rev), string(t.st.commit), int64(t.st.oldest), t.st.files, t.st.bytes)
	}
	if len(t.writes.requests) > 0 {
		t.writeRequests(b)
	}
}

func (t *txn) writeCommits(b *pgx.Batch) {
	var cs struct {
		rev, bytes                                       []int64
		id, principal, machine, client, session, message []string
		time                                             stamps
	}
	var vs struct {
		rev, size           []int64
		n                   []int32
		path, from          []string
		kind                []int16
		etag, prev, content [][]byte
		mod                 stamps
	}
	for i := range t.writes.commits {
		c := &t.writes.commits[i]
		var bytes int64
		for n := range c.Changes {
			ch := &c.Changes[n]
			bytes += ch.Size
			vs.rev, vs.n = append(vs.rev, int64(c.Revision)), append(vs.n, int32(n))
			vs.path, vs.kind = append(vs.path, string(ch.Path)), append(vs.kind, int16(ch.Kind))
			vs.etag, vs.prev = append(vs.etag, sum(ch.ETag)), append(vs.prev, sum(ch.PreviousETag))
			vs.size, vs.from = append(vs.size, ch.Size), append(vs.from, string(ch.RenamedFrom))
			content := ch.Content
			if ch.ETag == "" {
				content = nil
			} else if content == nil {
				content = []byte{}
			}
			vs.content = append(vs.content, content)
			vs.mod.add(ch.ModTime)
		}
		cs.rev, cs.bytes, cs.id = append(cs.rev, int64(c.Revision)), append(cs.bytes, bytes), append(cs.id, string(c.ID))
		cs.principal, cs.machine = append(cs.principal, c.Author.Principal), append(cs.machine, c.Author.Machine)
		cs.client, cs.session = append(cs.client, c.Author.Client), append(cs.session, c.Author.Session)
		cs.message = append(cs.message, c.Message)
		cs.time.add(c.Time)
	}
	b.Queue(t.s.sql(sqlPutCommits), t.st.id, cs.rev, cs.id, cs.time.at, cs.time.ns, cs.bytes, cs.principal, cs.machine, cs.client, cs.session, cs.message)
	b.Queue(t.s.sql(sqlPutVersions), t.st.id, vs.rev, vs.n, vs.path, vs.kind, vs.etag, vs.prev, vs.size, vs.mod.at, vs.mod.ns, vs.from, vs.content)
}

func (t *txn) writeHeads(b *pgx.Batch) {
	var paths []string
	var revs, sizes []int64
	var etags [][]byte
	var deleted []bool
	for path := range t.writes.paths {
		h := t.st.entries[path]
		paths, revs, sizes = append(paths, string(path)), append(revs, int64(h.rev)), append(sizes, h.size)
		etags, deleted = append(etags, h.sum[:]), append(deleted, h.deleted)
	}
	b.Queue(t.s.sql(sqlPutHeads), t.st.id, paths, revs, etags, sizes, deleted)
}

func (t *txn) writeRequests(b *pgx.Batch) {
	// The same id may be used twice in a batch only if the first use has expired.
	last := make(map[string]*remembered, len(t.writes.requests))
	for _, r := range t.writes.requests {
		last[string(r.key)] = r
	}
	var keys, digests [][]byte
	var at stamps
	var created []bool
	var revs []int64
	var ids []string
	for _, r := range last {
		keys, digests, created = append(keys, r.key), append(digests, r.digest), append(created, r.created)
		revs, ids = append(revs, int64(r.rev)), append(ids, string(r.id))
		at.add(r.at)
	}
	b.Queue(t.s.sql(sqlPutRequests), t.st.id, keys, digests, at.at, at.ns, created, revs, ids)
}

// remembered is what is kept of a request id.
type remembered struct {
	key     []byte
	digest  []byte
	at      time.Time
	created bool
	rev     memory.Revision // of the commit to answer with; 0 before the first one
	id      memory.CommitID
}
