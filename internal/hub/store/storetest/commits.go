package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

func commitPromises() []promise {
	return []promise{
		{"CommitIsOneRevision", commitIsOneRevision},
		{"CommitIDsChain", commitIDsChain},
		{"RevisionsCountPerProject", revisionsCountPerProject},
		{"CommitIsAllOrNothing", commitIsAllOrNothing},
		{"PreconditionAny", preconditionAny},
		{"PreconditionMustNotExist", preconditionMustNotExist},
		{"PreconditionMustMatch", preconditionMustMatch},
		{"MismatchCarriesCurrent", mismatchCarriesCurrent},
		{"CollisionsOnStateAfterCommit", collisions},
		{"UnchangedMakesNoRevision", unchangedMakesNoRevision},
		{"UnchangedPartsAreLeftOut", unchangedPartsAreLeftOut},
		{"RenameKeepsSource", renameKeepsSource},
		{"RenameNeedsDelete", renameNeedsDelete},
		{"FormIsChecked", formIsChecked},
		{"QuotaBoundsGrowth", quotaBoundsGrowth},
		{"ValidateOnlyChangesNothing", validateOnly},
		{"ModTimeIsTheAuthors", modTime},
		{"EmptyContentIsContent", emptyContent},
		{"LargeCommit", largeCommit},
		{"UnknownProject", unknownProject},
	}
}

func commitIsOneRevision(_ *testing.T, e *env) {
	res := e.commit(put("a.md", "one"), put("b.md", "two"))
	want := memory.Commit{
		Project: e.key, Revision: 1, ID: res.Commit.ID, Author: author, Time: e.now, Message: "a message",
		Changes: []memory.AppliedChange{
			{Path: "a.md", Kind: memory.Put, ETag: etag("one"), Size: 3, ModTime: e.now},
			{Path: "b.md", Kind: memory.Put, ETag: etag("two"), Size: 3, ModTime: e.now},
		},
	}
	e.equal("result", res.Commit, want)
	e.equal("head", res.Head, e.info(e.key).Head)
	want.Changes[0].Content, want.Changes[1].Content = []byte("one"), []byte("two")
	e.equal("changes", e.changes(0), []memory.Commit{want})

	e.commit(put("a.md", "three"), del("b.md"))
	got := e.changes(1)
	e.equal("kinds", got[0].Changes, []memory.AppliedChange{
		{Path: "a.md", Kind: memory.Put, ETag: etag("three"), PreviousETag: etag("one"), Content: []byte("three"), Size: 5, ModTime: e.now},
		{Path: "b.md", Kind: memory.Delete, PreviousETag: etag("two")},
	})
	info := e.info(e.key)
	e.equal("counts", []int64{info.Files, info.Bytes, int64(info.Head.Revision), int64(info.Oldest)}, []int64{1, 5, 2, 1})
	e.reopen()
	e.equal("info after a restart", e.info(e.key), info)
}

func commitIDsChain(_ *testing.T, e *env) {
	for i := range 5 {
		e.commit(put("a.md", fmt.Sprint(i)))
	}
	epoch, err := e.b.Epoch(ctx)
	e.must(err)
	parent := memory.CommitID("")
	for _, c := range e.changes(0) {
		if want := memory.NextCommitID(parent, epoch, &c); c.ID != want {
			e.t.Fatalf("revision %d has id %s, want %s", c.Revision, c.ID, want)
		}
		parent = c.ID
	}
	e.equal("head", e.info(e.key).Head, memory.Cursor{Epoch: epoch, Revision: 5, CommitID: parent})
}

func revisionsCountPerProject(_ *testing.T, e *env) {
	other := memory.ProjectKey{Team: "acme", Project: "web"}
	twin := memory.ProjectKey{Team: "other", Project: "payments"}
	e.must(e.b.CreateProject(ctx, other, e.now))
	e.must(e.b.CreateProject(ctx, twin, e.now))
	e.commit(put("a.md", "1"))
	e.commit(put("a.md", "2"))
	for _, k := range []memory.ProjectKey{other, twin} {
		req := e.request(put("a.md", "theirs"))
		req.Project = k
		res, err := e.b.Commit(ctx, req)
		e.must(err)
		e.equal("revision", res.Head.Revision, memory.Revision(1))
	}
	e.equal("ours", e.text("a.md", 0), "2")
}

func commitIsAllOrNothing(_ *testing.T, e *env) {
	e.commit(put("a.md", "one"))
	e.refused(memory.ErrETagMismatch, put("b.md", "new"), when(put("a.md", "two"), memory.IfAbsent()), del("a2.md"))
	e.noMemory("b.md", 0)
	e.refused(memory.ErrPathCollision, put("b.md", "new"), put("A.md", "clash"))
	e.noMemory("b.md", 0)
}

