package store

import (
	"bytes"
	"cmp"

	"github.com/memsvc/memsvc/internal/memory"
)

// MemoryAt returns the memory that change c of commit left behind, with its own
// copy of the content if that is wanted and loaded.
func MemoryAt(commit *memory.Commit, c *memory.AppliedChange, content bool) memory.Memory {
	m := memory.Memory{
		Path:       c.Path,
		ETag:       c.ETag,
		Size:       c.Size,
		Revision:   commit.Revision,
		ModTime:    c.ModTime,
		CommitTime: commit.Time,
		Author:     commit.Author,
	}
	if c.ETag == "" {
		m.Deleted, m.LastETag = true, c.PreviousETag
	} else if content {
		m.Content = CloneContent(c.Content)
	}
	return m
}

// CloneContent copies b; an empty text stays non-nil, since nil means "not asked for".
func CloneContent(b []byte) []byte {
	if len(b) == 0 {
		return []byte{}
	}
	return bytes.Clone(b)
}

// WithContents returns a copy of c whose changes own their contents.
func WithContents(c *memory.Commit) memory.Commit {
	out := WithoutContents(c)
	for i := range out.Changes {
		if out.Changes[i].ETag != "" {
			out.Changes[i].Content = CloneContent(c.Changes[i].Content)
		}
	}
	return out
}

// WithoutContents returns a copy of c whose changes carry no content.
func WithoutContents(c *memory.Commit) memory.Commit {
	out := *c
	out.Changes = append([]memory.AppliedChange(nil), c.Changes...)
	for i := range out.Changes {
		out.Changes[i].Content = nil
	}
	return out
}

// EarlierETags collects, from commits walked from the newest to the oldest, the
// etags that each path had before: distinct, newest first, at most
// MaxEarlierETags a path.
type EarlierETags map[memory.Path][]memory.ETag

// MaxEarlierETags bounds Memory.EarlierETags.
const MaxEarlierETags = 100

// Add takes in the next older change.
func (x EarlierETags) Add(c *memory.AppliedChange) {
	have := x[c.Path]
	if c.PreviousETag == "" || c.Kind == memory.Redact || len(have) >= MaxEarlierETags {
		return
	}
	for _, e := range have {
		if e == c.PreviousETag {
			return
		}
	}
	x[c.Path] = append(have, c.PreviousETag)
}

// CompareProjects orders projects by team, then id.
func CompareProjects(a, b memory.ProjectKey) int {
	return cmp.Or(cmp.Compare(a.Team, b.Team), cmp.Compare(a.Project, b.Project))
}

// UTC returns t with its times in UTC, as backends return them.
func (t Token) UTC() Token {
	t.CreateTime, t.ExpireTime, t.RevokeTime = t.CreateTime.UTC(), t.ExpireTime.UTC(), t.RevokeTime.UTC()
	return t
}
