package client

import (
	"context"

	"github.com/google/uuid"
	"google.golang.org/grpc/metadata"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// CommitRequest is a commit as a writer wants it.
type CommitRequest struct {
	Project memory.ProjectKey
	Changes []memory.Change
	Message string
	// RequestID makes a retry harmless; "" lets the client choose one.
	RequestID string
	// Epoch, when set and not the hub's, makes the hub answer ErrEpochChanged.
	Epoch memory.Epoch
	// ValidateOnly answers as the commit would be answered and changes nothing.
	ValidateOnly bool
	// SkipWarnings is for a writer that has judged its texts by itself: the hub does it
	// not again, and CommitResult.Warnings is empty.
	SkipWarnings bool
	// Trace is the W3C trace context of the upload, if it is traced. It goes with the
	// call, and with the commit to whoever watches: as the author's session, which an
	// agent does not use otherwise.
	Trace string
}

// traceHeader is the metadata of a W3C trace context.
const traceHeader = "traceparent"

// CommitResult is what became of a commit or a restore.
type CommitResult struct {
	Commit  memory.Commit // without contents; the head's when Created is false
	Created bool
	Head    memory.Cursor
	// Warnings are what the hub says of the texts written without refusing them; paths
	// may be cut short.
	Warnings []memory.Violation
}

// NewRequestID returns an id that no other request has.
func NewRequestID() string { return uuid.NewString() }

// Commit applies changes as one revision, all or nothing.
func (c *Client) Commit(ctx context.Context, r CommitRequest) (CommitResult, error) {
	req := &memsvcv1.CommitChangesRequest{
		Parent: r.Project.String(), Message: r.Message, RequestId: r.RequestID, Epoch: string(r.Epoch),
		ValidateOnly: r.ValidateOnly, Author: wire.AuthorToProto(c.opts.Author), SkipWarnings: r.SkipWarnings,
	}
	if req.RequestId == "" {
		req.RequestId = NewRequestID()
	}
	for _, ch := range r.Changes {
		p, err := wire.ChangeToProto(ch)
		if err != nil {
			return CommitResult{}, err
		}
		req.Changes = append(req.Changes, p)
	}
	if r.Trace != "" {
		if req.Author.Session == "" {
			req.Author.Session = r.Trace
		}
		ctx = metadata.AppendToOutgoingContext(ctx, traceHeader, r.Trace)
	}
	var out CommitResult
	err := c.call(ctx, c.long(), func(ctx context.Context) error {
		res, err := c.api().CommitChanges(ctx, req)
		if err != nil {
			return err
		}
		out, err = resultFromProto(res)
		return err
	})
	return out, err
}

// committed is what the answers of a commit and of a restore have alike.
type committed interface {
	GetCommit() *memsvcv1.Commit
	GetCreated() bool
	GetHead() *memsvcv1.Cursor
	GetWarnings() []*memsvcv1.Violation
}

func resultFromProto(res committed) (CommitResult, error) {
	out := CommitResult{Created: res.GetCreated(), Warnings: wire.ViolationsFromProto(res.GetWarnings())}
	var err error
	if out.Commit, err = wire.CommitFromProto(res.GetCommit()); err != nil {
		return CommitResult{}, err
	}
	out.Head, err = wire.CursorFromProto(res.GetHead())
	return out, err
}

// RestoreRequest asks for a commit that brings paths back to an old revision.
type RestoreRequest struct {
	Project      memory.ProjectKey
	Revision     memory.Revision
	Paths        []memory.Path // none is the whole project
	RequestID    string        // as in CommitRequest
	ValidateOnly bool
}

// Restore makes a new commit from an old revision.
func (c *Client) Restore(ctx context.Context, r RestoreRequest) (CommitResult, error) {
	req := &memsvcv1.RestoreMemoriesRequest{
		Parent: r.Project.String(), Revision: int64(r.Revision), RequestId: r.RequestID,
		ValidateOnly: r.ValidateOnly, Author: wire.AuthorToProto(c.opts.Author),
	}
	if req.RequestId == "" {
		req.RequestId = NewRequestID()
	}
	for _, p := range r.Paths {
		req.Paths = append(req.Paths, string(p))
	}
	var out CommitResult
	err := c.call(ctx, c.long(), func(ctx context.Context) error {
		res, err := c.api().RestoreMemories(ctx, req)
		if err != nil {
			return err
		}
		out, err = resultFromProto(res)
		return err
	})
	return out, err
}

// Log returns at most limit commits, newest first, without contents, and what to ask
// the next page with ("" = that was all). path narrows to one memory, renames
// followed; "" is the whole project. Who reads page after page bounds them with Pages.
func (c *Client) Log(ctx context.Context, key memory.ProjectKey, path memory.Path, limit int, page string) ([]memory.Commit, string, error) {
	req := &memsvcv1.ListCommitsRequest{Parent: key.String(), PageSize: int32(min(limit, 500)), PageToken: page, Path: string(path)}
	var out []memory.Commit
	var next string
	err := c.call(ctx, c.long(), func(ctx context.Context) error {
		res, err := c.api().ListCommits(ctx, req)
		if err != nil {
			return err
		}
		out = nil
		for _, p := range res.GetCommits() {
			commit, err := wire.CommitFromProto(p)
			if err != nil {
				return err
			}
			out = append(out, commit)
		}
		if next = res.GetNextPageToken(); next == page && page != "" {
			return senseless("the next page of the log is the one just read")
		}
		return nil
	})
	return out, next, err
}
