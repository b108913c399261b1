package rpc

import (
	"errors"
	"fmt"
	"strings"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
)

// newValidator returns what checks messages against the bounds in the contract. It
// compiles the rules of every request now, so that no call waits for it.
func newValidator() (func(any) error, error) {
	var requests []protoreflect.MessageDescriptor
	for _, file := range []protoreflect.FileDescriptor{memsvcv1.File_memsvc_v1_memory_service_proto, memsvcv1.File_memsvc_v1_admin_service_proto} {
		for i := range file.Messages().Len() {
			if d := file.Messages().Get(i); strings.HasSuffix(string(d.Name()), "Request") {
				requests = append(requests, d)
			}
		}
	}
	v, err := protovalidate.New(protovalidate.WithMessageDescriptors(requests...))
	if err != nil {
		return nil, fmt.Errorf("rules of the contract: %w", err)
	}
	return func(m any) error {
		msg, ok := m.(proto.Message)
		if !ok {
			return nil
		}
		return asDomain(v.Validate(msg))
	}, nil
}

// maxTold bounds the fields named in one answer.
const maxTold = 5

// asDomain names the fields and rules that were broken, never a field's value.
func asDomain(err error) error {
	var broken *protovalidate.ValidationError
	if !errors.As(err, &broken) {
		return err
	}
	var told []string
	for i, v := range broken.Violations {
		if field := protovalidate.FieldPathString(v.Proto.GetField()); field == "changes" && v.Proto.GetRuleId() == "repeated.max_items" {
			return &memory.Error{Reason: memory.ReasonCommitTooLarge, Message: fmt.Sprintf("commit: more than %d changes; send several commits", memory.MaxCommitChanges)}
		}
		if i == maxTold {
			told = append(told, fmt.Sprintf("and %d more", len(broken.Violations)-i))
			break
		}
		told = append(told, protovalidate.FieldPathString(v.Proto.GetField())+": "+v.Proto.GetMessage())
	}
	return &memory.Error{Reason: memory.ReasonInvalidArgument, Message: "invalid request: " + strings.Join(told, "; ")}
}
