package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

func compactPromises() []promise {
	return []promise{
		{"CompactForgetsBeforeCut", compactForgets},
		{"CompactKeepsNewest", compactKeepsNewest},
		{"CompactKeepsTombstones", compactKeepsTombstones},
		{"CompactIsAPrefix", compactIsAPrefix},
		{"CompactTwice", compactTwice},
		{"CompactEmpty", compactEmpty},
		{"CompactLong", compactLong},
	}
}

func (e *env) compact(cut time.Time) store.CompactResult {
	e.t.Helper()
	res, err := e.b.Compact(ctx, e.key, cut)
	e.must(err)
	return res
}

func (e *env) compacted(err error, oldest memory.Revision) {
	e.t.Helper()
	got := e.wants(err, memory.ErrRevisionCompacted)
	if got.Oldest != oldest || got.Head != e.info(e.key).Head {
		e.t.Fatalf("got oldest %d and head %v, want %d and the head", got.Oldest, got.Head, oldest)
	}
}

func compactForgets(_ *testing.T, e *env) {
	e.commit(put("a.md", "1"), put("b.md", "keep"))
	e.commit(put("a.md", "22"))
	e.commit(put("a.md", "333"))
	fourth := e.commit(put("a.md", "4444"))
	e.commit(put("a.md", "55555"))
	e.equal("result", e.compact(fourth.Commit.Time), store.CompactResult{Commits: 3, Versions: 2, Bytes: 3})
	for range 2 {
		e.equal("oldest", e.info(e.key).Oldest, memory.Revision(4))
		for after := range memory.Revision(3) {
			_, err := e.b.Changes(ctx, e.key, after, 0, 0)
			e.compacted(err, 4)
		}
		e.equal("changes from the last kept state", len(e.changes(3)), 2)
		for at := memory.Revision(1); at < 3; at++ {
			_, err := e.b.Get(ctx, e.key, "a.md", at)
			e.compacted(err, 4)
			_, err = e.b.Get(ctx, e.key, "never.md", at)
			e.compacted(err, 4)
		}
		e.equal("the state that the oldest commit was made on", e.text("a.md", 3), "333")
		e.equal("kept", e.text("a.md", 4), "4444")
		e.equal("kept since long", e.text("b.md", 4), "keep")
		e.equal("earlier etags are within retention", e.list(store.ListOptions{EarlierETags: true})[0].EarlierETags,
			[]memory.ETag{etag("4444"), etag("333")})
		e.reopen()
	}
}

func compactKeepsNewest(_ *testing.T, e *env) {
	e.commit(put("a.md", "one"), put("b.md", "two"))
	e.commit(put("b.md", "three"), put("c.md", "four"))
	e.commit(put("d.md", "head"))
	before := e.list(store.ListOptions{Content: true, Deleted: true})
	info := e.info(e.key)
	e.equal("result", e.compact(e.now.Add(time.Hour)), store.CompactResult{Commits: 2, Versions: 1, Bytes: 3})
	info.Oldest = 3
	for range 2 {
		e.equal("list", e.list(store.ListOptions{Content: true, Deleted: true}), before)
		e.equal("info", e.info(e.key), info)
		e.equal("the head stays", e.changes(2)[0].Revision, memory.Revision(3))
		e.reopen()
	}
	e.commit(when(put("a.md", "more"), memory.IfMatch(etag("one"))))
	e.equal("history goes on", len(e.changes(2)), 2)
}

func compactKeepsTombstones(_ *testing.T, e *env) {
	e.commit(put("a.md", "one"))
	gone := e.commit(del("a.md"))
	e.commit(put("b.md", "two"))
	e.compact(e.now.Add(time.Hour))
	e.reopen()
	e.equal("tombstone", e.list(store.ListOptions{Deleted: true})[0],
		memory.Memory{Path: "a.md", Deleted: true, LastETag: etag("one"), Revision: 2, CommitTime: gone.Commit.Time, Author: author})
}

func compactIsAPrefix(_ *testing.T, e *env) {
	at := func(t time.Time, content string) {
		req := e.request(put("a.md", content))
		req.Now = t
		e.send(req)
	}
	at(day0.Add(time.Hour), "1")
	at(day0.Add(3*time.Hour), "2")
	at(day0.Add(2*time.Hour), "3") // the hub's clock was set back
	at(day0.Add(4*time.Hour), "4")
	e.equal("commits", e.compact(day0.Add(150*time.Minute)).Commits, int64(1))
	e.equal("oldest", e.info(e.key).Oldest, memory.Revision(2))
	e.equal("kept", e.text("a.md", 3), "3")
}

func compactTwice(_ *testing.T, e *env) {
	for i := range 10 {
		e.commit(put("a.md", fmt.Sprint(i)), put(fmt.Sprintf("f%d.md", i%3), fmt.Sprint(i)))
	}
	cut := func(n int) time.Time { return day0.Add(time.Duration(n) * time.Second) }
	e.compact(cut(4))
	e.equal("again", e.compact(cut(4)), store.CompactResult{})
	e.equal("an earlier cut", e.compact(cut(2)), store.CompactResult{})
	e.compact(cut(8))
	e.equal("oldest", e.info(e.key).Oldest, memory.Revision(8))
	for at := memory.Revision(7); at <= 10; at++ {
		e.equal("text", e.text("a.md", at), fmt.Sprint(at-1))
		for f := range memory.Revision(3) {
			last := at - 1 // the last i < at with i%3 == f
			for last%3 != f {
				last--
			}
			e.equal("f", e.text(fmt.Sprintf("f%d.md", f), at), fmt.Sprint(last))
		}
	}
}

func compactEmpty(_ *testing.T, e *env) {
	e.equal("no commits", e.compact(e.now.Add(time.Hour)), store.CompactResult{})
	e.commit(put("a.md", "one"))
	e.equal("the head alone", e.compact(e.now.Add(time.Hour)), store.CompactResult{})
	e.equal("oldest", e.info(e.key).Oldest, memory.Revision(1))
	e.equal("changes", len(e.changes(0)), 1)
}

func compactLong(_ *testing.T, e *env) {
	const n = 1200 // several slices, where a backend works in slices
	for i := range n {
		e.commit(put("a.md", fmt.Sprint(i)))
	}
	res := e.compact(day0.Add(1100 * time.Second))
	e.equal("commits", res.Commits, int64(1099))
	e.equal("versions", res.Versions, int64(1098))
	e.equal("oldest", e.info(e.key).Oldest, memory.Revision(1100))
	e.equal("text", e.text("a.md", 1099), "1098")
	e.equal("changes", len(e.changes(1099)), 101)
}
