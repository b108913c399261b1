package memory

import "testing"

// TestInternalErrorNamesRequest gives whoever met an internal error the id to look for in
// the hub's log; other errors say themselves what to do.
func TestInternalErrorNamesRequest(t *testing.T) {
	for _, tc := range []struct {
		err  *Error
		want string
	}{
		{&Error{Reason: ReasonInternal, Message: "see the log under the request id", RequestID: "q-1"}, "see the log under the request id q-1"},
		{&Error{Reason: ReasonInternal, Message: "see the log"}, "see the log"},
		{&Error{Reason: ReasonNotFound, Message: "no such project", RequestID: "q-1"}, "no such project"},
	} {
		if got := tc.err.Error(); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
