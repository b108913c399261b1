package memory

import (
	"fmt"
	"strings"
	"time"
)

// Reason is the machine-readable kind of an error: ErrorInfo.reason on the wire.
// Programs decide on reasons, never on text.
type Reason string

// The reasons of SPEC 4.3 and 13.
const (
	ReasonNotFound          Reason = "NOT_FOUND"
	ReasonAlreadyExists     Reason = "ALREADY_EXISTS"
	ReasonETagMismatch      Reason = "ETAG_MISMATCH"
	ReasonSecretDetected    Reason = "SECRET_DETECTED"
	ReasonInvalidPath       Reason = "INVALID_PATH"
	ReasonInvalidContent    Reason = "INVALID_CONTENT"
	ReasonInvalidArgument   Reason = "INVALID_ARGUMENT"
	ReasonPathCollision     Reason = "PATH_COLLISION"
	ReasonTypeNotShared     Reason = "TYPE_NOT_SHARED"
	ReasonMemoryTooLarge    Reason = "MEMORY_TOO_LARGE"
	ReasonCommitTooLarge    Reason = "COMMIT_TOO_LARGE"
	ReasonQuotaExceeded     Reason = "QUOTA_EXCEEDED"
	ReasonRevisionCompacted Reason = "REVISION_COMPACTED"
	ReasonEpochChanged      Reason = "EPOCH_CHANGED"
	ReasonPermissionDenied  Reason = "PERMISSION_DENIED"
	ReasonUnauthenticated   Reason = "UNAUTHENTICATED"
	ReasonRateLimited       Reason = "RATE_LIMITED"
	ReasonRequestIDReused   Reason = "REQUEST_ID_REUSED"
	ReasonRedacted          Reason = "REDACTED"
	ReasonUnavailable       Reason = "UNAVAILABLE"
	ReasonInternal          Reason = "INTERNAL"
)

// Violation is one broken rule, in one place. It never carries the offending
// secret or content; Path is the text the rule was applied to, cut to 256 bytes.
type Violation struct {
	Path        string
	Line        int // 1-based; 0 when the rule is about the whole file or its name
	Rule        string
	Message     string // what is wrong and what to do, in one sentence
	Fingerprint string // of a secret only
}

// String returns path:line: message (rule).
func (v Violation) String() string {
	where := v.Path
	if v.Line > 0 {
		where = fmt.Sprintf("%s:%d", v.Path, v.Line)
	}
	return fmt.Sprintf("%s: %s (%s)", where, v.Message, v.Rule)
}

// Error is the one error type of the domain. Two Errors match under errors.Is
// when their reasons are equal, so every Err… below matches any error of its
// reason, on both sides of the wire.
type Error struct {
	Reason  Reason
	Message string // for a person: operation, subject, what to do; never content or a secret
	// Violations lists every broken rule (INVALID_PATH, INVALID_CONTENT,
	// SECRET_DETECTED, TYPE_NOT_SHARED, MEMORY_TOO_LARGE, PATH_COLLISION).
	Violations []Violation
	// Current holds the hub's present memories, contents included, at the paths
	// whose precondition failed (ETAG_MISMATCH); a tombstone for a deleted one.
	Current []Memory
	// Head is where the hub stands (ETAG_MISMATCH, REVISION_COMPACTED, EPOCH_CHANGED).
	Head Cursor
	// RewindRevision is the last revision that the epoch shares with the one
	// before it (EPOCH_CHANGED).
	RewindRevision Revision
	// Oldest is the first revision still kept (REVISION_COMPACTED).
	Oldest Revision
	// RetryAfter says when to try again (RATE_LIMITED, UNAVAILABLE); 0 = the caller decides.
	RetryAfter time.Duration
	// RequestID finds the cause in the hub's log (INTERNAL).
	RequestID string
}

// Error returns the reason in words, the message, the violations, and the id under which
// the hub's log has the cause.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Message != "" {
		b.WriteString(e.Message)
	} else {
		b.WriteString(strings.ToLower(strings.ReplaceAll(string(e.Reason), "_", " ")))
	}
	for i, v := range e.Violations {
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString("; ")
		}
		if i == 5 {
			fmt.Fprintf(&b, "and %d more", len(e.Violations)-i)
			break
		}
		b.WriteString(v.String())
	}
	if e.RequestID != "" && e.Reason == ReasonInternal {
		b.WriteString(" " + e.RequestID)
	}
	return b.String()
}

// Is reports whether target is an *Error of the same reason.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Reason == e.Reason
}

// Sentinels, one a reason, for errors.Is.
var (
	ErrNotFound          = &Error{Reason: ReasonNotFound}
	ErrAlreadyExists     = &Error{Reason: ReasonAlreadyExists}
	ErrETagMismatch      = &Error{Reason: ReasonETagMismatch}
	ErrSecretDetected    = &Error{Reason: ReasonSecretDetected}
	ErrInvalidPath       = &Error{Reason: ReasonInvalidPath}
	ErrInvalidContent    = &Error{Reason: ReasonInvalidContent}
	ErrInvalidArgument   = &Error{Reason: ReasonInvalidArgument}
	ErrPathCollision     = &Error{Reason: ReasonPathCollision}
	ErrTypeNotShared     = &Error{Reason: ReasonTypeNotShared}
	ErrMemoryTooLarge    = &Error{Reason: ReasonMemoryTooLarge}
	ErrCommitTooLarge    = &Error{Reason: ReasonCommitTooLarge}
	ErrQuotaExceeded     = &Error{Reason: ReasonQuotaExceeded}
	ErrRevisionCompacted = &Error{Reason: ReasonRevisionCompacted}
	ErrEpochChanged      = &Error{Reason: ReasonEpochChanged}
	ErrPermissionDenied  = &Error{Reason: ReasonPermissionDenied}
	ErrUnauthenticated   = &Error{Reason: ReasonUnauthenticated}
	ErrRateLimited       = &Error{Reason: ReasonRateLimited}
	ErrRequestIDReused   = &Error{Reason: ReasonRequestIDReused}
	ErrRedacted          = &Error{Reason: ReasonRedacted}
	ErrUnavailable       = &Error{Reason: ReasonUnavailable}
	ErrInternal          = &Error{Reason: ReasonInternal}
)
