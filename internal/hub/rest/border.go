package rest

import (
	"net/http"

	"google.golang.org/grpc/codes"
)

// admit reports whether r may be answered at all; if not it has answered. It keeps
// out what a browser sends for a page that is not the hub's own: by a name that was
// made to point here, or from another origin to change something. No answer ever
// carries a header that lets a page of another origin read it.
func (f *Front) admit(w http.ResponseWriter, r *http.Request) bool {
	if !f.mayName(r.Host) {
		f.fail(w, r, http.StatusMisdirectedRequest, codes.InvalidArgument,
			"the hub is not called by that name; use its address, or have its admin allow the name with --allow-host")
		return false
	}
	if err := f.origins.Check(r); err != nil {
		f.fail(w, r, http.StatusForbidden, codes.PermissionDenied, "a page of another origin may change nothing here")
		return false
	}
	return true
}
