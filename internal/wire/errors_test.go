package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
)

// trip sends a status over the wire.
func trip(t interface{ Fatalf(string, ...any) }, st *status.Status) *status.Status {
	return status.FromProto(overWire(t, st.Proto()))
}

func TestErrorsKeepTheirIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genError(t)
		in := fmt.Errorf("commit: %w", want) // as service returns it
		err := FromStatus(trip(t, ToStatus(in, want.RequestID)))
		if !errors.Is(err, want) {
			t.Fatalf("%v is not %v", err, want)
		}
		var got *memory.Error
		if !errors.As(err, &got) {
			t.Fatalf("got a %T", err)
		}
		if want.Reason == memory.ReasonInternal {
			want = &memory.Error{Reason: want.Reason, Message: internalMessage, RequestID: want.RequestID}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("round trip (-want +got):\n%s", diff)
		}
	})
}

func TestProjectStatusesKeepTheirIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genError(t)
		want.RetryAfter = 0 // see ProjectStatusToProto
		err := ProjectStatusFromProto(overWire(t, ProjectStatusToProto(want, want.RequestID)))
		if !errors.Is(err, want) {
			t.Fatalf("%v is not %v", err, want)
		}
		if want.Reason == memory.ReasonInternal {
			want = &memory.Error{Reason: want.Reason, Message: internalMessage, RequestID: want.RequestID}
		}
		if diff := cmp.Diff(error(want), err); diff != "" {
			t.Fatalf("round trip (-want +got):\n%s", diff)
		}
	})
}

