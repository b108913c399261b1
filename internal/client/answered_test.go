package client_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// sickHub answers every question about a project with UNAVAILABLE, as a hub does whose
// database is away.
type sickHub struct {
	memsvcv1.UnimplementedMemoryServiceServer
	err error
}

func (h sickHub) GetProject(context.Context, *memsvcv1.GetProjectRequest) (*memsvcv1.GetProjectResponse, error) {
	return nil, h.err
}

// TestAnswersAreNoDialErrors: what a hub says of its own trouble is passed on, and not
// taken for a hub that is not there.
func TestAnswersAreNoDialErrors(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"an answer":      {wire.ToStatus(&memory.Error{Reason: memory.ReasonUnavailable, Message: "the database refuses: connection refused"}, "r1").Err(), ": the database refuses: connection refused"},
		"a go-between's": {status.Error(codes.Unavailable, "connection error: desc = connection refused"), "cannot be reached: nothing listens there"},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := grpc.NewServer()
		memsvcv1.RegisterMemoryServiceServer(srv, sickHub{err: test.err})
		go func() { _ = srv.Serve(l) }()
		t.Cleanup(srv.Stop)
		c, err := client.New(client.Options{Addr: l.Addr().String(), Token: "t", Attempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_, err = c.Project(t.Context(), memory.ProjectKey{Team: "acme", Project: "pay"}, memory.Cursor{})
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "cannot be reached") != (name != "an answer") {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
