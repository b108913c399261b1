package store

import "github.com/memsvc/memsvc/internal/memory"

// Redaction is a RedactRequest made ready to be applied, version by version.
type Redaction struct {
	RedactRequest
	Mark  memory.ETag // the marker's
	wants map[memory.ETag]bool
}

// NewRedaction returns req ready to be applied. A request without a marker or a
// path is an ErrInvalidArgument: a marker is what readers see in the text's place.
func NewRedaction(req RedactRequest) (*Redaction, error) {
	if req.Path == "" || len(req.Marker) == 0 {
		return nil, Invalid("redact in %s: name a path and a marker", req.Project)
	}
	r := &Redaction{RedactRequest: req, Mark: memory.ETagOf(req.Marker)}
	if len(req.ETags) > 0 {
		r.wants = make(map[memory.ETag]bool, len(req.ETags))
		for _, e := range req.ETags {
			r.wants[e] = true
		}
	}
	return r, nil
}

// Covers reports whether a version with this etag is to go. One that holds the marker
// already holds no text: redacting it again would be a revision about nothing.
func (r *Redaction) Covers(e memory.ETag) bool {
	return e != "" && e != r.Mark && (r.wants == nil || r.wants[e])
}

// Rewrite replaces in c, a change of any commit, what the redaction covers, and
// reports whether it did. Contents that were not loaded stay unloaded.
func (r *Redaction) Rewrite(c *memory.AppliedChange) (hit bool) {
	if c.Path != r.Path {
		return false
	}
	if r.Covers(c.ETag) {
		c.ETag, c.Size, hit = r.Mark, int64(len(r.Marker)), true
		if c.Content != nil {
			c.Content = r.Marker
		}
	}
	if r.Covers(c.PreviousETag) {
		c.PreviousETag, hit = r.Mark, true
	}
	return hit
}

// Commit returns the Redact commit to append to head, where the path stands as
// now, already rewritten: its etag, content and time, or a tombstone.
func (r *Redaction) Commit(head memory.Cursor, now memory.Memory) memory.Commit {
	change := memory.AppliedChange{Path: r.Path, Kind: memory.Redact}
	if now.Deleted {
		change.PreviousETag = now.LastETag
	} else {
		change.ETag, change.PreviousETag = now.ETag, now.ETag
		change.Content, change.Size, change.ModTime = now.Content, int64(len(now.Content)), now.ModTime
	}
	c := memory.Commit{
		Project:  r.Project,
		Revision: head.Revision + 1,
		Author:   r.Author,
		Time:     r.Now.UTC(),
		Message:  r.Message,
		Changes:  []memory.AppliedChange{change},
	}
	c.ID = memory.NextCommitID(head.CommitID, head.Epoch, &c)
	return c
}
