package store

import (
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/memory"
)

// AddSpans returns spans with those of more whose epoch is not in it yet, in order
// of their revisions; equal ones keep the order in which they came.
func AddSpans(spans []Span, more ...Span) []Span {
	out := slices.Clone(spans)
	for _, m := range more {
		if !slices.ContainsFunc(out, func(s Span) bool { return s.Epoch == m.Epoch }) {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b Span) int { return int(a.Through - b.Through) })
	return out
}

// CheckImport refuses commits that cannot be appended as they are to a project at
// head whose oldest revision is have, and will be oldest.
func CheckImport(key memory.ProjectKey, head, have, oldest memory.Revision, commits []memory.Commit) error {
	if oldest < 1 || head > 0 && oldest != have {
		return Invalid("import to %s: the oldest revision is %d, the archive says %d; purge the project first", key, have, oldest)
	}
	for i := range commits {
		c := &commits[i]
		gap := c.Revision > head && c.Revision < oldest || c.Revision == oldest && head < oldest
		if c.Revision != head+1 && !gap {
			return Invalid("import to %s: revision %d cannot follow %d", key, c.Revision, head)
		}
		if c.ID == "" || len(c.Changes) == 0 {
			return Invalid("import to %s: revision %d has no id or no changes", key, c.Revision)
		}
		for j := range c.Changes {
			ch := &c.Changes[j]
			if ch.Path == "" || ch.Kind.String() == "invalid" || ch.ETag != "" && memory.ETagOf(ch.Content) != ch.ETag ||
				ch.PreviousETag != "" && !isETag(ch.PreviousETag) || ch.Size != int64(len(ch.Content)) {
				return Invalid("import to %s: revision %d: change %d is damaged", key, c.Revision, j)
			}
		}
		head = c.Revision
	}
	return nil
}

// isETag reports whether e looks like what memory.ETagOf returns.
func isETag(e memory.ETag) bool {
	return len(e) == 64 && strings.Trim(string(e), "0123456789abcdef") == ""
}