func preconditionAny(_ *testing.T, e *env) {
	e.commit(put("a.md", "one"))
	e.commit(put("a.md", "two"))
	e.commit(del("a.md"))
	e.commit(put("a.md", "three"))
	e.equal("text", e.text("a.md", 0), "three")
}

func preconditionMustNotExist(_ *testing.T, e *env) {
	e.commit(when(put("a.md", "one"), memory.IfAbsent()))
	e.refused(memory.ErrETagMismatch, when(put("a.md", "two"), memory.IfAbsent()))
	e.refused(memory.ErrETagMismatch, when(put("a.md", "one"), memory.IfAbsent())) // even with the same bytes
	e.commit(del("a.md"))
	e.commit(when(put("a.md", "two"), memory.IfAbsent()))
}

func preconditionMustMatch(_ *testing.T, e *env) {
	e.refused(memory.ErrETagMismatch, when(put("a.md", "x"), memory.IfMatch(etag("one"))))
	e.commit(put("a.md", "one"))
	e.refused(memory.ErrETagMismatch, when(put("a.md", "x"), memory.IfMatch(etag("two"))))
	e.refused(memory.ErrETagMismatch, when(put("a.md", "x"), memory.IfMatch("")))
	e.commit(when(put("a.md", "two"), memory.IfMatch(etag("one"))))
	e.refused(memory.ErrETagMismatch, when(del("a.md"), memory.IfMatch(etag("one"))))
	e.commit(when(del("a.md"), memory.IfMatch(etag("two"))))
	e.refused(memory.ErrETagMismatch, when(put("a.md", "x"), memory.IfMatch(etag("two")))) // a tombstone matches nothing
}

func mismatchCarriesCurrent(_ *testing.T, e *env) {
	first := e.commit(put("a.md", "one"), put("b.md", "two"), put("c.md", "three"))
	second := e.commit(del("b.md"))
	err := e.refused(memory.ErrETagMismatch,
		when(put("a.md", "x"), memory.IfMatch(etag("nope"))),
		when(put("b.md", "x"), memory.IfMatch(etag("two"))),
		when(put("c.md", "x"), memory.IfMatch(etag("three"))),
		when(put("d.md", "x"), memory.IfMatch(etag("never"))))
	e.equal("current", err.Current, []memory.Memory{
		{Path: "a.md", ETag: etag("one"), Content: []byte("one"), Size: 3, Revision: 1, ModTime: first.Commit.Time, CommitTime: first.Commit.Time, Author: author},
		{Path: "b.md", Deleted: true, LastETag: etag("two"), Revision: 2, CommitTime: second.Commit.Time, Author: author},
		{Path: "d.md", Deleted: true},
	})
	e.equal("head", err.Head, second.Head)
}

func collisions(_ *testing.T, e *env) {
	e.commit(put("A/x.md", "1"), put("note.md", "2"))
	for _, path := range []string{"a/y.md", "Note.md", "note.md/x.md", "A/X.md"} {
		err := e.refused(memory.ErrPathCollision, put(path, "3"))
		if len(err.Violations) != 1 || err.Violations[0].Path != path {
			e.t.Fatalf("%s: violations %v, want one that names it", path, err.Violations)
		}
	}
	e.refused(memory.ErrPathCollision, put("b/q.md", "3"), put("B/r.md", "4"))
	e.commit(del("note.md"), renamed(put("Note.md", "2"), "note.md")) // a rename by case
	e.commit(del("Note.md"), put("Note.md/x.md", "2"))                // a file becomes a directory
	e.commit(put("Note.md", "2"), del("Note.md/x.md"))                // and back
	e.commit(del("A/x.md"))
	e.reopen()
	e.commit(put("a/y.md", "3")) // the deleted path no longer stands in the way
	e.refused(memory.ErrPathCollision, put("A/x.md", "1"))
}

func unchangedMakesNoRevision(_ *testing.T, e *env) {
	res, err := e.b.Commit(ctx, e.request(del("a.md")))
	e.must(err)
	e.equal("before the first commit", res, store.CommitResult{Commit: memory.Commit{Project: e.key}, Head: e.info(e.key).Head})
	first := e.commit(put("a.md", "one"))
	for _, c := range []memory.Change{put("a.md", "one"), when(put("a.md", "one"), memory.IfMatch(etag("one"))), del("b.md")} {
		res, err := e.b.Commit(ctx, e.request(c))
		e.must(err)
		e.equal("result", res, store.CommitResult{Commit: first.Commit, Head: first.Head})
	}
	e.equal("head", e.info(e.key).Head, first.Head)
}

