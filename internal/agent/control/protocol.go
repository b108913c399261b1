package control

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Version is the protocol's version; both ends must have the same.
const Version = 1

// Bounds of one message, in bytes of JSON. Responses hold diffs and listings.
const (
	MaxRequestBytes  = 4 << 20
	MaxResponseBytes = 64 << 20
)

// headTimeout bounds how long the daemon waits for a request and either end for the
// other to read.
const headTimeout = 10 * time.Second

// request is what a caller sends.
type request struct {
	Version int    `json:"version"`
	Method  string `json:"method"`
	// TimeoutMS is how long the caller will wait; 0 = as long as the call takes.
	TimeoutMS int64           `json:"timeout_ms,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
}

// response is what the daemon answers: an error or a result.
type response struct {
	Version int             `json:"version"`
	Error   *Error          `json:"error,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// Code is the machine-readable kind of an Error.
type Code string

// The codes of this package; handlers may add their own.
const (
	CodeInternal      Code = "INTERNAL"       // the handler failed
	CodeVersion       Code = "VERSION"        // the daemon speaks another version
	CodeUnknownMethod Code = "UNKNOWN_METHOD" // the daemon does not know the method
	CodeBadRequest    Code = "BAD_REQUEST"    // the request or its parameters cannot be read
	CodeTooLarge      Code = "TOO_LARGE"      // the answer exceeds MaxResponseBytes
	CodeDeadline      Code = "DEADLINE"       // the caller's time was up
)

// Error is what a handler answers instead of a result; the caller gets it back, so
// that errors.As finds it on both sides.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Is reports whether target is an *Error of the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// UnknownMethod is what a handler returns for a method it does not have.
func UnknownMethod(method string) error {
	return &Error{Code: CodeUnknownMethod, Message: fmt.Sprintf("the running daemon does not know %q; restart it if it is older than this command", method)}
}

var errTooLarge = errors.New("message too large")

// writeMessage writes v as JSON behind its length.
func writeMessage(w io.Writer, v any, limit int) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > limit {
		return errTooLarge
	}
	msg := make([]byte, 4+len(body))
	binary.BigEndian.PutUint32(msg, uint32(len(body)))
	copy(msg[4:], body)
	_, err = w.Write(msg)
	return err
}

// readMessage reads what writeMessage wrote. It allocates as bytes arrive, so a
// length alone takes no memory.
func readMessage(r io.Reader, v any, limit int) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if int64(n) > int64(limit) {
		return errTooLarge
	}
	body, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return err
	}
	if len(body) < int(n) {
		return io.ErrUnexpectedEOF
	}
	return json.Unmarshal(body, v)
}