// TestEveryReasonIsInTheTable reads the constants of package memory, so that a new
// reason without a code is found here and not by a user.
func TestEveryReasonIsInTheTable(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "memory", "errors.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		declared++
		reason := memory.Reason(strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`))
		if _, known := codeOf(reason); !known {
			t.Errorf("%s has no row in kinds", reason)
		}
		return true
	})
	if declared != len(kinds) || declared < 20 {
		t.Errorf("memory declares %d reasons, kinds has %d rows", declared, len(kinds))
	}
}

func TestCodes(t *testing.T) {
	for err, want := range map[error]codes.Code{
		memory.ErrETagMismatch:      codes.Aborted,
		memory.ErrSecretDetected:    codes.FailedPrecondition,
		memory.ErrInvalidPath:       codes.InvalidArgument,
		memory.ErrNotFound:          codes.NotFound,
		memory.ErrRevisionCompacted: codes.OutOfRange,
		memory.ErrRateLimited:       codes.ResourceExhausted,
		memory.ErrUnauthenticated:   codes.Unauthenticated,
		memory.ErrUnavailable:       codes.Unavailable,
		context.Canceled:            codes.Canceled,
		context.DeadlineExceeded:    codes.DeadlineExceeded,
		errors.New("disk on fire"):  codes.Internal,
	} {
		if got := ToStatus(fmt.Errorf("x: %w", err), "").Code(); got != want {
			t.Errorf("%v: code %v, want %v", err, got, want)
		}
	}
	if st := ToStatus(nil, "id"); st.Code() != codes.OK || FromStatus(st) != nil || ReasonOf(st) != "" {
		t.Errorf("no error: %v", st)
	}
}

// TestOneBareReasonACode keeps the table unambiguous in the direction from codes.
func TestOneBareReasonACode(t *testing.T) {
	reasons, bare := map[memory.Reason]bool{}, map[codes.Code]bool{}
	for _, k := range kinds {
		if reasons[k.reason] || k.bare && bare[k.code] {
			t.Errorf("%s stands twice", k.reason)
		}
		reasons[k.reason] = true
		bare[k.code] = bare[k.code] || k.bare
	}
}

func TestUnknownCausesSayNothing(t *testing.T) {
	const leak = "open /var/lib/memsvc/hub.db: password=hunter2"
	for _, err := range []error{
		errors.New(leak),
		fmt.Errorf("x: %w", errors.New(leak)),
		&memory.Error{Reason: "NEVER_HEARD_OF", Message: leak},
		&memory.Error{Reason: memory.ReasonInternal, Message: leak, Violations: []memory.Violation{{Message: leak}}},
		status.Error(codes.Unknown, leak),
		status.Error(codes.Internal, leak),
	} {
		st := ToStatus(err, "req-1")
		if st.Code() != codes.Internal {
			t.Errorf("%T: code %v, want INTERNAL", err, st.Code())
		}
		if text := fmt.Sprint(st.Proto()); strings.Contains(text, "hunter2") {
			t.Errorf("%T: the status tells the cause: %s", err, text)
		}
		if text := fmt.Sprint(ProjectStatusToProto(err, "req-1")); strings.Contains(text, "hunter2") {
			t.Errorf("%T: the project status tells the cause: %s", err, text)
		}
		var e *memory.Error
		if got := FromStatus(trip(t, st)); !errors.As(got, &e) || e.RequestID != "req-1" || e.Reason != memory.ReasonInternal {
			t.Errorf("%T: got %#v, want INTERNAL with the request id", err, got)
		}
	}
}

func TestWrappingContextStaysHere(t *testing.T) {
	err := fmt.Errorf("sqlite /var/lib/hub.db: %w", &memory.Error{Reason: memory.ReasonNotFound, Message: "no such project"})
	if st := ToStatus(err, ""); st.Message() != "no such project" {
		t.Errorf("message %q, want the domain's own", st.Message())
	}
}

func TestEndedCallsMatchTheirContext(t *testing.T) {
	for _, want := range []error{context.Canceled, context.DeadlineExceeded} {
		got := FromError(trip(t, ToStatus(fmt.Errorf("x: %w", want), "")).Err())
		if !errors.Is(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// TestStatusesOfOthers covers what proxies and the gRPC library answer.
func TestStatusesOfOthers(t *testing.T) {
	foreign, err := status.New(codes.NotFound, "gone").WithDetails(&errdetails.ErrorInfo{Reason: "ETAG_MISMATCH", Domain: "example.test"})
	if err != nil {
		t.Fatal(err)
	}
	newer, err := status.New(codes.FailedPrecondition, "frozen").WithDetails(&errdetails.ErrorInfo{Reason: "PROJECT_FROZEN", Domain: Domain})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		st   *status.Status
		want memory.Reason
	}{
		{status.New(codes.Unavailable, "connection refused"), memory.ReasonUnavailable},
		{status.New(codes.Unauthenticated, ""), memory.ReasonUnauthenticated},
		{status.New(codes.PermissionDenied, "403"), memory.ReasonPermissionDenied},
		{status.New(codes.Aborted, ""), memory.ReasonUnavailable},
		{status.New(codes.Unimplemented, "unknown method"), memory.ReasonInternal},
		{status.New(codes.ResourceExhausted, "message larger than max"), memory.ReasonInternal},
		{foreign, memory.ReasonNotFound},
		{newer, memory.ReasonInvalidArgument},
	}
	for _, test := range tests {
		if got := ReasonOf(trip(t, test.st)); got != test.want {
			t.Errorf("%v: reason %s, want %s", test.st, got, test.want)
		}
	}
	if got := ProjectStatusFromProto(&memsvcv1.ProjectStatus{Reason: "PROJECT_FROZEN"}); !errors.Is(got, memory.ErrInternal) {
		t.Errorf("unknown reason in a watch: %v", got)
	}
	if got := ProjectStatusFromProto(nil); !errors.Is(got, memory.ErrInternal) {
		t.Errorf("no status in a watch: %v", got)
	}
	if got := ToStatus(status.Error(codes.Unavailable, "shutting down"), ""); got.Code() != codes.Unavailable || got.Message() != "shutting down" {
		t.Errorf("a status of the library became %v", got)
	}
	plain := errors.New("no gRPC involved")
	if got := FromError(plain); !errors.Is(got, plain) {
		t.Errorf("got %v, want the error itself", got)
	}
	if FromError(nil) != nil {
		t.Error("FromError(nil) is an error")
	}
}

// TestHostileDetailsAreLeftOut sends what a broken or hostile hub might.
func TestHostileDetailsAreLeftOut(t *testing.T) {
	st, err := status.New(codes.Aborted, "changed meanwhile").WithDetails(
		&errdetails.ErrorInfo{Reason: "ETAG_MISMATCH", Domain: Domain},
		&memsvcv1.ErrorDetail{
			Current: []*memsvcv1.Memory{
				{Path: "../../etc/x.md", Etag: strings.Repeat("a", 64)},
				{Path: "project_good.md", Etag: strings.Repeat("a", 64), Content: []byte("x"), SizeBytes: 1},
			},
			Violations:     []*memsvcv1.Violation{{Path: "x", Line: -5}, {Path: "y", Line: 1 << 40}},
			Head:           &memsvcv1.Cursor{Revision: -1},
			RewindRevision: -1,
			OldestRevision: -1,
		},
		&errdetails.RetryInfo{RetryDelay: &durationpb.Duration{Seconds: 1 << 40}},
	)
	if err != nil {
		t.Fatal(err)
	}
	var e *memory.Error
	if got := FromStatus(st); !errors.As(got, &e) || e.Reason != memory.ReasonETagMismatch {
		t.Fatalf("got %v, want ETAG_MISMATCH", got)
	}
	if len(e.Current) != 1 || e.Current[0].Path != "project_good.md" {
		t.Errorf("current: %v, want the good one alone", e.Current)
	}
	if e.Head != (memory.Cursor{}) || e.RewindRevision != 0 || e.Oldest != 0 {
		t.Errorf("negative revisions got through: %+v", e)
	}
	for _, v := range e.Violations {
		if v.Line != 0 {
			t.Errorf("line %d got through", v.Line)
		}
	}
	if e.RetryAfter != 0 {
		t.Errorf("retry after %v, want none for a delay that is not valid", e.RetryAfter)
	}
	if got := retryDelay(&errdetails.RetryInfo{RetryDelay: durationpb.New(48 * time.Hour)}); got != maxRetryAfter {
		t.Errorf("a delay of two days became %v, want %v", got, maxRetryAfter)
	}
}

// TestTextsThatAreNotUTF8Travel: the path of a violation is whatever was sent, cut
// anywhere.
func TestTextsThatAreNotUTF8Travel(t *testing.T) {
	in := &memory.Error{Reason: memory.ReasonInvalidPath, Message: "bad \xff", Violations: []memory.Violation{{Path: "\xe4\xb8", Rule: "utf8"}}}
	var got *memory.Error
	if err := FromStatus(trip(t, ToStatus(in, "\xff"))); !errors.As(err, &got) || !errors.Is(err, memory.ErrInvalidPath) {
		t.Fatalf("got %v, want INVALID_PATH", err)
	}
	if len(got.Violations) != 1 || got.Violations[0].Rule != "utf8" {
		t.Errorf("violations: %v", got.Violations)
	}
}

func TestLargeErrorsStayBelowTheHeaderLimit(t *testing.T) {
	in := &memory.Error{Reason: memory.ReasonETagMismatch}
	for i := range memory.MaxCommitChanges {
		content := bytes.Repeat([]byte("x"), memory.MaxMemoryBytes)
		in.Current = append(in.Current, memory.Memory{
			Path: memory.Path(fmt.Sprintf("project_%d.md", i)), ETag: memory.ETagOf(content),
			Content: content, Size: int64(len(content)),
		})
	}
	for range 5000 {
		in.Violations = append(in.Violations, memory.Violation{Path: strings.Repeat("p", 256), Message: strings.Repeat("m", 200)})
	}
	st := trip(t, ToStatus(in, "id"))
	const limit = 16 << 20 // a Go client's, for the header as base64
	if n := len(overWire(t, st.Proto()).String()) * 4 / 3; n > limit/2 {
		t.Errorf("the status has about %d bytes; the limit is %d", n, limit)
	}
	var got *memory.Error
	if !errors.As(FromStatus(st), &got) {
		t.Fatal("not a domain error")
	}
	if len(got.Current) != memory.MaxCommitChanges {
		t.Fatalf("%d current memories, want all %d", len(got.Current), memory.MaxCommitChanges)
	}
	whole := MaxErrorContent / memory.MaxMemoryBytes
	if missing := Incomplete(got); len(missing) != memory.MaxCommitChanges-whole || missing[0] != got.Current[whole].Path {
		t.Errorf("%d incomplete, want %d", len(missing), memory.MaxCommitChanges-whole)
	}
	if in.Current[len(in.Current)-1].Content == nil {
		t.Error("the error itself was changed")
	}
}