func unchangedPartsAreLeftOut(_ *testing.T, e *env) {
	e.commit(put("a.md", "one"), put("b.md", "two"))
	res := e.commit(put("a.md", "one"), put("b.md", "three"), del("never.md"))
	e.equal("changes", res.Commit.Changes, []memory.AppliedChange{
		{Path: "b.md", Kind: memory.Put, ETag: etag("three"), PreviousETag: etag("two"), Size: 5, ModTime: e.now},
	})
	e.equal("the other keeps its revision", e.get("a.md", 0).Revision, memory.Revision(1))
}

func renameKeepsSource(_ *testing.T, e *env) {
	e.commit(put("old.md", "text"))
	res := e.commit(del("old.md"), renamed(put("new.md", "text, moved"), "old.md"))
	e.equal("renamed from", res.Commit.Changes[1].RenamedFrom, memory.Path("old.md"))
	e.equal("in the history", e.changes(1)[0].Changes[1].RenamedFrom, memory.Path("old.md"))
	e.noMemory("old.md", 0)
	e.equal("text", e.text("new.md", 0), "text, moved")
}

func renameNeedsDelete(_ *testing.T, e *env) {
	e.commit(put("old.md", "text"))
	e.refused(memory.ErrInvalidArgument, renamed(put("new.md", "text"), "old.md"))
	e.refused(memory.ErrInvalidArgument, renamed(put("new.md", "text"), "old.md"), put("old.md", "kept"))
	e.refused(memory.ErrInvalidArgument, renamed(put("new.md", "text"), "new.md"))
	e.refused(memory.ErrInvalidArgument, del("old.md"), renamed(put("n1.md", "t"), "old.md"), renamed(put("n2.md", "t"), "old.md"))
	// The source went meanwhile: there is nothing left to be renamed.
	e.commit(del("old.md"))
	res := e.commit(del("old.md"), renamed(put("new.md", "text"), "old.md"))
	e.equal("renamed from", res.Commit.Changes[0].RenamedFrom, memory.Path(""))
}

func formIsChecked(_ *testing.T, e *env) {
	e.refused(memory.ErrInvalidArgument)
	e.refused(memory.ErrInvalidArgument, put("", "x"))
	e.refused(memory.ErrInvalidArgument, put("a.md", "x"), put("a.md", "y"))
	e.refused(memory.ErrInvalidArgument, put("a.md", "x"), del("a.md"))
	e.refused(memory.ErrInvalidArgument, memory.Change{Path: "a.md"})
	e.refused(memory.ErrInvalidArgument, memory.Change{Path: "a.md", Kind: memory.Redact, Content: []byte("x")})
	many := make([]memory.Change, memory.MaxCommitChanges+1)
	for i := range many {
		many[i] = put(fmt.Sprintf("f%d.md", i), "x")
	}
	e.refused(memory.ErrCommitTooLarge, many...)
	e.commit(many[:memory.MaxCommitChanges]...)
	e.refused(memory.ErrCommitTooLarge, put("a.md", strings.Repeat("x", memory.MaxCommitBytes+1)))
}

func quotaBoundsGrowth(_ *testing.T, e *env) {
	try := func(q store.Quota, changes ...memory.Change) error {
		req := e.request(changes...)
		req.Quota = q
		_, err := e.b.Commit(ctx, req)
		return err
	}
	e.must(try(store.Quota{Files: 2, Bytes: 10}, put("a.md", "12345"), put("b.md", "12345")))
	e.wants(try(store.Quota{Files: 2}, put("c.md", "")), memory.ErrQuotaExceeded)
	e.wants(try(store.Quota{Bytes: 10}, put("a.md", "123456")), memory.ErrQuotaExceeded)
	e.must(try(store.Quota{Files: 2}, del("b.md"), put("c.md", "12345")))      // judged on the state after
	e.must(try(store.Quota{Files: 1, Bytes: 5}, put("a.md", "1234")))          // over it, but shrinking
	e.must(try(store.Quota{Files: 1, Bytes: 5}, put("a.md", "4321")))          // over it, but not growing
	e.must(try(store.Quota{}, put("d.md", "no bound"), put("e.md", "at all"))) // zero is none
	e.wants(try(store.Quota{Files: 1}, del("a.md"), put("f.md", ""), put("g.md", "")), memory.ErrQuotaExceeded)
}

