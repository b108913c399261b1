// Package wire is the only translation between the domain (package memory) and the
// contract (package memsvcv1): values in both directions, and errors to gRPC
// statuses and back.
//
// Values survive the trip: XFromProto(XToProto(v)) equals v, except that an empty
// content and no content are one thing on the wire, and that times come back in
// UTC. What comes from the other side is checked: a path through memory.ParsePath,
// an etag, a time, a count, an enum value. What does not fit is a
// memory.ErrInvalidArgument or memory.ErrInvalidPath that names the field; nothing
// is guessed or defaulted.
//
// Errors keep their identity: for every *memory.Error e,
// errors.Is(FromStatus(ToStatus(e, id)), e), with violations, current memories,
// cursor and revisions as they were.
package wire
