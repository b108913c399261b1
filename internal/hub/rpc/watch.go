package rpc

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// sendTimeField and its parts are the numbers of WatchMemoriesResponse.send_time and
// google.protobuf.Timestamp in the contract.
const (
	sendTimeField    protowire.Number = 6
	timestampSeconds protowire.Number = 1
	timestampNanos   protowire.Number = 2
)

// WatchMemories streams what happens in the projects.
func (s *memoryServer) WatchMemories(req *memsvcv1.WatchMemoriesRequest, out grpc.ServerStreamingServer[memsvcv1.WatchMemoriesResponse]) error {
	ctx := out.Context()
	projects, err := watchedFromProto(req.GetProjects())
	if err != nil {
		return err
	}
	a := req.GetAgent()
	w, err := s.svc.Watch(ctx, call(ctx), projects, service.AgentInfo{ID: a.GetAgentId(), Machine: a.GetMachine(), Version: a.GetVersion()})
	if err != nil {
		return err
	}
	defer w.Close()
	opened := s.now()
	form := service.FullForm
	if req.GetMetadataOnly() {
		form = service.MetaForm
	}
	for {
		ev, err := w.Next(ctx)
		if err != nil {
			return err
		}
		if ev.Kind != service.EventCommit {
			if err := out.Send(s.eventToProto(ev, call(ctx).RequestID)); err != nil {
				return err
			}
			continue
		}
		shared, err := ev.Commit.Encoded(form, encodeForm(form == service.MetaForm))
		if err != nil {
			return err
		}
		now := s.now()
		// The commit's bytes are everyone's; only the time of sending is this one's.
		// Fields of a message may come in any order.
		msg := &encoded{slices: mem.BufferSlice{mem.SliceBuffer(shared.([]byte)), mem.SliceBuffer(sendTime(now))}}
		span := s.tracing.Follow(ev.Commit.Commit.Author.Session, "memsvc.deliver")
		if err := out.SendMsg(msg); err != nil {
			span.End("not delivered")
			return err
		}
		if span != nil {
			span.Set("memsvc.project", ev.Project.String())
			span.SetInt("memsvc.revision", int64(ev.Commit.Commit.Revision))
			span.End("")
		}
		// What was committed while the reader was away was not late.
		since := ev.Commit.Commit.Time
		if opened.After(since) {
			since = opened
		}
		s.svc.Observer.Delivered(max(0, now.Sub(since)))
	}
}

func watchedFromProto(in []*memsvcv1.WatchedProject) ([]service.WatchedProject, error) {
	out := make([]service.WatchedProject, len(in))
	for i, p := range in {
		var err error
		if out[i].Project, err = memory.ParseProjectKey(p.GetProject()); err != nil {
			return nil, err
		}
		if out[i].Cursor, err = wire.CursorFromProto(p.GetCursor()); err != nil {
			return nil, err
		}
		if out[i].Head, err = wire.StartsAtHead(p.GetStart()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *memoryServer) eventToProto(ev service.Event, requestID string) *memsvcv1.WatchMemoriesResponse {
	out := &memsvcv1.WatchMemoriesResponse{Project: ev.Project.String(), SendTime: wire.TimeToProto(s.now())}
	switch ev.Kind {
	case service.EventBookmark:
		cursor := wire.CursorToProto(ev.Cursor)
		if cursor == nil {
			cursor = &memsvcv1.Cursor{} // a bookmark before everything is a bookmark too
		}
		out.Event = &memsvcv1.WatchMemoriesResponse_Bookmark{Bookmark: cursor}
	case service.EventPolicy:
		out.Event = &memsvcv1.WatchMemoriesResponse_PolicyVersion{PolicyVersion: ev.Policy}
	case service.EventStatus:
		out.Event = &memsvcv1.WatchMemoriesResponse_Status{Status: wire.ProjectStatusToProto(service.ForCaller(ev), requestID)}
	}
	return out
}

// encodeForm returns what makes the bytes of a commit's message, without the time of
// sending.
func encodeForm(meta bool) func(*memory.Commit) (any, error) {
	return func(c *memory.Commit) (any, error) {
		m := wire.CommitToProto(*c)
		if meta {
			for _, ch := range m.GetChanges() {
				ch.Content = nil
			}
		}
		return proto.Marshal(&memsvcv1.WatchMemoriesResponse{
			Project: c.Project.String(),
			Event:   &memsvcv1.WatchMemoriesResponse_Commit{Commit: m},
		})
	}
}

// sendTime returns the bytes of the field send_time.
func sendTime(now time.Time) []byte {
	var ts [24]byte
	b := protowire.AppendTag(ts[:0], timestampSeconds, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(now.Unix()))
	b = protowire.AppendTag(b, timestampNanos, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(now.Nanosecond()))
	out := make([]byte, 0, len(b)+2)
	out = protowire.AppendTag(out, sendTimeField, protowire.BytesType)
	return protowire.AppendBytes(out, b)
}
