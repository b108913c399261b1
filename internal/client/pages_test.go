package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// endlessHub answers every list with the page that next makes of the number of calls so
// far. It gives in after the calls of a hub that means well, so that a client that
// follows it for ever fails the test and does not hang.
type endlessHub struct {
	memsvcv1.UnimplementedMemoryServiceServer
	memsvcv1.UnimplementedAdminServiceServer

	calls int // one client, one call at a time
	next  func(call int) (token string, memories int)
	// content is that of each memory.
	content []byte
}

const patientCalls = 12_000

func (h *endlessHub) page() (string, int) {
	h.calls++
	if h.calls > patientCalls {
		return "", 0
	}
	return h.next(h.calls)
}

func (h *endlessHub) ListMemories(context.Context, *memsvcv1.ListMemoriesRequest) (*memsvcv1.ListMemoriesResponse, error) {
	token, n := h.page()
	res := &memsvcv1.ListMemoriesResponse{NextPageToken: token}
	for i := range n {
		res.Memories = append(res.Memories, wire.MemoryToProto(alpha, memory.Memory{ETag: memory.ETagOf(h.content), Content: h.content, Size: int64(len(h.content)), Path: memory.Path(fmt.Sprintf("m%d-%d.md", h.calls, i))}))
	}
	return res, nil
}

func (h *endlessHub) ListCommits(context.Context, *memsvcv1.ListCommitsRequest) (*memsvcv1.ListCommitsResponse, error) {
	token, _ := h.page()
	return &memsvcv1.ListCommitsResponse{NextPageToken: token}, nil
}

func (h *endlessHub) ListConflicts(context.Context, *memsvcv1.ListConflictsRequest) (*memsvcv1.ListConflictsResponse, error) {
	token, _ := h.page()
	return &memsvcv1.ListConflictsResponse{NextPageToken: token}, nil
}

func (h *endlessHub) ListProjects(context.Context, *memsvcv1.ListProjectsRequest) (*memsvcv1.ListProjectsResponse, error) {
	token, _ := h.page()
	return &memsvcv1.ListProjectsResponse{NextPageToken: token}, nil
}

func (h *endlessHub) ListTokens(context.Context, *memsvcv1.ListTokensRequest) (*memsvcv1.ListTokensResponse, error) {
	token, _ := h.page()
	return &memsvcv1.ListTokensResponse{NextPageToken: token}, nil
}

func (h *endlessHub) ListTeams(context.Context, *memsvcv1.ListTeamsRequest) (*memsvcv1.ListTeamsResponse, error) {
	token, _ := h.page()
	return &memsvcv1.ListTeamsResponse{NextPageToken: token}, nil
}

func (h *endlessHub) ListAuditEvents(context.Context, *memsvcv1.ListAuditEventsRequest) (*memsvcv1.ListAuditEventsResponse, error) {
	token, _ := h.page()
	return &memsvcv1.ListAuditEventsResponse{NextPageToken: token}, nil
}

func (h *endlessHub) ListAgents(context.Context, *memsvcv1.ListAgentsRequest) (*memsvcv1.ListAgentsResponse, error) {
	token, _ := h.page()
	return &memsvcv1.ListAgentsResponse{NextPageToken: token}, nil
}

func (h *endlessHub) client(t *testing.T) *client.Client {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	memsvcv1.RegisterMemoryServiceServer(s, h)
	memsvcv1.RegisterAdminServiceServer(s, h)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(ln) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return newClient(t, client.Options{Addr: ln.Addr().String()})
}

// senseless are the ways of a hub never to come to the end of a list.
var senseless = map[string]func(int) (string, int){
	"the same token":        func(int) (string, int) { return "again", 0 },
	"two tokens in turn":    func(n int) (string, int) { return fmt.Sprint(n % 2), 0 },
	"empty pages for ever":  func(n int) (string, int) { return fmt.Sprint(n), 0 },
	"a token without bound": func(n int) (string, int) { return fmt.Sprint(n) + strings.Repeat("t", 1<<16), 0 },
}

func wantSenseless(t *testing.T, h *endlessHub, err error, calls int) {
	t.Helper()
	if !errors.Is(err, memory.ErrInternal) || !strings.Contains(err.Error(), "the hub's answer makes no sense: ") {
		t.Errorf("after %d calls: error %v", h.calls, err)
	}
	if h.calls > calls {
		t.Errorf("%d calls before it was noticed, want at most %d", h.calls, calls)
	}
}

func TestEndlessListsEnd(t *testing.T) {
	for name, list := range map[string]func(context.Context, *client.Client) error{
		"memories": func(ctx context.Context, c *client.Client) error {
			_, err := c.List(ctx, alpha, client.ListOptions{})
			return err
		},
		"conflicts": func(ctx context.Context, c *client.Client) error { _, err := c.Conflicts(ctx, alpha); return err },
		"projects":  func(ctx context.Context, c *client.Client) error { _, err := c.Projects(ctx, alpha.Team); return err },
		"tokens":    func(ctx context.Context, c *client.Client) error { _, err := c.Tokens(ctx, alpha.Team); return err },
		"teams":     func(ctx context.Context, c *client.Client) error { _, err := c.Teams(ctx); return err },
		"settings":  func(ctx context.Context, c *client.Client) error { _, err := c.TeamSettings(ctx); return err },
		"audit":     func(ctx context.Context, c *client.Client) error { _, err := c.Audit(ctx, alpha.Team, 10); return err },
		"agents":    func(ctx context.Context, c *client.Client) error { _, err := c.Agents(ctx, alpha.Team); return err },
	} {
		for how, next := range senseless {
			t.Run(name+"/"+how, func(t *testing.T) {
				h := &endlessHub{next: next}
				wantSenseless(t, h, list(t.Context(), h.client(t)), 200)
			})
		}
	}
}

// TestEndlessMemoriesEnd has a hub that goes on with new memories on every page.
func TestEndlessMemoriesEnd(t *testing.T) {
	for per, calls := range map[int]int{1: 10_001, 1000: 201} {
		h := &endlessHub{next: func(n int) (string, int) { return fmt.Sprint(n), per }}
		_, err := h.client(t).List(t.Context(), alpha, client.ListOptions{})
		wantSenseless(t, h, err, calls)
	}
}

// TestHeavyListsEnd has a hub whose memories are few and large, where none was asked for
// its content.
func TestHeavyListsEnd(t *testing.T) {
	h := &endlessHub{next: func(n int) (string, int) { return fmt.Sprint(n), 1 }, content: make([]byte, memory.MaxMemoryBytes)}
	_, err := h.client(t).List(t.Context(), alpha, client.ListOptions{})
	wantSenseless(t, h, err, memory.MaxProjectBytes/memory.MaxMemoryBytes)
}

// TestEmptyPagesAreNoFault: a hub may look through much and find little.
func TestEmptyPagesAreNoFault(t *testing.T) {
	h := &endlessHub{next: func(n int) (string, int) {
		if n == 300 {
			return "", 1
		}
		return fmt.Sprint(n), n % 50 / 49
	}}
	l, err := h.client(t).List(t.Context(), alpha, client.ListOptions{})
	if err != nil || len(l.Memories) != 7 {
		t.Errorf("%d memories, error %v", len(l.Memories), err)
	}
}

func TestLogRefusesItsOwnToken(t *testing.T) {
	h := &endlessHub{next: senseless["the same token"]}
	c := h.client(t)
	_, next, err := c.Log(t.Context(), alpha, "", 10, "")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = c.Log(t.Context(), alpha, "", 10, next)
	wantSenseless(t, h, err, 2)
}
