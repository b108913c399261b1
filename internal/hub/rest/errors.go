package rest

import (
	"context"
	"math"
	"net/http"
	"regexp"
	"strconv"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/memsvc/memsvc/internal/memory"
)

// httpStatus returns the HTTP status of an error. Where HTTP has a word of its own
// for a reason, it wins over the code's.
func httpStatus(st *status.Status) int {
	switch reasonOf(st) {
	case memory.ReasonETagMismatch:
		return http.StatusPreconditionFailed
	case memory.ReasonMemoryTooLarge, memory.ReasonCommitTooLarge:
		return http.StatusRequestEntityTooLarge
	case memory.ReasonRevisionCompacted:
		return http.StatusGone
	case memory.ReasonEpochChanged, memory.ReasonPathCollision, memory.ReasonRequestIDReused:
		return http.StatusConflict
	}
	return runtime.HTTPStatusFromCode(st.Code())
}

func reasonOf(st *status.Status) memory.Reason {
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return memory.Reason(info.GetReason())
		}
	}
	return ""
}

// writeStatus answers with an error as google.rpc.Status in JSON.
func (f *Front) writeStatus(w http.ResponseWriter, r *http.Request, code int, st *status.Status) {
	body, err := protojson.Marshal(st.Proto())
	if err != nil {
		f.log.Error("REST: a status cannot be written", "error", err.Error())
		code, body = http.StatusInternalServerError, []byte(`{"code":13,"message":"internal error"}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Del("ETag")
	switch code {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="memsvc"`)
		h.Set("Connection", "close") // who has no credential keeps no connection
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		for _, d := range st.Details() {
			if info, ok := d.(*errdetails.RetryInfo); ok {
				h.Set("Retry-After", strconv.Itoa(int(math.Ceil(info.GetRetryDelay().AsDuration().Seconds()))))
			}
		}
	}
	w.WriteHeader(code)
	if r.Method == http.MethodHead {
		return
	}
	if _, err := w.Write(append(body, '\n')); err != nil {
		f.log.Debug("REST: client went away", "error", err.Error())
	}
}

// fail answers with an error of the front's own.
func (f *Front) fail(w http.ResponseWriter, r *http.Request, code int, c codes.Code, message string) {
	st := status.New(c, message)
	reason := memory.ReasonInvalidArgument
	switch c {
	case codes.NotFound:
		reason = memory.ReasonNotFound
	case codes.PermissionDenied:
		reason = memory.ReasonPermissionDenied
	case codes.Internal:
		reason = memory.ReasonInternal
	}
	if full, err := st.WithDetails(&errdetails.ErrorInfo{Reason: string(reason), Domain: errorDomain}); err == nil {
		st = full
	}
	f.writeStatus(w, r, code, st)
}

// decodeError matches what the JSON library says of a body that does not fit. The
// rest of its text may quote the body, which may be a memory.
var decodeError = regexp.MustCompile(`^proto:.*?\(line ([0-9]+:[0-9]+)\): (unknown field "[A-Za-z_]{1,40}"|invalid value|unexpected token|duplicate field|syntax error)?`)

// withoutBody returns st without what of a request's body its message may quote.
func withoutBody(st *status.Status) *status.Status {
	if st.Code() != codes.InvalidArgument || len(st.Details()) > 0 {
		return st
	}
	message := "the body or a parameter is not what the resource takes; /openapi.json describes it"
	if m := decodeError.FindStringSubmatch(st.Message()); m != nil {
		message = "body at line " + m[1] + ": "
		if m[2] == "" {
			message += "not what the resource takes"
		} else {
			message += m[2]
		}
		message += "; /openapi.json describes it"
	}
	bare := status.New(st.Code(), message)
	if full, err := bare.WithDetails(&errdetails.ErrorInfo{Reason: string(memory.ReasonInvalidArgument), Domain: errorDomain}); err == nil {
		return full
	}
	return bare
}

// failed answers with the error of a call.
func (f *Front) failed(w http.ResponseWriter, r *http.Request, err error) {
	st := status.Convert(err)
	f.writeStatus(w, r, httpStatus(st), st)
}

// gatewayError answers with an error of a call that the gateway made.
func (f *Front) gatewayError(ctx context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, err error) {
	if md, ok := runtime.ServerMetadataFromContext(ctx); ok {
		copyRequestID(w, md.HeaderMD)
	}
	st := withoutBody(status.Convert(err))
	f.writeStatus(w, r, httpStatus(st), st)
}

func (f *Front) routingError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, code int) {
	if allow := f.allowed(r.URL.EscapedPath()); allow != "" && (code == http.StatusNotFound || code == http.StatusMethodNotAllowed) {
		w.Header().Set("Allow", allow)
		code = http.StatusMethodNotAllowed
	}
	switch code {
	case http.StatusNotFound:
		f.fail(w, r, code, codes.NotFound, "no such resource; /openapi.json lists them")
	case http.StatusMethodNotAllowed:
		f.fail(w, r, code, codes.Unimplemented, "this resource does not know the method; /openapi.json lists them")
	default:
		f.fail(w, r, code, codes.InvalidArgument, http.StatusText(code))
	}
}

func copyRequestID(w http.ResponseWriter, md metadata.MD) {
	if v := md.Get(requestIDHeader); len(v) > 0 {
		w.Header().Set(requestIDHeader, v[0])
	}
}
