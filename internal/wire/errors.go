package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
)

// internalMessage is all that a caller learns of an unknown cause, beside the
// request id.
const internalMessage = "internal error; the hub's log has the cause under the request id"

// ToStatus returns err as a status; nil is OK. requestID is the id under which the
// hub's log knows the request; it goes into every answer.
//
// A *memory.Error anywhere in err's chain keeps its reason, message and details;
// what wraps it stays here. A context's end becomes CANCELLED or DEADLINE_EXCEEDED.
// A status that the gRPC library made keeps code and message. Everything else is
// INTERNAL and says nothing but the request id.
func ToStatus(err error, requestID string) *status.Status {
	if err == nil {
		return nil
	}
	var e *memory.Error
	if errors.As(err, &e) {
		return domainStatus(e, requestID)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return status.New(codes.Canceled, "the caller went away")
	case errors.Is(err, context.DeadlineExceeded):
		return status.New(codes.DeadlineExceeded, "the call took longer than its deadline")
	}
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		st := s.GRPCStatus()
		switch st.Code() {
		case codes.OK, codes.Unknown, codes.Internal, codes.DataLoss:
		default:
			return status.New(st.Code(), validUTF8(st.Message()))
		}
	}
	return domainStatus(&memory.Error{Reason: memory.ReasonInternal}, requestID)
}

func domainStatus(e *memory.Error, requestID string) *status.Status {
	code, known := codeOf(e.Reason)
	if !known || e.Reason == memory.ReasonInternal {
		// The message of an internal error is for the log.
		e = &memory.Error{Reason: memory.ReasonInternal, Message: internalMessage, RequestID: e.RequestID}
	}
	if e.RequestID != "" {
		requestID = e.RequestID
	}
	details := []protoadapt.MessageV1{
		protoadapt.MessageV1Of(&errdetails.ErrorInfo{Reason: string(e.Reason), Domain: Domain}),
	}
	if d := detailToProto(e, requestID); d != nil {
		details = append(details, protoadapt.MessageV1Of(d))
	}
	if e.RetryAfter > 0 {
		details = append(details, protoadapt.MessageV1Of(&errdetails.RetryInfo{RetryDelay: durationpb.New(e.RetryAfter)}))
	}
	st, err := status.New(code, message(e)).WithDetails(details...)
	if err != nil {
		// Only a text that is not UTF-8 cannot be marshalled, and all are repaired.
		return status.New(codes.Internal, internalMessage)
	}
	return st
}

// message is the text of a status. It is never empty: a reason alone is put in
// words, so that a person at a terminal is told something.
func message(e *memory.Error) string {
	if e.Message != "" {
		return validUTF8(e.Message)
	}
	return reasonInWords(e.Reason)
}

func reasonInWords(r memory.Reason) string {
	return strings.ToLower(strings.ReplaceAll(string(r), "_", " "))
}

// FromError returns the domain's error for what a gRPC call returned: a status
// becomes what FromStatus says. Any other error is returned as it is, and nil is nil.
func FromError(err error) error {
	if err == nil {
		return nil
	}
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		return FromStatus(s.GRPCStatus())
	}
	return err
}

// FromStatus returns the error that st stands for; OK is nil. Statuses of the hub
// become the *memory.Error they were made from. A reason that this program does not
// know, and a status of someone else, become the *memory.Error nearest to the code.
// CANCELLED and DEADLINE_EXCEEDED match context.Canceled and
// context.DeadlineExceeded under errors.Is. Details that do not parse are left
// out, never guessed: the reason alone tells the caller what to do.
func FromStatus(st *status.Status) error {
	switch st.Code() {
	case codes.OK:
		return nil
	case codes.Canceled:
		return fmt.Errorf("%s: %w", st.Message(), context.Canceled)
	case codes.DeadlineExceeded:
		return fmt.Errorf("%s: %w", st.Message(), context.DeadlineExceeded)
	}
	e := &memory.Error{Reason: bareReason(st.Code()), Message: st.Message()}
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			reason := memory.Reason(d.GetReason())
			if _, known := codeOf(reason); known && d.GetDomain() == Domain {
				e.Reason = reason
			}
		case *memsvcv1.ErrorDetail:
			detailFromProto(e, d)
		case *errdetails.RetryInfo:
			e.RetryAfter = retryDelay(d)
		}
	}
	if e.Message == reasonInWords(e.Reason) {
		e.Message = "" // there was none: see message
	}
	return e
}

// Answered reports whether an error of a call is a hub's answer, and not the transport's
// own: only a hub says its reason.
func Answered(err error) bool {
	st, ok := status.FromError(err)
	if !ok {
		return false
	}
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetDomain() == Domain {
			return true
		}
	}
	return false
}

// maxRetryAfter bounds what a hub can make a client wait.
const maxRetryAfter = time.Hour

func retryDelay(info *errdetails.RetryInfo) time.Duration {
	d := info.GetRetryDelay()
	if d.CheckValid() != nil {
		return 0
	}
	return min(max(d.AsDuration(), 0), maxRetryAfter)
}

// ReasonOf returns the reason of a status, as FromStatus would; "" for OK and for
// a call that its caller ended.
func ReasonOf(st *status.Status) memory.Reason {
	var e *memory.Error
	if errors.As(FromStatus(st), &e) {
		return e.Reason
	}
	return ""
}

// ProjectStatusToProto returns err as the status of one project inside a watch,
// with the same reason and details as ToStatus. A delay to retry after does not
// travel here: the stream goes on.
func ProjectStatusToProto(err error, requestID string) *memsvcv1.ProjectStatus {
	var e *memory.Error
	if !errors.As(err, &e) {
		e = &memory.Error{Reason: memory.ReasonInternal}
	}
	if _, known := codeOf(e.Reason); !known || e.Reason == memory.ReasonInternal {
		e = &memory.Error{Reason: memory.ReasonInternal, Message: internalMessage, RequestID: e.RequestID}
	}
	if e.RequestID != "" {
		requestID = e.RequestID
	}
	return &memsvcv1.ProjectStatus{
		Reason:  string(e.Reason),
		Message: message(e),
		Detail:  detailToProto(e, requestID),
	}
}

// ProjectStatusFromProto returns the error that s stands for. It is never nil: a
// project status says that the project cannot be followed. A reason that this
// program does not know is an ErrInternal that names it.
func ProjectStatusFromProto(s *memsvcv1.ProjectStatus) error {
	e := &memory.Error{Reason: memory.Reason(s.GetReason()), Message: s.GetMessage()}
	if _, known := codeOf(e.Reason); !known {
		e.Reason = memory.ReasonInternal
		e.Message = fmt.Sprintf("unknown reason %.64q: %s", s.GetReason(), s.GetMessage())
	}
	detailFromProto(e, s.GetDetail())
	if e.Message == reasonInWords(e.Reason) {
		e.Message = ""
	}
	return e
}

func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
