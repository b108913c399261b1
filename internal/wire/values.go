package wire

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
)

// invalid returns an ErrInvalidArgument about one field of a message.
func invalid(field, format string, args ...any) error {
	return &memory.Error{
		Reason:  memory.ReasonInvalidArgument,
		Message: field + ": " + fmt.Sprintf(format, args...),
	}
}

// The bounds of a protobuf timestamp, in its own seconds since 1970: the first of
// year 1 and the last of year 9999.
const (
	minTimeSeconds = -62_135_596_800
	maxTimeSeconds = 253_402_300_799
)

// TimeToProto returns t as a timestamp; the zero time is nil. A time that a
// timestamp cannot hold (a broken file system's year 40000) becomes the nearest
// one it can.
func TimeToProto(t time.Time) *timestamppb.Timestamp {
	switch seconds := t.Unix(); {
	case t.IsZero():
		return nil
	case seconds < minTimeSeconds:
		return &timestamppb.Timestamp{Seconds: minTimeSeconds}
	case seconds > maxTimeSeconds:
		return &timestamppb.Timestamp{Seconds: maxTimeSeconds}
	}
	return timestamppb.New(t)
}

// TimeFromProto returns ts as a time in UTC; nil is the zero time. field names the
// field in an error.
func TimeFromProto(field string, ts *timestamppb.Timestamp) (time.Time, error) {
	if ts == nil {
		return time.Time{}, nil
	}
	if err := ts.CheckValid(); err != nil {
		return time.Time{}, invalid(field, "not a time between the years 1 and 9999")
	}
	return ts.AsTime(), nil
}

// CursorToProto returns c on the wire; the zero cursor is nil.
func CursorToProto(c memory.Cursor) *memsvcv1.Cursor {
	if c == (memory.Cursor{}) {
		return nil
	}
	return &memsvcv1.Cursor{
		Epoch:    string(c.Epoch),
		Revision: int64(c.Revision),
		CommitId: string(c.CommitID),
	}
}

// CursorFromProto returns c as a domain value; nil is the zero cursor.
func CursorFromProto(c *memsvcv1.Cursor) (memory.Cursor, error) {
	revision, err := revisionFromProto("cursor.revision", c.GetRevision())
	if err != nil {
		return memory.Cursor{}, err
	}
	return memory.Cursor{
		Epoch:    memory.Epoch(c.GetEpoch()),
		Revision: revision,
		CommitID: memory.CommitID(c.GetCommitId()),
	}, nil
}

// AuthorToProto returns a on the wire; the zero author is nil.
func AuthorToProto(a memory.Author) *memsvcv1.Author {
	if a == (memory.Author{}) {
		return nil
	}
	return &memsvcv1.Author{
		Principal: a.Principal,
		Machine:   a.Machine,
		Client:    a.Client,
		Session:   a.Session,
	}
}

// AuthorFromProto returns a as a domain value; nil is the zero author. The hub
// must replace the principal of what a client sends.
func AuthorFromProto(a *memsvcv1.Author) memory.Author {
	return memory.Author{
		Principal: a.GetPrincipal(),
		Machine:   a.GetMachine(),
		Client:    a.GetClient(),
		Session:   a.GetSession(),
	}
}

// ContentWanted reports whether view asks for contents. The unspecified view is
// the method's default, which byDefault gives.
func ContentWanted(view memsvcv1.MemoryView, byDefault bool) (bool, error) {
	switch view {
	case memsvcv1.MemoryView_MEMORY_VIEW_UNSPECIFIED:
		return byDefault, nil
	case memsvcv1.MemoryView_MEMORY_VIEW_METADATA:
		return false, nil
	case memsvcv1.MemoryView_MEMORY_VIEW_FULL:
		return true, nil
	}
	return false, invalid("view", "unknown value %d", view)
}

// StartsAtHead reports whether a watch with this start skips what is there
// already; otherwise it starts after its cursor.
func StartsAtHead(start memsvcv1.WatchStart) (bool, error) {
	switch start {
	case memsvcv1.WatchStart_WATCH_START_UNSPECIFIED, memsvcv1.WatchStart_WATCH_START_AFTER_CURSOR:
		return false, nil
	case memsvcv1.WatchStart_WATCH_START_HEAD:
		return true, nil
	}
	return false, invalid("start", "unknown value %d", start)
}

func revisionFromProto(field string, r int64) (memory.Revision, error) {
	if r < 0 {
		return 0, invalid(field, "%d is below 0; revisions count from 1", r)
	}
	return memory.Revision(r), nil
}

func sizeFromProto(field string, n int64) (int64, error) {
	if n < 0 {
		return 0, invalid(field, "%d bytes is below 0", n)
	}
	return n, nil
}

// etagLen is the length of a SHA-256 in hex.
const etagLen = 64

// ETagFromProto checks that s is empty or a lower-case hex SHA-256; field names it
// in an error.
func ETagFromProto(field, s string) (memory.ETag, error) {
	if s == "" {
		return "", nil
	}
	if len(s) != etagLen {
		return "", invalid(field, "an etag has %d characters, this has %d", etagLen, len(s))
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", invalid(field, "an etag is lower-case hex; character %d is not", i+1)
		}
	}
	return memory.ETag(s), nil
}

// optionalPath parses s unless it is empty.
func optionalPath(s string) (memory.Path, error) {
	if s == "" {
		return "", nil
	}
	return memory.ParsePath(s)
}

// bytesOrNil makes no content and empty content one thing, as they are on the wire.
func bytesOrNil(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
