package store

import (
	"errors"
	"fmt"

	"github.com/memsvc/memsvc/internal/memory"
)

// Invalid returns an ErrInvalidArgument.
func Invalid(format string, args ...any) error {
	return &memory.Error{Reason: memory.ReasonInvalidArgument, Message: fmt.Sprintf(format, args...)}
}

// NoProject returns the ErrNotFound of a project that was not created.
func NoProject(key memory.ProjectKey) error {
	return &memory.Error{Reason: memory.ReasonNotFound, Message: fmt.Sprintf("%s: no such project; create it first", key)}
}

// NoMemory returns the ErrNotFound of a path that does not exist, or did not at
// revision at (0 = now).
func NoMemory(key memory.ProjectKey, path memory.Path, at memory.Revision) error {
	msg := fmt.Sprintf("%s: no such memory", key.MemoryName(path))
	if at != 0 {
		msg += fmt.Sprintf(" at revision %d", at)
	}
	return &memory.Error{Reason: memory.ReasonNotFound, Message: msg}
}

// NoToken returns the ErrNotFound of an unknown token. The hash is not named.
func NoToken(id string) error {
	msg := "no such token"
	if id != "" {
		msg = fmt.Sprintf("token %s: no such token", id)
	}
	return &memory.Error{Reason: memory.ReasonNotFound, Message: msg}
}

// Exists returns an ErrAlreadyExists about subject.
func Exists(subject string) error {
	return &memory.Error{Reason: memory.ReasonAlreadyExists, Message: subject + " already exists"}
}

// BeyondHead returns the ErrInvalidArgument of a revision that was not made yet.
func BeyondHead(key memory.ProjectKey, at, head memory.Revision) error {
	return Invalid("%s: revision %d is beyond the head, which is %d", key, at, head)
}

// Compacted returns the ErrRevisionCompacted of a revision that is no longer kept.
func Compacted(key memory.ProjectKey, at, oldest memory.Revision, head memory.Cursor) error {
	return &memory.Error{
		Reason:  memory.ReasonRevisionCompacted,
		Message: fmt.Sprintf("%s: revision %d is no longer kept, the oldest is %d; list the present state instead", key, at, oldest),
		Head:    head,
		Oldest:  oldest,
	}
}

// Stale returns the ErrETagMismatch of a commit whose preconditions failed at the
// paths of current.
func Stale(key memory.ProjectKey, head memory.Cursor, current []memory.Memory) error {
	msg := fmt.Sprintf("%s: %d memories are not as the commit expects; merge with the present ones and try again", key, len(current))
	if len(current) == 1 {
		msg = fmt.Sprintf("%s is not as the commit expects; merge with the present one and try again", key.MemoryName(current[0].Path))
	}
	return &memory.Error{Reason: memory.ReasonETagMismatch, Message: msg, Current: current, Head: head}
}

// StaleSetting returns the ErrETagMismatch of a setting whose version moved on.
func StaleSetting(scope, name string, have int64) error {
	return &memory.Error{
		Reason:  memory.ReasonETagMismatch,
		Message: fmt.Sprintf("setting %q of %q is at version %d by now; read it again", name, scope, have),
	}
}

// RequestReused returns the ErrRequestIDReused of a request id that stands for
// another payload.
func RequestReused(key memory.ProjectKey) error {
	return &memory.Error{
		Reason:  memory.ReasonRequestIDReused,
		Message: fmt.Sprintf("commit to %s: the request id was used for another payload; take a fresh one", key),
	}
}

// Unavailable returns an ErrUnavailable: the operation could not be made durable
// and may be tried again. cause must not carry content.
func Unavailable(op string, cause error) error {
	return &unavailable{
		Err:   memory.Error{Reason: memory.ReasonUnavailable, Message: fmt.Sprintf("%s: the database could not complete it: %v; try again", op, cause)},
		cause: cause,
	}
}

// ErrNoRoom says that a copy could not be written because there is no room for it.
var ErrNoRoom = errors.New("no room on the disk")

// unavailable keeps the cause for logs beside the domain error for callers.
type unavailable struct {
	Err   memory.Error
	cause error
}

func (u *unavailable) Error() string   { return u.Err.Error() }
func (u *unavailable) Unwrap() []error { return []error{&u.Err, u.cause} }

func tooLarge(key memory.ProjectKey, what string) error {
	return &memory.Error{Reason: memory.ReasonCommitTooLarge, Message: fmt.Sprintf("commit to %s: %s; send several commits", key, what)}
}

func quota(key memory.ProjectKey, what string) error {
	return &memory.Error{Reason: memory.ReasonQuotaExceeded, Message: fmt.Sprintf("commit to %s: the project would hold %s; delete memories or ask for more", key, what)}
}

func collision(key memory.ProjectKey, pairs [][2]memory.Path) error {
	e := &memory.Error{Reason: memory.ReasonPathCollision, Message: fmt.Sprintf("commit to %s: paths collide", key)}
	for _, pair := range pairs {
		e.Violations = append(e.Violations, memory.Violation{
			Path:    string(pair[0]),
			Rule:    "path-collision",
			Message: fmt.Sprintf("cannot exist beside %q on every disk; rename one of them", pair[1]),
		})
	}
	return e
}
