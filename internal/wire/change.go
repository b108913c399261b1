package wire

import (
	"errors"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
)

// ChangeToProto returns c on the wire. A kind that a writer may not ask for
// (Redact is the hub's own) is an ErrInvalidArgument. The message shares c's content.
func ChangeToProto(c memory.Change) (*memsvcv1.Change, error) {
	precondition, err := preconditionToProto(c.Precondition)
	if err != nil {
		return nil, err
	}
	out := &memsvcv1.Change{Path: string(c.Path), Precondition: precondition}
	switch c.Kind {
	case memory.Put:
		out.Action = &memsvcv1.Change_Put{Put: &memsvcv1.PutAction{
			Content:     c.Content,
			ModifyTime:  TimeToProto(c.ModTime),
			RenamedFrom: string(c.RenamedFrom),
		}}
	case memory.Delete:
		out.Action = &memsvcv1.Change_Delete{Delete: &memsvcv1.DeleteAction{}}
	default:
		return nil, invalid("change.action", "a writer can put or delete, not %s", c.Kind)
	}
	return out, nil
}

// ChangeFromProto returns c as a domain value. It shares c's content.
func ChangeFromProto(c *memsvcv1.Change) (memory.Change, error) {
	path, err := memory.ParsePath(c.GetPath())
	if err != nil {
		return memory.Change{}, err
	}
	out := memory.Change{Path: path}
	switch action := c.GetAction().(type) {
	case *memsvcv1.Change_Put:
		out.Kind = memory.Put
		out.Content = bytesOrNil(action.Put.GetContent())
		if out.ModTime, err = TimeFromProto("put.modify_time", action.Put.GetModifyTime()); err != nil {
			return memory.Change{}, err
		}
		if out.RenamedFrom, err = optionalPath(action.Put.GetRenamedFrom()); err != nil {
			return memory.Change{}, err
		}
	case *memsvcv1.Change_Delete:
		out.Kind = memory.Delete
	default:
		return memory.Change{}, invalid("change.action", "set put or delete")
	}
	out.Precondition, err = preconditionFromProto(c.GetPrecondition())
	if err != nil {
		return memory.Change{}, err
	}
	return out, nil
}

func preconditionToProto(p memory.Precondition) (*memsvcv1.Precondition, error) {
	switch p.Kind {
	case memory.Any:
		return nil, nil
	case memory.MustNotExist:
		return &memsvcv1.Precondition{Condition: &memsvcv1.Precondition_MustNotExist{MustNotExist: true}}, nil
	case memory.MustMatch:
		return &memsvcv1.Precondition{Condition: &memsvcv1.Precondition_Etag{Etag: string(p.ETag)}}, nil
	}
	return nil, invalid("change.precondition", "unknown kind %d", p.Kind)
}

func preconditionFromProto(p *memsvcv1.Precondition) (memory.Precondition, error) {
	switch condition := p.GetCondition().(type) {
	case nil:
		return memory.Precondition{}, nil
	case *memsvcv1.Precondition_MustNotExist:
		if !condition.MustNotExist {
			return memory.Precondition{}, nil
		}
		return memory.IfAbsent(), nil
	case *memsvcv1.Precondition_Etag:
		etag, err := ETagFromProto("precondition.etag", condition.Etag)
		if err != nil {
			return memory.Precondition{}, err
		}
		if etag == "" {
			return memory.Precondition{}, invalid("precondition.etag", "empty; use must_not_exist for a path that must not exist")
		}
		return memory.IfMatch(etag), nil
	}
	return memory.Precondition{}, invalid("change.precondition", "unknown condition")
}

// CommitToProto returns c on the wire; revision 0, which is no commit, is nil. The
// message shares the contents. A change of an invalid kind, which no store makes,
// travels as unspecified and is refused by CommitFromProto.
func CommitToProto(c memory.Commit) *memsvcv1.Commit {
	if c.Revision == 0 {
		return nil
	}
	out := &memsvcv1.Commit{
		Revision:   int64(c.Revision),
		CommitId:   string(c.ID),
		Author:     AuthorToProto(c.Author),
		CommitTime: TimeToProto(c.Time),
		Message:    c.Message,
	}
	out.Name = CommitName(c.Project, c.Revision)
	if len(c.Changes) > 0 {
		out.Changes = make([]*memsvcv1.CommittedChange, 0, len(c.Changes))
	}
	for _, change := range c.Changes {
		out.Changes = append(out.Changes, &memsvcv1.CommittedChange{
			Path:         string(change.Path),
			Kind:         changeKindToProto(change.Kind),
			Etag:         string(change.ETag),
			PreviousEtag: string(change.PreviousETag),
			Content:      change.Content,
			SizeBytes:    change.Size,
			ModifyTime:   TimeToProto(change.ModTime),
			RenamedFrom:  string(change.RenamedFrom),
		})
	}
	return out
}

