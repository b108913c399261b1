package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// ETag is the lower-case hex SHA-256 of a memory's bytes; "" means "no such memory".
type ETag string

// ETagOf returns the etag of content.
func ETagOf(content []byte) ETag {
	sum := sha256.Sum256(content)
	return ETag(hex.EncodeToString(sum[:]))
}

// Revision counts the commits of a project: 1, 2, 3 … without gap, in commit
// order. 0 is the project before its first commit.
type Revision int64

// Epoch is the UUID minted when a hub's database is created or restored.
// A changed epoch means that history may have been rewound.
type Epoch string

// CommitID identifies a commit's place in a history: the first 16 bytes, in hex,
// of a hash over the parent's id and the commit. Two histories that differ below
// a revision differ in the id at that revision. "" is the id before revision 1.
type CommitID string

// Cursor is the last point of a project's history that a reader has applied.
// The zero Cursor is before everything.
type Cursor struct {
	Epoch    Epoch
	Revision Revision
	CommitID CommitID
}

// Author says who made a commit. Principal is what the credential stands for and
// is set by the hub; the labels are what the sender says of itself.
type Author struct {
	Principal string
	Machine   string
	Client    string
	Session   string
}

// Memory is one Markdown file of a project as the hub holds it. Values are
// copies: whoever gets one may change it.
type Memory struct {
	Path     Path
	ETag     ETag
	Content  []byte // nil when only metadata was asked for, or deleted
	Size     int64  // bytes of the content, also when Content is nil
	Revision Revision
	// ModTime is the author's modification time, clamped by the hub to its own
	// present; CommitTime is the hub's.
	ModTime    time.Time
	CommitTime time.Time
	Author     Author
	Deleted    bool // a tombstone: ETag is "", LastETag the deleted text's
	LastETag   ETag // of a tombstone only
	// EarlierETags are the etags that this path had before, newest first, within
	// retention; filled only when asked for.
	EarlierETags []ETag
}

// ChangeKind says what a change does to a path.
type ChangeKind uint8

// The kinds of change. The zero value is invalid.
const (
	Put ChangeKind = iota + 1
	Delete
	// Redact replaces a stored text by a marker; only the hub makes it.
	Redact
)

// String returns "put", "delete" or "redact".
func (k ChangeKind) String() string {
	switch k {
	case Put:
		return "put"
	case Delete:
		return "delete"
	case Redact:
		return "redact"
	}
	return "invalid"
}

// PreconditionKind says what must hold of a path for a change to apply.
type PreconditionKind uint8

// The kinds of precondition; the zero value asks nothing.
const (
	Any PreconditionKind = iota
	MustNotExist
	MustMatch
)

// Precondition is compare-and-set on one path. ETag counts for MustMatch only.
type Precondition struct {
	Kind PreconditionKind
	ETag ETag
}

// IfAbsent is the precondition that the path does not exist.
func IfAbsent() Precondition { return Precondition{Kind: MustNotExist} }

// IfMatch is the precondition that the path exists with this etag.
func IfMatch(e ETag) Precondition { return Precondition{Kind: MustMatch, ETag: e} }

// Holds reports whether a path whose present etag is current ("" = absent) meets p.
func (p Precondition) Holds(current ETag) bool {
	switch p.Kind {
	case MustNotExist:
		return current == ""
	case MustMatch:
		return current != "" && current == p.ETag
	}
	return true
}

// Change is what a writer wants done to one path.
type Change struct {
	Path         Path
	Kind         ChangeKind
	Content      []byte // of a Put
	Precondition Precondition
	ModTime      time.Time // of a Put; zero: the hub's present
	// RenamedFrom is the path whose history a Put goes on with; the same commit
	// deletes that path.
	RenamedFrom Path
}

// AppliedChange is one change of a commit as history keeps it.
type AppliedChange struct {
	Path         Path
	Kind         ChangeKind
	ETag         ETag // after; "" for a Delete
	PreviousETag ETag // before; "" when the path did not exist
	Content      []byte
	Size         int64
	ModTime      time.Time
	RenamedFrom  Path
}

// Commit is an atomic set of changes; exactly one revision of its project.
type Commit struct {
	Project  ProjectKey
	Revision Revision
	ID       CommitID
	Author   Author
	Time     time.Time // the hub's, UTC
	Message  string
	Changes  []AppliedChange
	// Unfit are changes that are not in Changes, on the side that reads: ParsePath refuses
	// their paths, as that of an older program may. No store makes any.
	Unfit []Unfit
}

// Unfit is a path that a hub named and that this program cannot hold. It is for telling a
// person; nothing may be read or written by it.
type Unfit struct {
	Path    string // as it came
	Deleted bool   // there is nothing at it any more
}

// NextCommitID returns the id of c as the successor of parent. It covers the
// epoch, the revision, time, author, message and every change's path, kind and etag.
func NextCommitID(parent CommitID, epoch Epoch, c *Commit) CommitID {
	h := sha256.New()
	field := func(s string) {
		var n [8]byte
		for i, l := 0, uint64(len(s)); i < 8; i++ {
			n[i] = byte(l >> (8 * i))
		}
		h.Write(n[:])
		h.Write([]byte(s))
	}
	field(string(parent))
	field(string(epoch))
	field(c.Project.String())
	field(c.Time.UTC().Format(time.RFC3339Nano))
	field(strconv.FormatInt(int64(c.Revision), 10))
	field(c.Author.Principal)
	field(c.Author.Machine)
	field(c.Author.Client)
	field(c.Author.Session)
	field(c.Message)
	for _, ch := range c.Changes {
		field(ch.Kind.String())
		field(string(ch.Path))
		field(string(ch.ETag))
		field(string(ch.PreviousETag))
		field(string(ch.RenamedFrom))
	}
	return CommitID(hex.EncodeToString(h.Sum(nil)[:16]))
}
