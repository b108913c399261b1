package wire

import (
	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
)

// MemoryToProto returns m, a memory of project key, on the wire. The message
// shares m's content: neither may be changed afterwards.
func MemoryToProto(key memory.ProjectKey, m memory.Memory) *memsvcv1.Memory {
	out := memoryToProto(m)
	out.Name = key.MemoryName(m.Path)
	return out
}

func memoryToProto(m memory.Memory) *memsvcv1.Memory {
	var earlier []string
	for _, e := range m.EarlierETags {
		earlier = append(earlier, string(e))
	}
	return &memsvcv1.Memory{
		Path:         string(m.Path),
		Content:      m.Content,
		Etag:         string(m.ETag),
		SizeBytes:    m.Size,
		Revision:     int64(m.Revision),
		ModifyTime:   TimeToProto(m.ModTime),
		CommitTime:   TimeToProto(m.CommitTime),
		Author:       AuthorToProto(m.Author),
		Deleted:      m.Deleted,
		LastEtag:     string(m.LastETag),
		EarlierEtags: earlier,
	}
}

// MemoriesFromProto returns the memories as domain values, and apart those whose paths
// ParsePath refuses; see CommitFromProto.
func MemoriesFromProto(in []*memsvcv1.Memory) (out []memory.Memory, odd []memory.Unfit, err error) {
	out = make([]memory.Memory, 0, len(in))
	for _, m := range in {
		v, err := MemoryFromProto(m)
		if unfit(err) {
			odd = append(odd, memory.Unfit{Path: m.GetPath(), Deleted: m.GetDeleted()})
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		out = append(out, v)
	}
	return out, odd, nil
}

// MemoryFromProto returns m as a domain value. Its name, which says the project
// that the caller asked about, is not read. The value shares m's content.
func MemoryFromProto(m *memsvcv1.Memory) (memory.Memory, error) {
	if m == nil {
		return memory.Memory{}, invalid("memory", "not set")
	}
	out := memory.Memory{
		Content: bytesOrNil(m.GetContent()),
		Author:  AuthorFromProto(m.GetAuthor()),
		Deleted: m.GetDeleted(),
	}
	var err error
	if out.Path, err = memory.ParsePath(m.GetPath()); err != nil {
		return memory.Memory{}, err
	}
	if out.ETag, err = ETagFromProto("memory.etag", m.GetEtag()); err != nil {
		return memory.Memory{}, err
	}
	if out.LastETag, err = ETagFromProto("memory.last_etag", m.GetLastEtag()); err != nil {
		return memory.Memory{}, err
	}
	if out.Deleted != (out.ETag == "") {
		return memory.Memory{}, invalid("memory.etag", "must be empty for a deleted memory, and for no other")
	}
	if out.Size, err = sizeFromProto("memory.size_bytes", m.GetSizeBytes()); err != nil {
		return memory.Memory{}, err
	}
	if n := int64(len(out.Content)); n > 0 && n != out.Size {
		return memory.Memory{}, invalid("memory.size_bytes", "says %d, the content has %d bytes", out.Size, n)
	}
	if out.Revision, err = revisionFromProto("memory.revision", m.GetRevision()); err != nil {
		return memory.Memory{}, err
	}
	if out.ModTime, err = TimeFromProto("memory.modify_time", m.GetModifyTime()); err != nil {
		return memory.Memory{}, err
	}
	if out.CommitTime, err = TimeFromProto("memory.commit_time", m.GetCommitTime()); err != nil {
		return memory.Memory{}, err
	}
	for _, s := range m.GetEarlierEtags() {
		e, err := ETagFromProto("memory.earlier_etags", s)
		if err != nil {
			return memory.Memory{}, err
		}
		out.EarlierETags = append(out.EarlierETags, e)
	}
	return out, nil
}
