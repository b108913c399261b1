package client_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/timestamppb"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// fakeHub keeps the histories of some projects and serves what a client needs of
// them, with faults that a real hub has only by accident.
type fakeHub struct {
	memsvcv1.UnimplementedMemoryServiceServer

	mu       sync.Mutex // guards what follows
	epoch    memory.Epoch
	projects map[memory.ProjectKey][]memory.Commit
	wake     chan struct{}
	fail     []error // answers of the next unary calls and streams, in order
	calls    int
	streams  int
	tokens   []string
	mute     bool // streams say nothing more
	bookmark time.Duration
	skew     time.Duration
}

func newFakeHub() *fakeHub {
	return &fakeHub{epoch: "e1", projects: map[memory.ProjectKey][]memory.Commit{}, wake: make(chan struct{}), bookmark: 20 * time.Millisecond}
}

// serve listens on loopback until the test ends, and returns the address and a stop.
func (h *fakeHub) serve(t *testing.T, addr string) (string, func()) {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(
		grpc.MaxRecvMsgSize(memory.MaxMessageBytes),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Millisecond, PermitWithoutStream: true}))
	memsvcv1.RegisterMemoryServiceServer(s, h)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(ln) }()
	var once sync.Once
	stop := func() { once.Do(func() { s.Stop(); <-done }) }
	t.Cleanup(stop)
	return ln.Addr().String(), stop
}

func (h *fakeHub) signal() {
	close(h.wake)
	h.wake = make(chan struct{})
}

// commit appends a commit of one change and returns it.
func (h *fakeHub) commit(key memory.ProjectKey, path, text string) memory.Commit {
	h.mu.Lock()
	defer h.mu.Unlock()
	log := h.projects[key]
	c := memory.Commit{Project: key, Revision: memory.Revision(len(log) + 1), Time: time.Unix(1e9, 0).UTC(), Changes: []memory.AppliedChange{{
		Path: memory.Path(path), Kind: memory.Put, Content: []byte(text), Size: int64(len(text)), ETag: memory.ETagOf([]byte(text)),
	}}}
	var parent memory.CommitID
	if len(log) > 0 {
		parent = log[len(log)-1].ID
	}
	c.ID = memory.NextCommitID(parent, h.epoch, &c)
	h.projects[key] = append(log, c)
	h.signal()
	return c
}

func (h *fakeHub) set(change func(*fakeHub)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
	h.signal()
}

func (h *fakeHub) count(what func(*fakeHub) int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return what(h)
}

// cursorAt returns the point after revision r; h.mu is held.
func (h *fakeHub) cursorAt(key memory.ProjectKey, r memory.Revision) memory.Cursor {
	c := memory.Cursor{Epoch: h.epoch, Revision: r}
	if r > 0 {
		c.CommitID = h.projects[key][r-1].ID
	}
	return c
}

// admit counts a call and takes the next planned failure.
func (h *fakeHub) admit(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	md, _ := metadata.FromIncomingContext(ctx)
	h.tokens = append(h.tokens, md.Get("authorization")...)
	if len(h.fail) > 0 {
		err := h.fail[0]
		h.fail = h.fail[1:]
		if err != nil {
			return wire.ToStatus(err, "r").Err()
		}
	}
	return nil
}

// check returns why a cursor cannot be followed; h.mu is held.
func (h *fakeHub) check(key memory.ProjectKey, c memory.Cursor) error {
	log, ok := h.projects[key]
	switch {
	case !ok:
		return memory.ErrNotFound
	case c == (memory.Cursor{}):
		return nil
	case c.Epoch != h.epoch || int(c.Revision) > len(log) || h.cursorAt(key, c.Revision).CommitID != c.CommitID:
		return &memory.Error{Reason: memory.ReasonEpochChanged, Head: h.cursorAt(key, memory.Revision(len(log)))}
	}
	return nil
}

