package wire

import (
	"google.golang.org/grpc/codes"

	"github.com/memsvc/memsvc/internal/memory"
)

// Domain is ErrorInfo.domain of every error of the hub.
const Domain = "memsvc.v1"

// kind joins one reason of the domain with its canonical code.
type kind struct {
	reason memory.Reason
	code   codes.Code
	// bare marks the one reason that stands for a status of this code that has
	// no ErrorInfo of ours: made by the gRPC library, a proxy, or a newer hub.
	bare bool
}

// kinds is the one table for both directions. Several reasons share a code, so
// programs decide on the reason; the code serves tools that know only gRPC.
var kinds = []kind{
	{reason: memory.ReasonNotFound, code: codes.NotFound, bare: true},
	{reason: memory.ReasonAlreadyExists, code: codes.AlreadyExists, bare: true},
	// ABORTED: read again, merge, and send again.
	{reason: memory.ReasonETagMismatch, code: codes.Aborted},
	// INVALID_ARGUMENT: wrong whatever the hub's state; sending it again is useless.
	{reason: memory.ReasonInvalidArgument, code: codes.InvalidArgument, bare: true},
	{reason: memory.ReasonInvalidPath, code: codes.InvalidArgument},
	{reason: memory.ReasonInvalidContent, code: codes.InvalidArgument},
	{reason: memory.ReasonTypeNotShared, code: codes.InvalidArgument},
	{reason: memory.ReasonMemoryTooLarge, code: codes.InvalidArgument},
	{reason: memory.ReasonCommitTooLarge, code: codes.InvalidArgument},
	// FAILED_PRECONDITION: wrong in the hub's present state or policy.
	{reason: memory.ReasonSecretDetected, code: codes.FailedPrecondition},
	{reason: memory.ReasonPathCollision, code: codes.FailedPrecondition},
	{reason: memory.ReasonEpochChanged, code: codes.FailedPrecondition},
	{reason: memory.ReasonRequestIDReused, code: codes.FailedPrecondition},
	{reason: memory.ReasonRedacted, code: codes.FailedPrecondition},
	{reason: memory.ReasonRevisionCompacted, code: codes.OutOfRange},
	{reason: memory.ReasonQuotaExceeded, code: codes.ResourceExhausted},
	{reason: memory.ReasonRateLimited, code: codes.ResourceExhausted},
	{reason: memory.ReasonPermissionDenied, code: codes.PermissionDenied, bare: true},
	{reason: memory.ReasonUnauthenticated, code: codes.Unauthenticated, bare: true},
	{reason: memory.ReasonUnavailable, code: codes.Unavailable, bare: true},
	{reason: memory.ReasonInternal, code: codes.Internal, bare: true},
}

// codeOf returns the code of a reason; ok is false for one that is not in the table.
func codeOf(reason memory.Reason) (code codes.Code, ok bool) {
	for _, k := range kinds {
		if k.reason == reason {
			return k.code, true
		}
	}
	return codes.Internal, false
}

// bareReason returns the reason of a status that has no ErrorInfo of ours. Codes
// that no row claims say nothing a caller could act on: they are INTERNAL, except
// that ABORTED without a reason asks for another attempt, and that
// FAILED_PRECONDITION and OUT_OF_RANGE blame the request.
func bareReason(code codes.Code) memory.Reason {
	for _, k := range kinds {
		if k.code == code && k.bare {
			return k.reason
		}
	}
	switch code {
	case codes.Aborted:
		return memory.ReasonUnavailable
	case codes.FailedPrecondition, codes.OutOfRange:
		return memory.ReasonInvalidArgument
	}
	return memory.ReasonInternal
}