func validateOnly(_ *testing.T, e *env) {
	e.commit(put("a.md", "one"))
	before := e.snapshot(e.key)
	dry := e.request(put("a.md", "two"), put("b.md", "x"))
	dry.ValidateOnly, dry.RequestID = true, "dry"
	got, err := e.b.Commit(ctx, dry)
	e.must(err)
	for _, bad := range []struct {
		want   *memory.Error
		change memory.Change
	}{
		{memory.ErrETagMismatch, when(put("a.md", "x"), memory.IfAbsent())},
		{memory.ErrPathCollision, put("A.md", "x")},
	} {
		req := e.request(bad.change)
		req.ValidateOnly = true
		_, err := e.b.Commit(ctx, req)
		e.wants(err, bad.want)
	}
	e.equal("state after validating", e.snapshot(e.key), before)
	dry.ValidateOnly = false
	real, err := e.b.Commit(ctx, dry) // the request id was not used up
	e.must(err)
	e.equal("validated and real result", got, real)
}

func modTime(_ *testing.T, e *env) {
	at := func(t time.Time) time.Time {
		c := put("a.md", fmt.Sprint(e.now, t))
		c.ModTime = t
		e.commit(c)
		return e.get("a.md", 0).ModTime
	}
	old := time.Date(2001, 2, 3, 4, 5, 6, 7, time.FixedZone("", 3600))
	e.equal("the author's", at(old), old.UTC())
	e.equal("unknown", at(time.Time{}), e.now)
	e.equal("the future", at(e.now.Add(48*time.Hour)), e.now)
	m := e.get("a.md", 0)
	e.equal("commit time", m.CommitTime, e.now)
}

func emptyContent(_ *testing.T, e *env) {
	e.commit(put("a.md", ""))
	m := e.get("a.md", 0)
	if m.Content == nil || len(m.Content) != 0 || m.Deleted || m.ETag != etag("") {
		e.t.Fatalf("got %+v, want a living memory with empty, non-nil content", m)
	}
	if c := e.changes(0)[0].Changes[0].Content; c == nil {
		e.t.Fatalf("the change has nil content, want empty")
	}
	e.equal("files", e.info(e.key).Files, int64(1))
}

func largeCommit(_ *testing.T, e *env) {
	var changes []memory.Change
	for i := range 400 {
		changes = append(changes, put(fmt.Sprintf("d%d/f%03d.md", i%7, i), strings.Repeat(fmt.Sprintf("%03d ", i), 4000)))
	}
	e.commit(changes...)
	e.reopen()
	got := e.list(store.ListOptions{Content: true})
	if len(got) != 400 {
		e.t.Fatalf("listed %d, want 400", len(got))
	}
	for _, m := range got {
		if memory.ETagOf(m.Content) != m.ETag || m.Size != int64(len(m.Content)) {
			e.t.Fatalf("%s: content, etag and size do not belong together", m.Path)
		}
	}
	e.equal("bytes", e.info(e.key).Bytes, int64(400*16000))
}

func unknownProject(_ *testing.T, e *env) {
	key := memory.ProjectKey{Team: "acme", Project: "nowhere"}
	req := e.request(put("a.md", "x"))
	req.Project = key
	_, err := e.b.Commit(ctx, req)
	e.wants(err, memory.ErrNotFound)
	_, err = e.b.Project(ctx, key)
	e.wants(err, memory.ErrNotFound)
	_, err = e.b.List(ctx, key, store.ListOptions{})
	e.wants(err, memory.ErrNotFound)
	_, err = e.b.Get(ctx, key, "a.md", 0)
	e.wants(err, memory.ErrNotFound)
	_, err = e.b.Changes(ctx, key, 0, 0, 0)
	e.wants(err, memory.ErrNotFound)
	_, err = e.b.Compact(ctx, key, e.now)
	e.wants(err, memory.ErrNotFound)
	_, _, err = e.b.Rewind(ctx, key, "x")
	e.wants(err, memory.ErrNotFound)
	_, err = e.b.Redact(ctx, store.RedactRequest{Project: key, Path: "a.md", Marker: []byte("x"), Now: e.now})
	e.wants(err, memory.ErrNotFound)
	e.wants(e.b.PurgeProject(ctx, key), memory.ErrNotFound)
	_, err = e.b.History(ctx, key, 0, 0, 0)
	e.wants(err, memory.ErrNotFound)
	_, err = e.b.Spans(ctx, key)
	e.wants(err, memory.ErrNotFound)
	e.wants(e.b.ImportSpans(ctx, key, nil), memory.ErrNotFound)
	e.wants(e.b.ImportCommits(ctx, key, 1, nil), memory.ErrNotFound)
}
