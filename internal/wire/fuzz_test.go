package wire

import (
	"errors"
	"testing"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
)

// FuzzFromStatus feeds what a hostile hub may answer. Whatever it is, the result is
// an error of a known reason, its paths have passed the parser, and it can be sent
// on.
func FuzzFromStatus(f *testing.F) {
	seed := func(err error) {
		b, marshalErr := proto.Marshal(ToStatus(err, "id").Proto())
		if marshalErr != nil {
			f.Fatal(marshalErr)
		}
		f.Add(b)
	}
	seed(memory.ErrNotFound)
	seed(&memory.Error{
		Reason:     memory.ReasonETagMismatch,
		Current:    []memory.Memory{{Path: "project_x.md", ETag: memory.ETagOf([]byte("x")), Content: []byte("x"), Size: 1}},
		Violations: []memory.Violation{{Path: "a.md", Line: 3, Rule: "r", Message: "m"}},
		Head:       memory.Cursor{Epoch: "e", Revision: 2, CommitID: "c"},
		RetryAfter: 5,
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		var message spb.Status
		if proto.Unmarshal(b, &message) != nil {
			return // not a status
		}
		st := status.FromProto(&message)
		err := FromStatus(st)
		if (err == nil) != (st.Code() == codes.OK) {
			t.Fatalf("code %v became %v", st.Code(), err)
		}
		var e *memory.Error
		if !errors.As(err, &e) {
			return // OK, or the caller's own end
		}
		if _, known := codeOf(e.Reason); !known {
			t.Fatalf("unknown reason %q got through", e.Reason)
		}
		for _, m := range e.Current {
			if p, err := memory.ParsePath(string(m.Path)); err != nil || p != m.Path {
				t.Fatalf("path %q got through: %v", m.Path, err)
			}
		}
		if e.RetryAfter < 0 || e.RetryAfter > maxRetryAfter || e.RewindRevision < 0 || e.Oldest < 0 {
			t.Fatalf("out of bounds: %+v", e)
		}
		if again := FromStatus(ToStatus(e, "")); !errors.Is(again, e) {
			t.Fatalf("%v became %v", e, again)
		}
	})
}

// FuzzCommitFromProto feeds what a hostile hub may push. What is taken is whole and
// comes out as it went in.
func FuzzCommitFromProto(f *testing.F) {
	b, err := proto.Marshal(CommitToProto(memory.Commit{
		Project:  memory.ProjectKey{Team: "t", Project: "p"},
		Revision: 1,
		Author:   memory.Author{Principal: "ann"},
		Changes: []memory.AppliedChange{
			{Path: "project_x.md", Kind: memory.Put, ETag: memory.ETagOf([]byte("x")), Content: []byte("x"), Size: 1},
			{Path: "old/y.md", Kind: memory.Delete, PreviousETag: memory.ETagOf(nil)},
		},
	}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var message memsvcv1.Commit
		if proto.Unmarshal(b, &message) != nil {
			return // not a commit
		}
		c, err := CommitFromProto(&message)
		if err != nil {
			return
		}
		for _, change := range c.Changes {
			if p, err := memory.ParsePath(string(change.Path)); err != nil || p != change.Path {
				t.Fatalf("path %q got through: %v", change.Path, err)
			}
		}
		again, err := CommitFromProto(CommitToProto(c))
		if err != nil || !proto.Equal(CommitToProto(c), CommitToProto(again)) {
			t.Fatalf("%+v became %+v, %v", c, again, err)
		}
	})
}
