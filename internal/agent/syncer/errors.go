package syncer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// stepError says which step of a cycle failed, and on what.
type stepError struct {
	step string
	path memory.Path
	err  error
}

// Error returns "step path: cause".
func (e *stepError) Error() string {
	if e.path != "" {
		return fmt.Sprintf("%s %s: %v", e.step, e.path, e.err)
	}
	return fmt.Sprintf("%s: %v", e.step, e.err)
}

// Unwrap returns the cause.
func (e *stepError) Unwrap() error { return e.err }

// ErrorClass says whether trying again by itself can help.
type ErrorClass uint8

// The classes of a cycle's error.
const (
	// ClassNone: no error.
	ClassNone ErrorClass = iota
	// Transient: try again, backing off.
	Transient
	// Permanent: pointless until a person changes something (credential,
	// permission, project, disk).
	Permanent
)

// String returns "", "transient" or "permanent".
func (c ErrorClass) String() string {
	switch c {
	case Transient:
		return "transient"
	case Permanent:
		return "permanent"
	case ClassNone:
	}
	return ""
}

// Classify sorts an error of Cycle. Of several joined errors the worst counts, so
// that a bad token is not hidden behind a passing trouble.
func Classify(err error) ErrorClass {
	if err == nil {
		return ClassNone
	}
	for _, permanent := range [...]error{
		memory.ErrUnauthenticated, memory.ErrPermissionDenied, memory.ErrNotFound, memory.ErrInvalidArgument,
	} {
		if errors.Is(err, permanent) {
			return Permanent
		}
	}
	return Transient
}

// RetryAfter returns how long the hub asked to be left alone; 0 = it did not say.
func RetryAfter(err error) time.Duration {
	if e := (*memory.Error)(nil); errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled)
}
