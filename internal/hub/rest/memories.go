package rest

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/grpc-ecosystem/grpc-gateway/v2/utilities"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
)

const markdown = "text/markdown"

// memoryRef is a memory as a URL names it.
type memoryRef struct {
	parent string // teams/{team}/projects/{project}
	path   string
}

func (m memoryRef) name() string { return m.parent + "/memories/" + m.path }

// matchMemory reads /v1/teams/{team}/projects/{project}/memories/{path}, of which
// every segment may be percent-encoded. What the path holds, its parser judges.
func matchMemory(escaped string) (memoryRef, bool) {
	s := strings.Split(escaped, "/")
	if len(s) < 8 || s[0] != "" || s[1] != "v1" || s[2] != "teams" || s[4] != "projects" || s[6] != "memories" {
		return memoryRef{}, false
	}
	for i := range s {
		text, err := url.PathUnescape(s[i])
		if err != nil {
			return memoryRef{}, false
		}
		s[i] = text
	}
	return memoryRef{parent: strings.Join(s[2:6], "/"), path: strings.Join(s[7:], "/")}, true
}

// quote writes an etag as HTTP does.
func quote(etag string) string { return `"` + etag + `"` }

// isETag reports whether text can be a memory's etag: SHA-256 in lower-case hex.
func isETag(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// noneMatch reports whether If-None-Match names none of the present etag.
func noneMatch(header, etag string) bool {
	if header == "" {
		return true
	}
	for one := range strings.SplitSeq(header, ",") {
		one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
		if one == "*" || one == quote(etag) {
			return false
		}
	}
	return true
}

// wantsMarkdown reports whether the Accept header prefers the bare text. A plain
// "*/*" gets the resource.
func wantsMarkdown(r *http.Request) bool {
	for one := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		switch kind, _, err := mime.ParseMediaType(one); {
		case err != nil:
		case kind == markdown, kind == "text/plain", kind == "text/*":
			return true
		case kind == "application/json":
			return false
		}
	}
	return false
}

func (f *Front) getMemory(w http.ResponseWriter, r *http.Request, m memoryRef) {
	req := &memsvcv1.GetMemoryRequest{Name: m.name()}
	if text := r.URL.Query().Get("revision"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			f.fail(w, r, http.StatusBadRequest, codes.InvalidArgument, "revision: want a decimal number")
			return
		}
		req.Revision = n
	}
	var md metadata.MD
	res, err := f.api.GetMemory(f.outgoing(r), req, grpc.Header(&md))
	copyRequestID(w, md)
	if err != nil {
		f.failed(w, r, err)
		return
	}
	got := res.GetMemory()
	w.Header().Set("ETag", quote(got.GetEtag()))
	w.Header().Set("Memsvc-Revision", strconv.FormatInt(got.GetRevision(), 10))
	w.Header().Set("Vary", "Accept")
	if !noneMatch(r.Header.Get("If-None-Match"), got.GetEtag()) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if wantsMarkdown(r) {
		w.Header().Set("Content-Type", markdown+"; charset=utf-8")
		w.Header().Set("Last-Modified", got.GetModifyTime().AsTime().UTC().Format(http.TimeFormat))
		f.write(w, r, http.StatusOK, got.GetContent())
		return
	}
	f.writeMessage(w, r, http.StatusOK, got)
}

// listMemories answers the list itself: to the gateway the collection looks like a
// memory with an empty path.
func (f *Front) listMemories(w http.ResponseWriter, r *http.Request, project string) {
	req := &memsvcv1.ListMemoriesRequest{}
	fixed := utilities.NewDoubleArray([][]string{{"parent"}})
	if err := runtime.PopulateQueryParameters(req, r.URL.Query(), fixed); err != nil {
		f.fail(w, r, http.StatusBadRequest, codes.InvalidArgument, "a parameter is not what the list takes; /openapi.json describes it")
		return
	}
	req.Parent = project
	var md metadata.MD
	res, err := f.api.ListMemories(f.outgoing(r), req, grpc.Header(&md))
	copyRequestID(w, md)
	if err != nil {
		f.failed(w, r, err)
		return
	}
	f.writeMessage(w, r, http.StatusOK, res)
}

func (f *Front) write(w http.ResponseWriter, r *http.Request, code int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	if r.Method == http.MethodHead {
		return
	}
	if _, err := w.Write(body); err != nil {
		f.log.Debug("REST: client went away", "error", err.Error())
	}
}

