package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
)

// failing answers every commit with err.
type failing struct {
	memsvcv1.UnimplementedMemoryServiceServer
	err error
}

func (f failing) CommitChanges(context.Context, *memsvcv1.CommitChangesRequest) (*memsvcv1.CommitChangesResponse, error) {
	return nil, ToStatus(f.err, "req-1").Err()
}

// TestErrorsSurviveARealServer sends errors as large as they get through gRPC itself:
// details are a header there, with limits of its own.
func TestErrorsSurviveARealServer(t *testing.T) {
	content := bytes.Repeat([]byte("x"), memory.MaxMemoryBytes)
	large := &memory.Error{Reason: memory.ReasonETagMismatch, Message: "changed meanwhile", RequestID: "req-1"}
	for i := range memory.MaxCommitChanges {
		m := memory.Memory{Path: memory.Path(fmt.Sprintf("project_%03d.md", i)), ETag: memory.ETagOf(content), Size: int64(len(content))}
		if i < MaxErrorContent/memory.MaxMemoryBytes {
			m.Content = content
		}
		large.Current = append(large.Current, m)
		large.Violations = append(large.Violations, memory.Violation{Path: string(m.Path), Line: i + 1, Rule: "规则", Message: "say what to do"})
	}
	for _, want := range []*memory.Error{
		large,
		{Reason: memory.ReasonNotFound, Message: "项目不存在", RequestID: "req-1"},
		{Reason: memory.ReasonRateLimited, RetryAfter: 1500e6, RequestID: "req-1"},
	} {
		err := FromError(commit(t, want))
		var got *memory.Error
		if !errors.As(err, &got) {
			t.Fatalf("%s: got %v", want.Reason, err)
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" {
			t.Errorf("%s (-want +got):\n%.2000s", want.Reason, diff)
		}
	}
}

// commit starts a server that answers err, makes one call and ends the server.
func commit(t *testing.T, err error) error {
	t.Helper()
	ln := bufconn.Listen(1 << 20)
	server := grpc.NewServer()
	memsvcv1.RegisterMemoryServiceServer(server, failing{err: err})
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	defer func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient("passthrough:///hub",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return ln.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, err = memsvcv1.NewMemoryServiceClient(conn).CommitChanges(t.Context(), &memsvcv1.CommitChangesRequest{})
	return err
}
