package rpc

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// encoded is a message whose bytes are made already. The first slice may be shared
// with other streams; none may be changed.
type encoded struct{ slices mem.BufferSlice }

// codec is gRPC's own for protobuf, except that encoded messages pass through it
// uncopied: a commit is marshalled once, however many watch.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

// Marshal returns the bytes of v.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if e, ok := v.(*encoded); ok {
		return e.slices, nil
	}
	return c.CodecV2.Marshal(v)
}
