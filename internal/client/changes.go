package client

import (
	"context"
	"errors"
	"io"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// ChangePage is a page of history, oldest first.
type ChangePage struct {
	Commits []memory.Commit // contents inline
	Cursors []memory.Cursor // Cursors[i] is the point after Commits[i]
	Head    memory.Cursor   // where the project stood when the page was begun
	More    bool            // commits follow that this page does not hold
}

// The bounds of a page: what an agent can hold of one project at once.
const (
	maxPageCommits = 500
	maxPageBytes   = 2 * memory.MaxCommitBytes
)

// Changes returns whole commits after a cursor without a Feed: one call to learn the
// head, and a short watch up to it. It must return ErrRevisionCompacted when a commit
// in between is no longer kept, and ErrEpochChanged when the cursor does not fit.
func (c *Client) Changes(ctx context.Context, key memory.ProjectKey, after memory.Cursor) (ChangePage, error) {
	info, err := c.Project(ctx, key, after)
	if err != nil {
		return ChangePage{}, err
	}
	page := ChangePage{Head: info.Head}
	if after.Revision >= info.Head.Revision {
		return page, nil
	}
	if after.Epoch == "" {
		after.Epoch = info.Head.Epoch
	}
	err = c.attempt(ctx, c.long(), func(ctx context.Context) error { return c.readPage(ctx, key, after, &page) })
	if err != nil && len(page.Commits) == 0 {
		return ChangePage{}, err
	}
	// What came before a break is whole and in order: it counts.
	page.More = after.Revision+memory.Revision(len(page.Commits)) < info.Head.Revision
	return page, nil
}

func (c *Client) readPage(ctx context.Context, key memory.ProjectKey, after memory.Cursor, page *ChangePage) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := c.api().WatchMemories(ctx, &memsvcv1.WatchMemoriesRequest{
		Projects: []*memsvcv1.WatchedProject{{Project: key.String(), Cursor: wire.CursorToProto(after)}},
	})
	if err != nil {
		return err
	}
	cursor, size := after, int64(0)
	for cursor.Revision < page.Head.Revision && len(page.Commits) < maxPageCommits && size < maxPageBytes {
		res, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return &memory.Error{Reason: memory.ReasonUnavailable, Message: "the hub ended the stream early"}
		}
		if err != nil {
			return err
		}
		switch e := res.GetEvent().(type) {
		case *memsvcv1.WatchMemoriesResponse_Status:
			return wire.ProjectStatusFromProto(e.Status)
		case *memsvcv1.WatchMemoriesResponse_Commit:
			commit, err := wire.CommitFromProto(e.Commit)
			if err != nil {
				return err
			}
			if commit.Revision != cursor.Revision+1 {
				return errOutOfOrder(key, cursor.Revision, commit.Revision)
			}
			cursor.Revision, cursor.CommitID = commit.Revision, commit.ID
			page.Commits, page.Cursors = append(page.Commits, commit), append(page.Cursors, cursor)
			for _, ch := range commit.Changes {
				size += ch.Size
			}
		}
	}
	return nil
}
