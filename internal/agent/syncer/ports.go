package syncer

import (
	"context"
	"errors"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// Errors of Local, Remote and State. Adapters wrap them (errors.Is must match).
var (
	// ErrLocalChanged means that the file was not the expected one right before it
	// would have been replaced or removed. Nothing was changed; the next cycle looks again.
	ErrLocalChanged = errors.New("the local file changed meanwhile")
	// ErrLocalAbsent means that there is no such file.
	ErrLocalAbsent = errors.New("no such local file")
	// ErrLocalBlocked means that something which is not ours to remove stands at the
	// path: a non-empty directory where a file should be, a file where a directory
	// should be, a link, or (on a disk that ignores case) a file or directory of
	// another spelling. Nothing was changed.
	ErrLocalBlocked = errors.New("something stands in the way at this path")
	// ErrLocalName means that the disk cannot hold a file of this name. Nothing was changed.
	ErrLocalName = errors.New("this disk cannot hold a file of this name")
	// ErrCannotTell means that the hub is older than the question.
	ErrCannotTell = errors.New("the hub cannot tell")
	// ErrNoText means that State does not keep the text of that etag.
	ErrNoText = errors.New("no such text is kept")
)

// Clock tells the time of this machine.
type Clock func() time.Time

// Local is the workspace: one team/ directory. Paths are NFC keys; the adapter maps
// them to the names on disk (which may be NFD) and back. It never follows a link and
// never touches anything outside the root. Calls come from one goroutine at a time.
type Local interface {
	// Scan returns what is there now. A root that is missing or suspicious is not
	// an error but Snapshot.Root; an error means that nothing is known.
	// Scan writes nothing: it makes neither the root nor the marker.
	Scan(ctx context.Context) (Snapshot, error)

	// Read returns the bytes of a regular file, at most memory.MaxMemoryBytes+1 of
	// them. It must return ErrLocalAbsent when there is none.
	Read(ctx context.Context, path memory.Path) ([]byte, error)

	// Write makes path hold content with the given mtime, durably and atomically
	// (temporary file, fsync, rename, fsync of the directory); missing directories
	// are made. It looks right before replacing: unless the file is still expect
	// ("" = absent) it changes nothing and returns ErrLocalChanged. When path already
	// holds content it succeeds, whatever expect says. Empty directories that stand
	// where the file belongs are removed; anything else in the way is ErrLocalBlocked. A
	// name that the disk does not take is ErrLocalName.
	// A zero modTime leaves the choice to the disk. Write does nothing, and returns
	// ErrLocalChanged, when the root is not RootOK any more.
	Write(ctx context.Context, path memory.Path, content []byte, modTime time.Time, expect memory.ETag) error

	// Remove deletes path, durably, if its bytes are still expect, else it returns
	// ErrLocalChanged. An absent path is a success. Directories that become empty
	// by it are removed too (never the root). The marker and the root are looked at
	// as in Write.
	//
	// After Remove("Note.md") a Write("note.md") must succeed on a disk that ignores
	// case, and after Remove("a.md") a Write("a.md/x.md") everywhere, and the other
	// way round: the caller orders them so.
	Remove(ctx context.Context, path memory.Path, expect memory.ETag) error

	// PutMarker writes the marker with the link's id into the root, making the root
	// if it is missing, so that later scans can tell an emptied or replaced root. A marker
	// of another project is left, and is an error; to Scan such a root is RootReplaced.
	PutMarker(ctx context.Context, linkID string) error
}

// Glancer is a Local that can tell more cheaply than by a scan whether anything came or
// went. Without it Follow scans.
type Glancer interface {
	// Same reports whether a Scan now would find the same root with the same marker,
	// ignore rules and files as seen, by their names; their texts may have changed.
	// When it is not sure it must return false.
	Same(ctx context.Context, seen Snapshot) bool
}

// Mender is a Local that can put right what a kill in the middle of a Write or a Remove
// left behind: an edit that slipped in at that very moment is given its place again. What
// it finds is said by Snapshot.Torn; Mend is called after the brakes, and another Scan
// follows. An error leaves the rest for the next time.
type Mender interface {
	Mend(ctx context.Context) error
}

// RootCondition says whether a scan may be believed.
type RootCondition uint8

// The conditions of a root. Only RootOK allows a cycle that writes or deletes.
const (
	RootOK       RootCondition = iota + 1
	RootMissing                // no such directory, or it is no directory
	RootReplaced               // another device, an unmounted or swapped directory; Detail says which
	RootUnknown                // the root itself cannot be read
)

// String returns "ok", "missing", "replaced" or "unknown".
func (c RootCondition) String() string {
	switch c {
	case RootOK:
		return "ok"
	case RootMissing:
		return "missing"
	case RootReplaced:
		return "replaced"
	case RootUnknown:
		return "unknown"
	}
	return "invalid"
}

// Snapshot is one look at the workspace. Its maps and slices belong to the caller.
type Snapshot struct {
	Root   RootCondition
	Detail string // for a person, when Root is not RootOK

	// Marker is the link id found in the marker; "" when there is none. An absent
	// or foreign marker where a baseline exists is a brake (the syncer judges).
	Marker string
	// MarkerBare says that the marker does not name its project yet, as older agents wrote
	// it: PutMarker with the same id adds that.
	MarkerBare bool

	// Files holds every regular file that could be read and whose path is valid,
	// ignored ones left out. Two names on disk that are one key (NFC and NFD twins),
	// or that collide under case folding, are both left out and reported in Refused.
	// A collision of which one path is InBaseline reports only the newcomer: see
	// Refusal.
	Files map[memory.Path]LocalFile

	// Unreadable lists files and directories, as paths below the root, that could
	// not be read or whose name could not be examined; "" is the whole root.
	// Everything at or below them is unknown and is left alone.
	Unreadable []memory.Path

	// Refused lists what is there but cannot be shared because of its name or kind.
	Refused []Refusal

	// Dirs holds the mtime of every directory that was listed, "" the root: when a
	// name in it last came or went. Nil when that is not known.
	Dirs map[memory.Path]time.Time

	// Torn says that there is something for a Mender to do.
	Torn bool

	// Ignored reports whether .memsyncignore excludes a path (also one that is not
	// on disk). Nil ignores nothing.
	Ignored func(memory.Path) bool

	// Again says after what time to look again though nothing moves, since something
	// (the ignore rules) has not settled; 0 = not needed.
	Again time.Duration
}

// LocalFile is one file of a Snapshot.
type LocalFile struct {
	ETag    memory.ETag // of the whole file, whatever its size
	Size    int64
	ModTime time.Time // of this machine's disk, not corrected
}

// Refusal is a name on disk that cannot become a memory: a bad path, a name that is
// not UTF-8, a link, a collision on disk.
type Refusal struct {
	// Name is the raw name below the root, quoted where it is not plain text.
	Name string
	// Path is the key it has or would have, when that is a valid one (a twin, a
	// link); such a path counts as unknown: nothing is done at or below it.
	Path      memory.Path
	Violation memory.Violation
	// File is what lies at Path where another file alone is the reason (a collision): of
	// such files the one that the hub holds is no newcomer, whatever the scan thought.
	// Its ETag is "" else.
	File LocalFile
}

// Guard judges what may leave the machine (SPEC 3.3, 5).
type Guard interface {
	// Check judges one file. An error means that no verdict could be had: the
	// caller treats the file as refused (fails closed) and tries again next cycle.
	// Verdicts hold for one content and one policy version; caching is the guard's.
	Check(ctx context.Context, path memory.Path, content []byte) (Verdict, error)
}

// Verdict is what a Guard says of one file.
type Verdict struct {
	Violations    []memory.Violation // any = refused
	Warnings      []memory.Violation // uploaded, but said
	PolicyVersion int64              // a changed version means: check refusals again
}

// Uploads says when local files may be sent. Somebody who changes several files that
// belong together, as a tidying does, holds uploads back meanwhile, so that the hub gets
// all of it in one commit or, as yet, nothing.
type Uploads interface {
	// Enter asks, before the files are looked at, whether what is seen may be sent. If ok,
	// nobody changes files that belong together until leave is called. It never waits.
	Enter(ctx context.Context) (leave func(), ok bool)
}

// Remote is the project on the hub. Errors are *memory.Error wherever the hub
// answered; any other error, and UNAVAILABLE, RATE_LIMITED and INTERNAL, is passing.
// A request whose answer was lost may have been applied.
type Remote interface {
	// Head returns where the project stands. When the hub's history is not the one
	// that seen is from (another epoch, a head below it, another commit id at it),
	// it must return ErrEpochChanged with RewindRevision and Head filled. The zero
	// cursor fits every history.
	Head(ctx context.Context, seen memory.Cursor) (RemoteInfo, error)

	// Changes returns whole commits after the cursor, ascending, without gap,
	// contents inline, a bounded page; none when after is the head. It must return
	// ErrRevisionCompacted when one in between is no longer kept, and
	// ErrEpochChanged as Head does.
	Changes(ctx context.Context, after memory.Cursor) (ChangePage, error)

	// List returns all memories in path order, without contents, as they were at
	// one revision, Listing.Head, or later: a memory may be newer than Head when
	// the project changed while pages were read.
	List(ctx context.Context, opts ListOptions) (Listing, error)

	// Get returns the memories at paths, contents inline. A path in neither
	// Memories nor Remaining does not exist. The caller asks again for Remaining;
	// at least one path is answered each time.
	Get(ctx context.Context, paths []memory.Path) (Batch, error)

	// Push commits. It must return ErrETagMismatch with Current filled for every
	// failed path, and SECRET_DETECTED, INVALID_PATH, INVALID_CONTENT,
	// PATH_COLLISION, TYPE_NOT_SHARED, MEMORY_TOO_LARGE with Violations that name
	// the paths. The same request id with the same payload answers with the first result.
	Push(ctx context.Context, req CommitRequest) (CommitResult, error)

	// Redacted reports of each text whether the hub redacted it, at whatever path. A hub
	// that is too old to say is an ErrCannotTell.
	Redacted(ctx context.Context, texts [][]byte) ([]bool, error)

	// Offset returns the hub's time minus this machine's, as last measured; 0 when unknown.
	Offset() time.Duration
}

// RemoteInfo says where the project stands on the hub.
type RemoteInfo struct {
	Head   memory.Cursor
	Oldest memory.Revision // first revision that Changes still returns
	Files  int64
	Bytes  int64
}

// ChangePage is a page of history.
type ChangePage struct {
	Commits []memory.Commit
	// Cursors[i] is the cursor after Commits[i].
	Cursors []memory.Cursor
	// More is true when commits follow that this page does not hold.
	More bool
}

// ListOptions narrows Remote.List.
type ListOptions struct {
	Deleted      bool // tombstones too
	EarlierETags bool // fill Memory.EarlierETags
}

// Listing is the answer of Remote.List.
type Listing struct {
	Memories []memory.Memory
	Unfit    []memory.Unfit // paths that this program cannot hold; not in Memories
	Head     memory.Cursor
}

// Batch is the answer of Remote.Get.
type Batch struct {
	Memories  []memory.Memory
	Remaining []memory.Path
}

// CommitRequest is one commit of a syncer: at most memory.MaxCommitChanges changes
// and memory.MaxCommitBytes of content.
type CommitRequest struct {
	RequestID string
	// Epoch is the one the changes were planned on; the hub refuses another with ErrEpochChanged.
	Epoch   memory.Epoch
	Message string
	Changes []memory.Change
}

// CommitResult is what became of a commit.
type CommitResult struct {
	Commit  memory.Commit // without contents; the head's when Created is false
	Created bool
	Head    memory.Cursor // of the project, right after
}