func (h *fakeHub) GetProject(ctx context.Context, req *memsvcv1.GetProjectRequest) (*memsvcv1.GetProjectResponse, error) {
	if err := h.admit(ctx); err != nil {
		return nil, err
	}
	key, err := memory.ParseProjectKey(req.GetName())
	if err != nil {
		return nil, wire.ToStatus(err, "").Err()
	}
	seen, err := wire.CursorFromProto(req.GetCursor())
	if err != nil {
		return nil, wire.ToStatus(err, "").Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.check(key, seen); err != nil {
		return nil, wire.ToStatus(err, "").Err()
	}
	head := h.cursorAt(key, memory.Revision(len(h.projects[key])))
	return &memsvcv1.GetProjectResponse{Project: &memsvcv1.Project{Name: key.String(), Head: wire.CursorToProto(head), OldestRevision: 1}}, nil
}

func (h *fakeHub) WatchMemories(req *memsvcv1.WatchMemoriesRequest, s grpc.ServerStreamingServer[memsvcv1.WatchMemoriesResponse]) error {
	if err := h.admit(s.Context()); err != nil {
		return err
	}
	h.mu.Lock()
	h.streams++
	h.mu.Unlock()
	at := map[memory.ProjectKey]memory.Cursor{}
	for first := true; ; first = false {
		h.mu.Lock()
		wake := h.wake
		var out []*memsvcv1.WatchMemoriesResponse
		add := func(key memory.ProjectKey, r *memsvcv1.WatchMemoriesResponse) {
			r.Project, r.SendTime = key.String(), timestamppb.New(time.Now().Add(h.skew))
			out = append(out, r)
		}
		if first {
			for _, w := range req.GetProjects() {
				key, err := memory.ParseProjectKey(w.GetProject())
				if err != nil {
					h.mu.Unlock()
					return wire.ToStatus(err, "").Err()
				}
				c, _ := wire.CursorFromProto(w.GetCursor())
				if err := h.check(key, c); err != nil {
					add(key, &memsvcv1.WatchMemoriesResponse{Event: &memsvcv1.WatchMemoriesResponse_Status{Status: wire.ProjectStatusToProto(err, "")}})
					continue
				}
				if w.GetStart() == memsvcv1.WatchStart_WATCH_START_HEAD {
					c.Revision = memory.Revision(len(h.projects[key]))
				}
				at[key] = h.cursorAt(key, c.Revision)
				add(key, &memsvcv1.WatchMemoriesResponse{Event: &memsvcv1.WatchMemoriesResponse_Bookmark{Bookmark: wire.CursorToProto(at[key])}})
			}
		}
		mute := h.mute
		for key, c := range at {
			before := len(out)
			for _, commit := range h.projects[key][c.Revision:] {
				add(key, &memsvcv1.WatchMemoriesResponse{Event: &memsvcv1.WatchMemoriesResponse_Commit{Commit: wire.CommitToProto(commit)}})
			}
			at[key] = h.cursorAt(key, memory.Revision(len(h.projects[key])))
			if !first && len(out) == before {
				add(key, &memsvcv1.WatchMemoriesResponse{Event: &memsvcv1.WatchMemoriesResponse_Bookmark{Bookmark: wire.CursorToProto(at[key])}})
			}
		}
		every := h.bookmark
		h.mu.Unlock()
		for _, r := range out {
			if mute {
				break
			}
			if err := s.Send(r); err != nil {
				return err
			}
		}
		t := time.NewTimer(every)
		select {
		case <-s.Context().Done():
			t.Stop()
			return s.Context().Err()
		case <-wake:
			t.Stop()
		case <-t.C:
		}
	}
}

func (h *fakeHub) CommitChanges(ctx context.Context, req *memsvcv1.CommitChangesRequest) (*memsvcv1.CommitChangesResponse, error) {
	if err := h.admit(ctx); err != nil {
		return nil, err
	}
	key, err := memory.ParseProjectKey(req.GetParent())
	if err != nil {
		return nil, wire.ToStatus(err, "").Err()
	}
	ch := req.GetChanges()[0]
	c := h.commit(key, ch.GetPath(), string(ch.GetPut().GetContent()))
	return &memsvcv1.CommitChangesResponse{Commit: wire.CommitToProto(c), Created: true,
		Head: wire.CursorToProto(memory.Cursor{Epoch: h.epoch, Revision: c.Revision, CommitID: c.ID})}, nil
}