func (f *Front) writeMessage(w http.ResponseWriter, r *http.Request, code int, m proto.Message) {
	body, err := marshaler().Marshal(m)
	if err != nil {
		f.log.Error("REST: an answer cannot be written", "error", err.Error())
		f.fail(w, r, http.StatusInternalServerError, codes.Internal, "internal error")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	f.write(w, r, code, append(body, '\n'))
}

// precondition reads If-Match and If-None-Match of a write. An If-Match of "*" needs
// the present etag, which star asks for.
func precondition(r *http.Request, star func() (string, error)) (*memsvcv1.Precondition, error) {
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	switch {
	case match != "" && none != "":
		return nil, errors.New("If-Match and If-None-Match: give one")
	case none == "*":
		return &memsvcv1.Precondition{Condition: &memsvcv1.Precondition_MustNotExist{MustNotExist: true}}, nil
	case none != "":
		return nil, errors.New(`If-None-Match: a write takes "*" only`)
	case match == "*":
		etag, err := star()
		return &memsvcv1.Precondition{Condition: &memsvcv1.Precondition_Etag{Etag: etag}}, err
	case match != "":
		etag, ok := strings.CutPrefix(match, `"`)
		etag, ok2 := strings.CutSuffix(etag, `"`)
		if !ok || !ok2 || !isETag(etag) {
			return nil, errors.New(`If-Match: want one strong etag, as the ETag header gave it: 64 digits of lower-case hex in double quotes`)
		}
		return &memsvcv1.Precondition{Condition: &memsvcv1.Precondition_Etag{Etag: etag}}, nil
	}
	return nil, nil
}

// putBody is what a JSON body of PUT may hold.
func readPut(r *http.Request) (*memsvcv1.PutAction, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && (kind == markdown || kind == "text/plain"):
		return &memsvcv1.PutAction{Content: body}, nil
	case err == nil && kind == "application/json":
		put := &memsvcv1.PutAction{}
		if err := protojson.Unmarshal(body, put); err != nil {
			// The library's text may quote the body, which is the memory.
			return nil, errors.New(`body: want {"content": BASE64, "modifyTime": TIME} as JSON`)
		}
		return put, nil
	}
	return nil, errUnsupported
}

var errUnsupported = errors.New("content type: send text/markdown or text/plain with the text, or application/json with {\"content\": BASE64}")

func (f *Front) putMemory(w http.ResponseWriter, r *http.Request, m memoryRef) {
	put, err := readPut(r)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		f.fail(w, r, http.StatusRequestEntityTooLarge, codes.InvalidArgument, "the body is too large")
		return
	case errors.Is(err, errUnsupported):
		f.fail(w, r, http.StatusUnsupportedMediaType, codes.InvalidArgument, err.Error())
		return
	case err != nil:
		f.fail(w, r, http.StatusBadRequest, codes.InvalidArgument, err.Error())
		return
	}
	res, ok := f.commit(w, r, m, &memsvcv1.Change{Path: m.path, Action: &memsvcv1.Change_Put{Put: put}})
	if !ok {
		return
	}
	if !res.GetCreated() {
		// Unchanged bytes, or a request id seen before: the memory as it stands.
		got, err := f.api.GetMemory(f.outgoing(r), &memsvcv1.GetMemoryRequest{Name: m.name()})
		if err != nil {
			f.failed(w, r, err)
			return
		}
		got.GetMemory().Content, got.GetMemory().Warnings = nil, res.GetWarnings()
		w.Header().Set("ETag", quote(got.GetMemory().GetEtag()))
		w.Header().Set("Memsvc-Revision", strconv.FormatInt(got.GetMemory().GetRevision(), 10))
		f.writeMessage(w, r, http.StatusOK, got.GetMemory())
		return
	}
	c := res.GetCommit()
	for _, ch := range c.GetChanges() {
		if ch.GetPath() != m.path {
			continue
		}
		code := http.StatusOK
		if ch.GetPreviousEtag() == "" {
			code = http.StatusCreated
		}
		w.Header().Set("ETag", quote(ch.GetEtag()))
		w.Header().Set("Memsvc-Revision", strconv.FormatInt(c.GetRevision(), 10))
		f.writeMessage(w, r, code, &memsvcv1.Memory{
			Name: m.name(), Path: m.path, Etag: ch.GetEtag(), SizeBytes: ch.GetSizeBytes(), Revision: c.GetRevision(),
			ModifyTime: ch.GetModifyTime(), CommitTime: c.GetCommitTime(), Author: c.GetAuthor(), Warnings: res.GetWarnings(),
		})
		return
	}
	f.fail(w, r, http.StatusInternalServerError, codes.Internal, "the commit does not name the memory")
}

func (f *Front) deleteMemory(w http.ResponseWriter, r *http.Request, m memoryRef) {
	res, ok := f.commit(w, r, m, &memsvcv1.Change{Path: m.path, Action: &memsvcv1.Change_Delete{Delete: &memsvcv1.DeleteAction{}}})
	if !ok {
		return
	}
	if !res.GetCreated() {
		f.fail(w, r, http.StatusNotFound, codes.NotFound, "no such memory")
		return
	}
	w.Header().Set("Memsvc-Revision", strconv.FormatInt(res.GetCommit().GetRevision(), 10))
	w.WriteHeader(http.StatusNoContent)
}

// commit makes a commit of one change; when it cannot, it has answered.
func (f *Front) commit(w http.ResponseWriter, r *http.Request, m memoryRef, change *memsvcv1.Change) (*memsvcv1.CommitChangesResponse, bool) {
	var callErr error
	pre, err := precondition(r, func() (string, error) {
		got, err := f.api.GetMemory(f.outgoing(r), &memsvcv1.GetMemoryRequest{Name: m.name()})
		callErr = err
		return got.GetMemory().GetEtag(), err
	})
	if callErr != nil {
		f.failed(w, r, callErr)
		return nil, false
	}
	if err != nil {
		f.fail(w, r, http.StatusBadRequest, codes.InvalidArgument, err.Error())
		return nil, false
	}
	change.Precondition = pre
	q := r.URL.Query()
	var md metadata.MD
	res, err := f.api.CommitChanges(f.outgoing(r), &memsvcv1.CommitChangesRequest{
		Parent: m.parent, Changes: []*memsvcv1.Change{change}, Message: q.Get("message"), RequestId: q.Get("requestId"),
		Author: &memsvcv1.Author{Client: "rest"},
	}, grpc.Header(&md))
	copyRequestID(w, md)
	if err != nil {
		f.failed(w, r, err)
		return nil, false
	}
	return res, true
}
