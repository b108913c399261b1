package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
)

// matchCollection reads /v1/teams/{team}/projects/{project}/{collection}.
func matchCollection(escaped, collection string) (project string, ok bool) {
	s := strings.Split(escaped, "/")
	if len(s) != 7 || s[0] != "" || s[1] != "v1" || s[2] != "teams" || s[4] != "projects" {
		return "", false
	}
	for i := range s {
		text, err := url.PathUnescape(s[i])
		if err != nil {
			return "", false
		}
		s[i] = text
	}
	return strings.Join(s[2:6], "/"), s[6] == collection
}

// watchRequest reads where a watch starts: after a revision, which a browser's
// reconnection names in Last-Event-ID, or at the head when none is named.
func watchRequest(r *http.Request, project string) (*memsvcv1.WatchMemoriesRequest, error) {
	q := r.URL.Query()
	p := &memsvcv1.WatchedProject{Project: project, Start: memsvcv1.WatchStart_WATCH_START_HEAD}
	after := q.Get("afterRevision")
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		after = id
	}
	if after != "" {
		n, err := strconv.ParseInt(after, 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("afterRevision: want a decimal number from 0")
		}
		p.Start = memsvcv1.WatchStart_WATCH_START_AFTER_CURSOR
		p.Cursor = &memsvcv1.Cursor{Revision: n, Epoch: q.Get("epoch")}
	}
	req := &memsvcv1.WatchMemoriesRequest{Projects: []*memsvcv1.WatchedProject{p}}
	if text := q.Get("metadataOnly"); text != "" {
		only, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("metadataOnly: want true or false")
		}
		req.MetadataOnly = only
	}
	return req, nil
}

// watch streams one project: an event a line as JSON, or as server-sent events when
// the client accepts them.
func (f *Front) watch(w http.ResponseWriter, r *http.Request, project string) {
	req, err := watchRequest(r, project)
	if err != nil {
		f.fail(w, r, http.StatusBadRequest, codes.InvalidArgument, err.Error())
		return
	}
	stream, err := f.api.WatchMemories(f.outgoing(r), req)
	if err != nil {
		f.failed(w, r, err)
		return
	}
	first, err := stream.Recv()
	if md, merr := stream.Header(); merr == nil {
		copyRequestID(w, md)
	}
	if err != nil {
		f.failed(w, r, err)
		return
	}
	if s := first.GetStatus(); s != nil {
		st := fromProjectStatus(s)
		f.writeStatus(w, r, httpStatus(st), st)
		return
	}
	out := &eventWriter{w: w, control: http.NewResponseController(w), sse: strings.Contains(r.Header.Get("Accept"), "text/event-stream")}
	out.begin()
	for ev := first; ; {
		if err := out.event(ev); err != nil {
			f.log.Debug("REST: watcher went away", "error", err.Error())
			return
		}
		if ev.GetStatus() != nil {
			return // nothing follows for the only project
		}
		if ev, err = stream.Recv(); err != nil {
			out.end(status.Convert(err))
			return
		}
	}
}

// errorDomain is the domain of the contract's reasons, as in the statuses of calls.
const errorDomain = "memsvc.v1"

// fromProjectStatus returns what would have been the status of a call.
func fromProjectStatus(s *memsvcv1.ProjectStatus) *status.Status {
	code := codes.FailedPrecondition
	switch memory.Reason(s.GetReason()) {
	case memory.ReasonNotFound:
		code = codes.NotFound
	case memory.ReasonPermissionDenied:
		code = codes.PermissionDenied
	case memory.ReasonRevisionCompacted:
		code = codes.OutOfRange
	case memory.ReasonInternal:
		code = codes.Internal
	}
	p := &spb.Status{Code: int32(code), Message: s.GetMessage()}
	if info, err := anypb.New(&errdetails.ErrorInfo{Reason: s.GetReason(), Domain: errorDomain}); err == nil {
		p.Details = append(p.Details, info)
	}
	if s.GetDetail() != nil {
		if detail, err := anypb.New(s.GetDetail()); err == nil {
			p.Details = append(p.Details, detail)
		}
	}
	return status.FromProto(p)
}

// eventWriter writes a watch's events in one of two forms.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	sse     bool
}

func (o *eventWriter) begin() {
	kind := "application/x-ndjson"
	if o.sse {
		kind = "text/event-stream"
	}
	o.w.Header().Set("Content-Type", kind)
	o.w.Header().Set("X-Accel-Buffering", "no") // proxies must not hold events back
	// The request is read; its deadline must not end the stream. A server that
	// cannot set it has none.
	_ = o.control.SetReadDeadline(time.Time{})
	o.w.WriteHeader(http.StatusOK)
}

// event writes one event and sends it. The reader has a while to take it.
func (o *eventWriter) event(ev *memsvcv1.WatchMemoriesResponse) error {
	data, err := protojson.Marshal(ev)
	if err != nil {
		return err
	}
	kind, id := "status", ""
	switch e := ev.GetEvent().(type) {
	case *memsvcv1.WatchMemoriesResponse_Commit:
		kind, id = "commit", strconv.FormatInt(e.Commit.GetRevision(), 10)
	case *memsvcv1.WatchMemoriesResponse_Bookmark:
		kind, id = "bookmark", strconv.FormatInt(e.Bookmark.GetRevision(), 10)
	case *memsvcv1.WatchMemoriesResponse_PolicyVersion:
		kind = "policy"
	}
	return o.write(kind, id, data)
}

// end writes why the stream ends, so that an end is never taken for a pause.
func (o *eventWriter) end(st *status.Status) {
	data, err := protojson.Marshal(st.Proto())
	if err != nil {
		return
	}
	// Whoever does not take it finds the connection closed.
	_ = o.write("error", "", append(append([]byte(`{"error":`), data...), '}'))
}

func (o *eventWriter) write(kind, id string, data []byte) error {
	_ = o.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // see begin
	var b strings.Builder
	b.Grow(len(data) + 64)
	if o.sse {
		if id != "" {
			b.WriteString("id: " + id + "\n")
		}
		b.WriteString("event: " + kind + "\ndata: ")
		b.Write(data)
		b.WriteString("\n\n")
	} else {
		b.Write(data)
		b.WriteByte('\n')
	}
	if _, err := o.w.Write([]byte(b.String())); err != nil {
		return err
	}
	return o.control.Flush()
}
