package store

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// Entry is what a backend knows of one path at the head of a project.
type Entry struct {
	ETag     memory.ETag // "" for a tombstone
	LastETag memory.ETag // of a tombstone: the deleted text's
	Size     int64
	Revision memory.Revision
}

// Living reports whether the path exists; a tombstone does not.
func (e Entry) Living() bool { return e.ETag != "" }

// View is the state of one project that a commit is judged on. The functions are
// called within Judge only.
type View struct {
	Head  memory.Cursor
	Files int64
	Bytes int64
	// Entry returns what is at the path; ok is false if nothing ever was.
	Entry func(memory.Path) (e Entry, ok bool)
	// Collides judges the state after removed went and added came, as
	// memory.CollisionIndex.CheckAfter does.
	Collides func(removed, added []memory.Path) [][2]memory.Path
}

// Prepared is a CommitRequest whose form was checked and whose hashes were
// computed: all of a commit that can be done before its turn comes. It shares the
// request's contents.
type Prepared struct {
	CommitRequest
	// Digest identifies the payload under a request id: message and changes, but
	// neither author labels nor times, which a retry may send anew.
	Digest [sha256.Size]byte
	etags  []memory.ETag // of each change; "" for a Delete
}

// Prepare checks the form of req, whatever the state of the project. A commit
// without changes, with a path named twice, with a kind other than Put and
// Delete, or with a RenamedFrom that the same commit does not delete, is an
// ErrInvalidArgument; more than memory.MaxCommitChanges changes or
// memory.MaxCommitBytes are an ErrCommitTooLarge.
func Prepare(req CommitRequest) (*Prepared, error) {
	if len(req.Changes) == 0 {
		return nil, Invalid("commit to %s: no changes; name at least one", req.Project)
	}
	if len(req.Changes) > memory.MaxCommitChanges {
		return nil, tooLarge(req.Project, fmt.Sprintf("%d changes, at most %d fit one commit", len(req.Changes), memory.MaxCommitChanges))
	}
	p := &Prepared{CommitRequest: req, etags: make([]memory.ETag, len(req.Changes))}
	var total int64
	for i := range req.Changes {
		c := &req.Changes[i]
		switch {
		case c.Path == "":
			return nil, Invalid("commit to %s: change %d has no path", req.Project, i)
		case c.Kind != memory.Put && c.Kind != memory.Delete:
			return nil, Invalid("commit to %s: %q: kind %s; use put or delete", req.Project, c.Path, c.Kind)
		case c.Kind == memory.Delete && c.RenamedFrom != "":
			return nil, Invalid("commit to %s: %q: a delete cannot be renamed from another path", req.Project, c.Path)
		}
		if c.Kind == memory.Put {
			p.etags[i] = memory.ETagOf(c.Content)
			total += int64(len(c.Content))
		}
	}
	if total > memory.MaxCommitBytes {
		return nil, tooLarge(req.Project, fmt.Sprintf("%d bytes, at most %d fit one commit", total, memory.MaxCommitBytes))
	}
	if err := checkPaths(req); err != nil {
		return nil, err
	}
	p.Digest = p.digest()
	return p, nil
}

// checkPaths refuses a path named twice and a rename that keeps its source.
func checkPaths(req CommitRequest) error {
	if len(req.Changes) == 1 {
		if from := req.Changes[0].RenamedFrom; from != "" {
			return orphanRename(req, 0)
		}
		return nil
	}
	kinds := make(map[memory.Path]memory.ChangeKind, len(req.Changes))
	for _, c := range req.Changes {
		if kinds[c.Path] != 0 {
			return Invalid("commit to %s: %q is named twice; send one change a path", req.Project, c.Path)
		}
		kinds[c.Path] = c.Kind
	}
	sources := make(map[memory.Path]bool)
	for i, c := range req.Changes {
		if c.RenamedFrom == "" {
			continue
		}
		if kinds[c.RenamedFrom] != memory.Delete || sources[c.RenamedFrom] {
			return orphanRename(req, i)
		}
		sources[c.RenamedFrom] = true
	}
	return nil
}

func orphanRename(req CommitRequest, i int) error {
	c := req.Changes[i]
	return Invalid("commit to %s: %q is renamed from %q, which the commit must delete, once", req.Project, c.Path, c.RenamedFrom)
}

// digest hashes what the request asks for, length-prefixed field by field.
func (p *Prepared) digest() (sum [sha256.Size]byte) {
	if p.RequestID == "" {
		return sum
	}
	h := sha256.New()
	field := func(s string) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	field(p.Message)
	for i := range p.Changes {
		c := &p.Changes[i]
		h.Write([]byte{byte(c.Kind), byte(c.Precondition.Kind)})
		field(string(c.Path))
		field(string(p.etags[i]))
		field(string(c.Precondition.ETag))
		field(string(c.RenamedFrom))
	}
	h.Sum(sum[:0])
	return sum
}

