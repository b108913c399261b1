package rest

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/memsvc/memsvc/internal/memory"
)

// unreadable stands for a credential that cannot be one; the hub refuses it as it
// refuses any that it does not know.
const unreadable = "unreadable"

// readable reports whether the path and the query of r are texts that a message of the
// contract can carry. If not it has answered: such a request never reaches the gRPC
// server, so the front gives it an id and logs it. A query that is not well-formed is
// left to the resource.
func (f *Front) readable(w http.ResponseWriter, r *http.Request) bool {
	if v := r.Header.Get("Authorization"); !isPrintable(v) {
		r.Header.Set("Authorization", unreadable)
	}
	if !utf8.ValidString(r.URL.Path) {
		f.refuse(w, r, memory.ReasonInvalidPath, "the path is not UTF-8; percent-encode the bytes of its UTF-8 form")
		return false
	}
	// What does not parse is left out of the values, and refused later.
	query, _ := url.ParseQuery(r.URL.RawQuery)
	for name, values := range query {
		for _, v := range append(values, name) {
			if !utf8.ValidString(v) {
				f.refuse(w, r, memory.ReasonInvalidArgument, "a parameter is not UTF-8; percent-encode the bytes of its UTF-8 form")
				return false
			}
		}
	}
	return true
}

// refuse answers 400 to a request that is not passed on, under an id that is in the
// answer and in the log. The text of the request is in neither.
func (f *Front) refuse(w http.ResponseWriter, r *http.Request, reason memory.Reason, message string) {
	id := rand.Text()
	w.Header().Set(requestIDHeader, id)
	f.log.Info("call failed", "method", boundMethod(r.Method), "request_id", id,
		"code", codes.InvalidArgument.String(), "reason", string(reason), "peer", r.RemoteAddr)
	st := status.New(codes.InvalidArgument, message)
	if full, err := st.WithDetails(&errdetails.ErrorInfo{Reason: string(reason), Domain: errorDomain}); err == nil {
		st = full
	}
	f.writeStatus(w, r, http.StatusBadRequest, st)
}
