package wire

import (
	"math"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
)

// MaxErrorContent bounds the contents of current memories inside one error.
// Details travel in a header, and a Go client takes headers up to 16 MiB, base64
// included. Memories beyond the bound come without content: see Incomplete.
const MaxErrorContent = 1 << 20

// maxViolations bounds the violations of one message: two for each change of a full
// commit. What exceeds it is dropped; whoever mends the rest will see it next.
const maxViolations = 2 * memory.MaxCommitChanges

// Incomplete returns the paths of e's current memories whose content was too much
// for the error; ask for them with a batch get. A memory of zero bytes is complete.
func Incomplete(e *memory.Error) []memory.Path {
	var out []memory.Path
	for _, m := range e.Current {
		if !m.Deleted && m.Size > 0 && len(m.Content) == 0 {
			out = append(out, m.Path)
		}
	}
	return out
}

// detailToProto returns what e has beside its reason and message; nil if nothing.
func detailToProto(e *memory.Error, requestID string) *memsvcv1.ErrorDetail {
	d := &memsvcv1.ErrorDetail{
		Head:           CursorToProto(e.Head),
		RewindRevision: int64(e.RewindRevision),
		OldestRevision: int64(e.Oldest),
		RequestId:      validUTF8(requestID),
	}
	d.Violations = ViolationsToProto(e.Violations)
	room := MaxErrorContent
	for _, m := range e.Current {
		if len(m.Content) > room {
			m.Content = nil
		}
		room -= len(m.Content)
		d.Current = append(d.Current, memoryToProto(m))
	}
	empty := d.Head == nil && d.RewindRevision == 0 && d.OldestRevision == 0 &&
		d.RequestId == "" && len(d.Violations) == 0 && len(d.Current) == 0
	if empty {
		return nil
	}
	return d
}

// detailFromProto fills e with what of d parses.
func detailFromProto(e *memory.Error, d *memsvcv1.ErrorDetail) {
	if d == nil {
		return
	}
	e.Violations = append(e.Violations, ViolationsFromProto(d.GetViolations())...)
	for _, m := range d.GetCurrent() {
		if current, err := MemoryFromProto(m); err == nil {
			e.Current = append(e.Current, current)
		}
	}
	if head, err := CursorFromProto(d.GetHead()); err == nil {
		e.Head = head
	}
	if r, err := revisionFromProto("rewind_revision", d.GetRewindRevision()); err == nil {
		e.RewindRevision = r
	}
	if r, err := revisionFromProto("oldest_revision", d.GetOldestRevision()); err == nil {
		e.Oldest = r
	}
	e.RequestID = d.GetRequestId()
}

// ViolationsToProto translates violations or warnings, at most maxViolations of them.
func ViolationsToProto(vs []memory.Violation) []*memsvcv1.Violation {
	var out []*memsvcv1.Violation
	for _, v := range vs[:min(len(vs), maxViolations)] {
		out = append(out, violationToProto(v))
	}
	return out
}

// ViolationsFromProto is the way back. Paths are texts to be shown, and not parsed.
func ViolationsFromProto(vs []*memsvcv1.Violation) []memory.Violation {
	var out []memory.Violation
	for _, v := range vs {
		out = append(out, violationFromProto(v))
	}
	return out
}

// violationToProto does not check the path: it is the text that was to be one.
func violationToProto(v memory.Violation) *memsvcv1.Violation {
	return &memsvcv1.Violation{
		Path:        validUTF8(v.Path),
		Line:        int64(v.Line),
		Rule:        validUTF8(v.Rule),
		Message:     validUTF8(v.Message),
		Fingerprint: validUTF8(v.Fingerprint),
	}
}

func violationFromProto(v *memsvcv1.Violation) memory.Violation {
	line := v.GetLine()
	if line < 0 || line > math.MaxInt32 {
		line = 0 // no file has it; the rule still names the file
	}
	return memory.Violation{
		Path:        v.GetPath(),
		Line:        int(line),
		Rule:        v.GetRule(),
		Message:     v.GetMessage(),
		Fingerprint: v.GetFingerprint(),
	}
}