// Verdict is what Judge found.
type Verdict struct {
	// Stale lists the paths whose precondition fails; nothing else is set then.
	// The backend answers with Stale and the present memories.
	Stale []memory.Path
	// Unchanged: every byte is already as asked; no revision is to be made.
	Unchanged bool
	// Commit is what to append, with contents, revision and id. Changes that
	// would change no byte are left out.
	Commit memory.Commit
	// Files and Bytes of the project after the commit.
	Files, Bytes int64
}

// Head returns the cursor at the verdict's commit.
func (v *Verdict) Head(epoch memory.Epoch) memory.Cursor {
	return memory.Cursor{Epoch: epoch, Revision: v.Commit.Revision, CommitID: v.Commit.ID}
}

// Judge decides what becomes of p on the state v. It changes nothing. The error is
// an ErrPathCollision or an ErrQuotaExceeded; failed preconditions are reported
// first, in Verdict.Stale.
func Judge(v View, p *Prepared) (Verdict, error) {
	out := Verdict{Files: v.Files, Bytes: v.Bytes}
	applied := make([]memory.AppliedChange, 0, len(p.Changes))
	var removed, added []memory.Path
	for i := range p.Changes {
		c := &p.Changes[i]
		was, _ := v.Entry(c.Path)
		if !c.Precondition.Holds(was.ETag) {
			out.Stale = append(out.Stale, c.Path)
			continue
		}
		if p.etags[i] == was.ETag { // same bytes, or deleting what is not there
			continue
		}
		a := memory.AppliedChange{Path: c.Path, Kind: c.Kind, ETag: p.etags[i], PreviousETag: was.ETag}
		out.Bytes -= was.Size
		if c.Kind == memory.Put {
			a.Content, a.Size = c.Content, int64(len(c.Content))
			a.ModTime, a.RenamedFrom = clamp(c.ModTime, p.Now), c.RenamedFrom
			out.Bytes += a.Size
			if !was.Living() {
				out.Files++
				added = append(added, c.Path)
			}
		} else {
			out.Files--
			removed = append(removed, c.Path)
		}
		applied = append(applied, a)
	}
	if len(out.Stale) > 0 {
		return Verdict{Stale: out.Stale}, nil
	}
	if len(applied) == 0 {
		return Verdict{Unchanged: true, Files: v.Files, Bytes: v.Bytes}, nil
	}
	dropIdleRenames(applied)
	if len(added) > 0 {
		if pairs := v.Collides(removed, added); len(pairs) > 0 {
			return Verdict{}, collision(p.Project, pairs)
		}
	}
	if err := checkQuota(v, out, p); err != nil {
		return Verdict{}, err
	}
	out.Commit = memory.Commit{
		Project:  p.Project,
		Revision: v.Head.Revision + 1,
		Author:   p.Author,
		Time:     p.Now.UTC(),
		Message:  p.Message,
		Changes:  applied,
	}
	out.Commit.ID = memory.NextCommitID(v.Head.CommitID, v.Head.Epoch, &out.Commit)
	return out, nil
}

// dropIdleRenames clears the RenamedFrom of a change whose source was already
// gone: there is no history left to go on with in this commit.
func dropIdleRenames(applied []memory.AppliedChange) {
	for i := range applied {
		from := applied[i].RenamedFrom
		if from == "" {
			continue
		}
		found := false
		for j := range applied {
			found = found || applied[j].Path == from && applied[j].Kind == memory.Delete
		}
		if !found {
			applied[i].RenamedFrom = ""
		}
	}
}

// clamp returns the author's time, or now if it is unknown or in the hub's future.
func clamp(modTime, now time.Time) time.Time {
	if modTime.IsZero() || modTime.After(now) {
		return now.UTC()
	}
	return modTime.UTC()
}

// checkQuota refuses growth past a bound; a project already past it may shrink or
// stay.
func checkQuota(v View, after Verdict, p *Prepared) error {
	if q := p.Quota.Files; q > 0 && after.Files > q && after.Files > v.Files {
		return quota(p.Project, fmt.Sprintf("%d memories, the quota is %d", after.Files, q))
	}
	if q := p.Quota.Bytes; q > 0 && after.Bytes > q && after.Bytes > v.Bytes {
		return quota(p.Project, fmt.Sprintf("%d bytes, the quota is %d", after.Bytes, q))
	}
	return nil
}
