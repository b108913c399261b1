package wire

import (
	"time"

	"pgregory.net/rapid"

	"github.com/memsvc/memsvc/internal/memory"
)

// Generators of domain values as hub and agent hold them: parsed paths, UTC
// times, sizes that fit the content, and nil for no content.

func genKey(t *rapid.T) memory.ProjectKey {
	id := rapid.StringMatching(`[a-z0-9][a-z0-9._~-]{0,20}`)
	return memory.ProjectKey{
		Team:    memory.Team(id.Draw(t, "team")),
		Project: memory.Project(id.Draw(t, "project")),
	}
}

func genPath(t *rapid.T) memory.Path {
	s := rapid.StringMatching(`([a-z]{1,8}/){0,3}[a-zA-Z0-9_\p{Han}]{1,10}\.md`).
		Filter(func(s string) bool { _, err := memory.ParsePath(s); return err == nil }).
		Draw(t, "path")
	return memory.Path(s)
}

func genText(t *rapid.T, label string) string { return rapid.StringN(0, 20, 60).Draw(t, label) }

func genContent(t *rapid.T) []byte {
	s := rapid.StringN(0, 200, -1).Draw(t, "content")
	if s == "" {
		return nil
	}
	return []byte(s)
}

// genTime draws the zero time or a time between the years 1 and 9999, to the
// nanosecond, in some zone.
func genTime(t *rapid.T, label string) time.Time {
	if rapid.Bool().Draw(t, label+" unset") {
		return time.Time{}
	}
	sec := rapid.Int64Range(minTimeSeconds+1, maxTimeSeconds).Draw(t, label)
	nsec := rapid.Int64Range(0, 999_999_999).Draw(t, label+" ns")
	return time.Unix(sec, nsec).UTC()
}

func genRevision(t *rapid.T, label string) memory.Revision {
	return memory.Revision(rapid.Int64Min(0).Draw(t, label))
}

func genCursor(t *rapid.T) memory.Cursor {
	return memory.Cursor{
		Epoch:    memory.Epoch(genText(t, "epoch")),
		Revision: genRevision(t, "cursor revision"),
		CommitID: memory.CommitID(genText(t, "commit id")),
	}
}

func genAuthor(t *rapid.T) memory.Author {
	return memory.Author{
		Principal: genText(t, "principal"),
		Machine:   genText(t, "machine"),
		Client:    genText(t, "client"),
		Session:   genText(t, "session"),
	}
}

func genETag(t *rapid.T, label string) memory.ETag {
	return memory.ETag(rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, label))
}

func genMemory(t *rapid.T) memory.Memory {
	m := memory.Memory{
		Path:       genPath(t),
		Revision:   genRevision(t, "revision"),
		ModTime:    genTime(t, "mod time"),
		CommitTime: genTime(t, "commit time"),
		Author:     genAuthor(t),
	}
	for range rapid.IntRange(0, 3).Draw(t, "earlier") {
		m.EarlierETags = append(m.EarlierETags, genETag(t, "earlier etag"))
	}
	if rapid.Bool().Draw(t, "deleted") {
		m.Deleted, m.LastETag = true, genETag(t, "last etag")
		return m
	}
	m.Content = genContent(t)
	m.ETag = genETag(t, "etag")
	m.Size = int64(len(m.Content))
	if m.Content == nil {
		m.Size = rapid.Int64Min(0).Draw(t, "size") // metadata only
	}
	return m
}

func genChange(t *rapid.T) memory.Change {
	c := memory.Change{
		Path: genPath(t),
		Kind: rapid.SampledFrom([]memory.ChangeKind{memory.Put, memory.Delete}).Draw(t, "kind"),
	}
	c.Precondition = rapid.SampledFrom([]memory.Precondition{{}, memory.IfAbsent(), memory.IfMatch(genETag(t, "if match"))}).Draw(t, "precondition")
	if c.Kind == memory.Put {
		c.Content = genContent(t)
		c.ModTime = genTime(t, "mod time")
		if rapid.Bool().Draw(t, "renamed") {
			c.RenamedFrom = genPath(t)
		}
	}
	return c
}

func genCommit(t *rapid.T) memory.Commit {
	c := memory.Commit{
		Project:  genKey(t),
		Revision: memory.Revision(rapid.Int64Min(1).Draw(t, "revision")),
		ID:       memory.CommitID(genText(t, "commit id")),
		Author:   genAuthor(t),
		Time:     genTime(t, "time"),
		Message:  genText(t, "message"),
	}
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		a := memory.AppliedChange{
			Path:    genPath(t),
			Kind:    rapid.SampledFrom([]memory.ChangeKind{memory.Put, memory.Delete, memory.Redact}).Draw(t, "kind"),
			ModTime: genTime(t, "mod time"),
			Content: genContent(t),
		}
		a.Size = int64(len(a.Content))
		if rapid.Bool().Draw(t, "has etag") {
			a.ETag = genETag(t, "etag")
		}
		if rapid.Bool().Draw(t, "has previous") {
			a.PreviousETag = genETag(t, "previous etag")
		}
		if rapid.Bool().Draw(t, "renamed") {
			a.RenamedFrom = genPath(t)
		}
		c.Changes = append(c.Changes, a)
	}
	return c
}

// genError draws a domain error of any reason with any details. Its message is not
// the reason in words, which stands for no message.
func genError(t *rapid.T) *memory.Error {
	reasons := make([]memory.Reason, 0, len(kinds))
	for _, k := range kinds {
		reasons = append(reasons, k.reason)
	}
	e := &memory.Error{
		Reason:         rapid.SampledFrom(reasons).Draw(t, "reason"),
		Message:        rapid.StringMatching(`([a-z]+ "[a-z/.]+": [a-z ]+)?`).Draw(t, "message"),
		Head:           genCursor(t),
		RewindRevision: genRevision(t, "rewind"),
		Oldest:         genRevision(t, "oldest"),
		RetryAfter:     time.Duration(rapid.Int64Range(0, int64(maxRetryAfter)).Draw(t, "retry after")),
		RequestID:      genText(t, "request id"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "violations") {
		e.Violations = append(e.Violations, memory.Violation{
			Path:        genText(t, "violation path"),
			Line:        rapid.IntRange(0, 1<<20).Draw(t, "line"),
			Rule:        genText(t, "rule"),
			Message:     genText(t, "violation message"),
			Fingerprint: genText(t, "fingerprint"),
		})
	}
	for range rapid.IntRange(0, 3).Draw(t, "current") {
		e.Current = append(e.Current, genMemory(t))
	}
	return e
}