// CommitFromProto returns c as a domain value; nil is the zero Commit, a project
// before its first one. It shares the contents. A change whose path ParsePath refuses
// stands in Unfit: the hub may be newer than this program, and the rest of its history
// must not wait for that.
func CommitFromProto(c *memsvcv1.Commit) (memory.Commit, error) {
	if c == nil {
		return memory.Commit{}, nil
	}
	project, revision, err := ParseCommitName(c.GetName())
	if err != nil {
		return memory.Commit{}, err
	}
	if revision == 0 {
		return memory.Commit{}, invalid("commit.revision", "0; revisions count from 1")
	}
	if int64(revision) != c.GetRevision() {
		return memory.Commit{}, invalid("commit.revision", "%d is not the one of the name, %d", c.GetRevision(), revision)
	}
	out := memory.Commit{
		Project:  project,
		Revision: revision,
		ID:       memory.CommitID(c.GetCommitId()),
		Author:   AuthorFromProto(c.GetAuthor()),
		Message:  c.GetMessage(),
	}
	if out.Time, err = TimeFromProto("commit.commit_time", c.GetCommitTime()); err != nil {
		return memory.Commit{}, err
	}
	if n := len(c.GetChanges()); n > 0 {
		out.Changes = make([]memory.AppliedChange, 0, n)
	}
	for _, change := range c.GetChanges() {
		applied, err := appliedFromProto(change)
		if unfit(err) {
			out.Unfit = append(out.Unfit, memory.Unfit{Path: change.GetPath(), Deleted: change.GetKind() == memsvcv1.ChangeKind_CHANGE_KIND_DELETE})
			continue
		}
		if err != nil {
			return memory.Commit{}, err
		}
		out.Changes = append(out.Changes, applied)
	}
	return out, nil
}

func appliedFromProto(c *memsvcv1.CommittedChange) (memory.AppliedChange, error) {
	out := memory.AppliedChange{Content: bytesOrNil(c.GetContent())}
	var err error
	if out.Path, err = memory.ParsePath(c.GetPath()); err != nil {
		return memory.AppliedChange{}, err
	}
	if out.Kind, err = changeKindFromProto(c.GetKind()); err != nil {
		return memory.AppliedChange{}, err
	}
	if out.ETag, err = ETagFromProto("change.etag", c.GetEtag()); err != nil {
		return memory.AppliedChange{}, err
	}
	if out.PreviousETag, err = ETagFromProto("change.previous_etag", c.GetPreviousEtag()); err != nil {
		return memory.AppliedChange{}, err
	}
	if out.Size, err = sizeFromProto("change.size_bytes", c.GetSizeBytes()); err != nil {
		return memory.AppliedChange{}, err
	}
	if n := int64(len(out.Content)); n > 0 && n != out.Size {
		return memory.AppliedChange{}, invalid("change.size_bytes", "says %d, the content has %d bytes", out.Size, n)
	}
	if out.ModTime, err = TimeFromProto("change.modify_time", c.GetModifyTime()); err != nil {
		return memory.AppliedChange{}, err
	}
	if out.RenamedFrom, err = optionalPath(c.GetRenamedFrom()); err != nil {
		out.RenamedFrom = "" // a file that was never here: this one is new
	}
	return out, nil
}

// unfit reports whether err is that of a path that ParsePath refuses.
func unfit(err error) bool {
	var e *memory.Error
	return errors.As(err, &e) && e.Reason == memory.ReasonInvalidPath
}

func changeKindToProto(k memory.ChangeKind) memsvcv1.ChangeKind {
	switch k {
	case memory.Put:
		return memsvcv1.ChangeKind_CHANGE_KIND_PUT
	case memory.Delete:
		return memsvcv1.ChangeKind_CHANGE_KIND_DELETE
	case memory.Redact:
		return memsvcv1.ChangeKind_CHANGE_KIND_REDACT
	}
	return memsvcv1.ChangeKind_CHANGE_KIND_UNSPECIFIED
}

func changeKindFromProto(k memsvcv1.ChangeKind) (memory.ChangeKind, error) {
	switch k {
	case memsvcv1.ChangeKind_CHANGE_KIND_PUT:
		return memory.Put, nil
	case memsvcv1.ChangeKind_CHANGE_KIND_DELETE:
		return memory.Delete, nil
	case memsvcv1.ChangeKind_CHANGE_KIND_REDACT:
		return memory.Redact, nil
	}
	return 0, invalid("change.kind", "unknown value %d", k)
}
