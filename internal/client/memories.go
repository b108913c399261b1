package client

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// ProjectInfo says where a project stands.
type ProjectInfo struct {
	Key           memory.ProjectKey
	Head          memory.Cursor
	Oldest        memory.Revision // the first revision still kept whole
	Files         int64           // living memories
	Bytes         int64           // of their contents
	PolicyVersion int64           // of the team's guard policy
}

func projectFromProto(p *memsvcv1.Project) (ProjectInfo, error) {
	key, err := memory.ParseProjectKey(p.GetName())
	if err != nil {
		return ProjectInfo{}, err
	}
	head, err := wire.CursorFromProto(p.GetHead())
	if err != nil {
		return ProjectInfo{}, err
	}
	return ProjectInfo{
		Key: key, Head: head, Oldest: memory.Revision(p.GetOldestRevision()),
		Files: p.GetMemoryCount(), Bytes: p.GetTotalBytes(), PolicyVersion: p.GetPolicyVersion(),
	}, nil
}

// Project returns where a project stands. A cursor that does not fit the hub's
// history is an ErrEpochChanged with RewindRevision and Head; the zero cursor fits.
func (c *Client) Project(ctx context.Context, key memory.ProjectKey, seen memory.Cursor) (ProjectInfo, error) {
	var info ProjectInfo
	err := c.call(ctx, c.short(), func(ctx context.Context) error {
		res, err := c.api().GetProject(ctx, &memsvcv1.GetProjectRequest{Name: key.String(), Cursor: wire.CursorToProto(seen)})
		if err != nil {
			return err
		}
		info, err = projectFromProto(res.GetProject())
		return err
	})
	return info, err
}

// ListOptions narrows List.
type ListOptions struct {
	Content      bool // fill Memory.Content
	Deleted      bool // tombstones too
	EarlierETags bool // fill Memory.EarlierETags
	// PageSize is how many to ask for at a time; 0 leaves it to the hub.
	PageSize int
	// Progress is called after each page with the number of memories so far.
	Progress func(int)
}

// Listing is the answer of List: Memories in path order, and where the project stood
// when the first page was read.
type Listing struct {
	Memories []memory.Memory
	Unfit    []memory.Unfit // paths that this program cannot hold; not in Memories
	Head     memory.Cursor
}

// List returns all memories of a project. A list that is larger than a project can be,
// or that never ends, is an ErrInternal.
func (c *Client) List(ctx context.Context, key memory.ProjectKey, opts ListOptions) (Listing, error) {
	req := &memsvcv1.ListMemoriesRequest{
		Parent: key.String(), PageSize: int32(opts.PageSize), ShowDeleted: opts.Deleted,
		IncludeEarlierEtags: opts.EarlierETags, View: memsvcv1.MemoryView_MEMORY_VIEW_METADATA,
	}
	limit := int64(maxListBytes)
	if opts.Content {
		req.View, limit = memsvcv1.MemoryView_MEMORY_VIEW_FULL, maxContentBytes
	}
	var out Listing
	var pages Pages
	for first := true; ; first = false {
		var res *memsvcv1.ListMemoriesResponse
		err := c.call(ctx, c.long(), func(ctx context.Context) (err error) {
			res, err = c.api().ListMemories(ctx, req)
			return err
		})
		if err != nil {
			return Listing{}, err
		}
		if err := pages.weigh(proto.Size(res), limit); err != nil {
			return Listing{}, err
		}
		page, unfit, err := wire.MemoriesFromProto(res.GetMemories())
		if err != nil {
			return Listing{}, err
		}
		out.Memories, out.Unfit = append(out.Memories, page...), append(out.Unfit, unfit...)
		if first {
			if out.Head, err = wire.CursorFromProto(res.GetHead()); err != nil {
				return Listing{}, err
			}
		}
		if opts.Progress != nil {
			opts.Progress(len(out.Memories))
		}
		if req.PageToken, err = pages.Next(res.GetNextPageToken(), len(page)+len(unfit)); err != nil {
			return Listing{}, err
		}
		if req.PageToken == "" {
			return out, nil
		}
	}
}

// Get returns the memory at path as of a revision; 0 is now.
func (c *Client) Get(ctx context.Context, key memory.ProjectKey, path memory.Path, at memory.Revision) (memory.Memory, error) {
	var out memory.Memory
	err := c.call(ctx, c.short(), func(ctx context.Context) error {
		res, err := c.api().GetMemory(ctx, &memsvcv1.GetMemoryRequest{Name: key.MemoryName(path), Revision: int64(at)})
		if err != nil {
			return err
		}
		out, err = wire.MemoryFromProto(res.GetMemory())
		return err
	})
	return out, err
}

// Batch is the answer of BatchGet.
type Batch struct {
	Memories  []memory.Memory // those that exist, contents included
	Remaining []memory.Path   // not answered, the answer was full
	Head      memory.Cursor
}

// maxBatchPaths is the contract's bound on one BatchGetMemories.
const maxBatchPaths = 500

// BatchGet returns the memories at paths as of a revision (0 = now). Paths past the
// contract's 500 come back in Remaining too. No paths, no call.
func (c *Client) BatchGet(ctx context.Context, key memory.ProjectKey, paths []memory.Path, at memory.Revision) (Batch, error) {
	if len(paths) == 0 {
		return Batch{}, nil
	}
	n := min(len(paths), maxBatchPaths)
	req := &memsvcv1.BatchGetMemoriesRequest{Parent: key.String(), Revision: int64(at)}
	for _, p := range paths[:n] {
		req.Paths = append(req.Paths, string(p))
	}
	var out Batch
	err := c.call(ctx, c.long(), func(ctx context.Context) error {
		res, err := c.api().BatchGetMemories(ctx, req)
		if err != nil {
			return err
		}
		out = Batch{}
		// All were asked for, so none is unfit.
		if out.Memories, _, err = wire.MemoriesFromProto(res.GetMemories()); err != nil {
			return err
		}
		for _, s := range res.GetRemainingPaths() {
			p, err := memory.ParsePath(s)
			if err != nil {
				return err
			}
			out.Remaining = append(out.Remaining, p)
		}
		out.Head, err = wire.CursorFromProto(res.GetHead())
		return err
	})
	if err != nil {
		return Batch{}, err
	}
	out.Remaining = append(out.Remaining, paths[n:]...)
	return out, nil
}

// Hit is one memory found by Search.
type Hit struct {
	Memory  memory.Memory // without content
	Score   float64       // higher is better, within one answer
	Snippet string        // an excerpt around the words found
}

// Search finds memories by their words; at most limit (0 = the hub's default).
func (c *Client) Search(ctx context.Context, key memory.ProjectKey, query string, limit int) ([]Hit, error) {
	var out []Hit
	err := c.call(ctx, c.short(), func(ctx context.Context) error {
		res, err := c.api().SearchMemories(ctx, &memsvcv1.SearchMemoriesRequest{Parent: key.String(), Query: query, PageSize: int32(limit)})
		if err != nil {
			return err
		}
		out = nil
		for _, h := range res.GetHits() {
			m, err := wire.MemoryFromProto(h.GetMemory())
			if errors.Is(err, memory.ErrInvalidPath) {
				continue // nothing that this program could show or open
			}
			if err != nil {
				return err
			}
			out = append(out, Hit{Memory: m, Score: h.GetScore(), Snippet: h.GetSnippet()})
		}
		return nil
	})
	return out, err
}
