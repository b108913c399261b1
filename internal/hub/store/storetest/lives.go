package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

func archivePromises() []promise {
	return []promise{
		{"ImportAsIs", importAsIs},
		{"ImportGaps", importGaps},
		{"ImportSpans", importSpans},
		{"ImportRedactions", importRedactions},
	}
}

func lifePromises() []promise {
	return []promise{
		{"ClosedAnswersErrClosed", closed},
		{"CancelledContext", cancelled},
	}
}

func importAsIs(_ *testing.T, e *env) {
	for i := range 12 {
		e.commit(put("a.md", fmt.Sprint(i)), put(fmt.Sprintf("f%d.md", i%4), fmt.Sprint(i)))
	}
	e.commit(del("f1.md"))
	e.redact(e.redaction("f2.md"))
	e.compact(day0.Add(7 * 1e9))
	want := e.snapshot(e.key)
	copyKey := memory.ProjectKey{Team: "acme", Project: "copy"}
	e.must(e.b.CreateProject(ctx, copyKey, day0))
	after := memory.Revision(0)
	for {
		cs, err := e.b.History(ctx, e.key, after, 3, 0)
		e.must(err)
		if len(cs) == 0 {
			break
		}
		e.must(e.b.ImportCommits(ctx, copyKey, want.Info.Oldest, cs))
		after = cs[len(cs)-1].Revision
	}
	for range 2 {
		got := e.snapshot(copyKey)
		got.Info.Key = e.key
		for i := range got.History {
			got.History[i].Project = e.key
		}
		e.equal("imported state", got, want)
		for at := want.Info.Oldest - 1; at <= want.Info.Head.Revision; at++ {
			a, err := e.b.Get(ctx, e.key, "a.md", at)
			e.must(err)
			b, err := e.b.Get(ctx, copyKey, "a.md", at)
			e.must(err)
			e.equal("memory", b, a)
		}
		e.reopen()
	}
	req := e.request(when(put("f1.md", "new"), memory.IfAbsent()))
	req.Project = copyKey
	e.equal("history goes on", e.send(req).Head.Revision, want.Info.Head.Revision+1)
}

func importGaps(_ *testing.T, e *env) {
	for i := range 4 {
		e.commit(put("a.md", fmt.Sprint(i)))
	}
	all := e.changes(0)
	key := memory.ProjectKey{Team: "acme", Project: "copy"}
	e.must(e.b.CreateProject(ctx, key, day0))
	e.wants(e.b.ImportCommits(ctx, key, 1, all[1:]), memory.ErrInvalidArgument)
	e.must(e.b.ImportCommits(ctx, key, 1, all[:2]))
	before := e.snapshot(key)
	e.wants(e.b.ImportCommits(ctx, key, 1, all[:2]), memory.ErrInvalidArgument) // there already
	e.wants(e.b.ImportCommits(ctx, key, 1, all[3:]), memory.ErrInvalidArgument) // a gap
	e.wants(e.b.ImportCommits(ctx, key, 2, all[2:]), memory.ErrInvalidArgument) // another oldest
	e.wants(e.b.ImportCommits(ctx, key, 0, all[2:]), memory.ErrInvalidArgument) // no oldest
	damaged := []memory.Commit{store.WithContents(&all[2]), store.WithContents(&all[3])}
	damaged[1].Changes[0].Content = []byte("not what the etag says")
	e.wants(e.b.ImportCommits(ctx, key, 1, damaged), memory.ErrInvalidArgument)
	e.equal("state", e.snapshot(key), before)
	e.must(e.b.ImportCommits(ctx, key, 1, all[2:]))
}

func importSpans(_ *testing.T, e *env) {
	first, err := e.b.Epoch(ctx)
	e.must(err)
	e.commit(put("a.md", "one"))
	e.commit(put("a.md", "two"))
	for range 2 { // again is harmless
		e.must(e.b.ImportSpans(ctx, e.key, []store.Span{{Epoch: "far-1", Through: 1}, {Epoch: "far-2", Through: 2}}))
	}
	e.must(e.b.NewEpoch(ctx, "second", e.tick()))
	e.reopen()
	for seen, want := range map[memory.Epoch]memory.Revision{"far-1": 1, "far-2": 2, first: 2, "second": 2} {
		at, ok := e.rewind(seen)
		if !ok || at != want {
			e.t.Fatalf("rewind from %s: got %d, %v, want %d", seen, at, ok, want)
		}
	}
}

func importRedactions(_ *testing.T, e *env) {
	e.must(e.b.ImportRedactions(ctx, "acme", []string{"b", "a", "b"}))
	e.must(e.b.ImportRedactions(ctx, "acme", nil))
	got, err := e.b.Redactions(ctx, "acme")
	e.must(err)
	e.equal("redactions", got, []string{"a", "b"})
}

// everyCall calls every method that can fail.
func everyCall(ctx context.Context, b store.Backend, key memory.ProjectKey) map[string]error {
	errs := make(map[string]error)
	_, errs["Epoch"] = b.Epoch(ctx)
	errs["CreateProject"] = b.CreateProject(ctx, memory.ProjectKey{Team: "x", Project: "y"}, day0)
	_, errs["Project"] = b.Project(ctx, key)
	_, errs["List"] = b.List(ctx, key, store.ListOptions{})
	_, errs["Get"] = b.Get(ctx, key, "a.md", 0)
	_, errs["Commit"] = b.Commit(ctx, store.CommitRequest{Project: key, Now: day0, Changes: []memory.Change{put("z.md", "z")}})
	_, errs["Changes"] = b.Changes(ctx, key, 0, 0, 0)
	_, errs["Compact"] = b.Compact(ctx, key, day0)
	_, _, errs["Rewind"] = b.Rewind(ctx, key, "x")
	errs["NewEpoch"] = b.NewEpoch(ctx, "x", day0)
	_, errs["Redact"] = b.Redact(ctx, store.RedactRequest{Project: key, Path: "a.md", Marker: []byte("m"), Now: day0})
	_, errs["Redacted"] = b.Redacted(ctx, "acme", []string{"x"})
	_, errs["Teams"] = b.Teams(ctx)
	_, errs["Projects"] = b.Projects(ctx, "")
	_, _, errs["Setting"] = b.Setting(ctx, "", "x")
	errs["PutSetting"] = b.PutSetting(ctx, "", "x", nil, 0)
	errs["PutToken"] = b.PutToken(ctx, store.Token{ID: "x", Hash: "x"})
	_, errs["TokenByHash"] = b.TokenByHash(ctx, "h")
	_, errs["Tokens"] = b.Tokens(ctx, "")
	errs["RevokeToken"] = b.RevokeToken(ctx, "t", day0)
	_, errs["AppendAudit"] = b.AppendAudit(ctx, store.AuditEvent{Time: day0})
	errs["RepeatAudit"] = b.RepeatAudit(ctx, 1, 1, day0)
	_, errs["TrimAudit"] = b.TrimAudit(ctx, day0)
	_, errs["AuditEvents"] = b.AuditEvents(ctx, "", 0, 1)
	_, errs["Spans"] = b.Spans(ctx, key)
	_, errs["History"] = b.History(ctx, key, 0, 0, 0)
	errs["ImportCommits"] = b.ImportCommits(ctx, key, 1, nil)
	errs["ImportSpans"] = b.ImportSpans(ctx, key, nil)
	_, errs["SettingNames"] = b.SettingNames(ctx, "")
	_, errs["Redactions"] = b.Redactions(ctx, "acme")
	errs["ImportRedactions"] = b.ImportRedactions(ctx, "acme", nil)
	errs["PurgeProject"] = b.PurgeProject(ctx, key)
	return errs
}

func closed(_ *testing.T, e *env) {
	e.commit(put("a.md", "one"))
	e.must(e.b.Close())
	for name, err := range everyCall(ctx, e.b, e.key) {
		if !errors.Is(err, store.ErrClosed) {
			e.t.Errorf("%s after Close: got %v, want ErrClosed", name, err)
		}
	}
	_, stop := e.b.Notify([]memory.ProjectKey{e.key})
	stop()
	e.must(e.b.Close()) // twice is fine
}

func cancelled(_ *testing.T, e *env) {
	e.commit(put("a.md", "one"))
	before := e.snapshot(e.key)
	over, cancel := context.WithCancel(ctx)
	cancel()
	for name, err := range everyCall(over, e.b, e.key) {
		if !errors.Is(err, context.Canceled) {
			e.t.Errorf("%s with a cancelled context: got %v, want Canceled", name, err)
		}
	}
	e.equal("state", e.snapshot(e.key), before)
}

func concurrencyPromises() []promise {
	return []promise{
		{"ManyWritersOneProject", manyWriters},
		{"ManyWritersManyProjects", manyProjects},
		{"WatchersSeeEveryCommit", watchersSeeAll},
		{"ReadersDuringCompaction", readersDuringCompaction},
		{"CloseWaits", closeWaits},
	}
}

const writers = 32

// manyWriters lets writers increment one counter by compare-and-set: no increment
// may be lost, and revisions have no gap.
func manyWriters(_ *testing.T, e *env) {
	const each = 8
	e.commit(put("counter.md", "0"))
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				for {
					m, err := e.b.Get(ctx, e.key, "counter.md", 0)
					if err != nil {
						e.t.Errorf("get: %v", err)
						return
					}
					var n int
					if _, err := fmt.Sscan(string(m.Content), &n); err != nil {
						e.t.Errorf("counter %q: %v", m.Content, err)
						return
					}
					req := store.CommitRequest{Project: e.key, Author: author, Now: day0, RequestID: fmt.Sprint(w, i, n),
						Changes: []memory.Change{when(put("counter.md", fmt.Sprint(n+1)), memory.IfMatch(m.ETag)), put(fmt.Sprintf("w%d.md", w), fmt.Sprint(i))}}
					_, err = e.b.Commit(ctx, req)
					if err == nil {
						break
					}
					if !errors.Is(err, memory.ErrETagMismatch) {
						e.t.Errorf("commit: %v", err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	e.equal("counter", e.text("counter.md", 0), fmt.Sprint(writers*each))
	e.gapless(e.key, 1+writers*each)
}

// gapless checks that the project's history is revisions 1 to n, chained by id and
// by etags.
func (e *env) gapless(key memory.ProjectKey, n memory.Revision) {
	e.t.Helper()
	cs, err := e.b.Changes(ctx, key, 0, 0, 0)
	e.must(err)
	e.equal("commits", memory.Revision(len(cs)), n)
	epoch, err := e.b.Epoch(ctx)
	e.must(err)
	etags := make(map[memory.Path]memory.ETag)
	parent := memory.CommitID("")
	for i := range cs {
		c := &cs[i]
		if c.Revision != memory.Revision(i+1) || c.ID != memory.NextCommitID(parent, epoch, c) {
			e.t.Fatalf("commit %d is revision %d with id %s, not the successor of %s", i+1, c.Revision, c.ID, parent)
		}
		parent = c.ID
		for _, ch := range c.Changes {
			if ch.PreviousETag != etags[ch.Path] {
				e.t.Fatalf("revision %d: %s was %s, the commit says %s", c.Revision, ch.Path, etags[ch.Path], ch.PreviousETag)
			}
			etags[ch.Path] = ch.ETag
		}
	}
}

func manyProjects(_ *testing.T, e *env) {
	const each = 20
	var wg sync.WaitGroup
	key := func(w int) memory.ProjectKey {
		return memory.ProjectKey{Team: "acme", Project: memory.Project(fmt.Sprintf("p%d", w))}
	}
	for w := range writers {
		wg.Go(func() {
			if err := e.b.CreateProject(ctx, key(w), day0); err != nil {
				e.t.Errorf("create: %v", err)
			}
			for i := range each {
				res, err := e.b.Commit(ctx, store.CommitRequest{Project: key(w), Author: author, Now: day0, Changes: []memory.Change{put("a.md", fmt.Sprint(i))}})
				if err != nil || res.Head.Revision != memory.Revision(i+1) {
					e.t.Errorf("commit: %v at %v, want revision %d", err, res.Head, i+1)
					return
				}
				m, err := e.b.Get(ctx, key(w), "a.md", 0)
				if err != nil || string(m.Content) != fmt.Sprint(i) {
					e.t.Errorf("own write: %q, %v, want %d", m.Content, err, i)
				}
			}
		})
	}
	wg.Wait()
	e.reopen()
	for w := range writers {
		e.gapless(key(w), each)
	}
}

// watchersSeeAll follows the log by notices alone: with one that sleeps through a
// commit, the last watcher would hang.
func watchersSeeAll(_ *testing.T, e *env) {
	const total = writers * 10
	var wg sync.WaitGroup
	for range 8 {
		c, stop := e.b.Notify([]memory.ProjectKey{e.key})
		wg.Go(func() {
			defer stop()
			at := memory.Revision(0)
			for at < total {
				cs, err := e.b.Changes(ctx, e.key, at, 5, 0)
				if err != nil {
					e.t.Errorf("changes: %v", err)
					return
				}
				for _, commit := range cs {
					if commit.Revision != at+1 {
						e.t.Errorf("revision %d after %d", commit.Revision, at)
						return
					}
					at = commit.Revision
				}
				if len(cs) == 0 && !fired(c) {
					e.t.Errorf("no notice at revision %d of %d", at, total)
					return
				}
			}
		})
	}
	for w := range writers {
		wg.Go(func() {
			for i := range 10 {
				_, err := e.b.Commit(ctx, store.CommitRequest{Project: e.key, Author: author, Now: day0, Changes: []memory.Change{put(fmt.Sprintf("w%d.md", w), fmt.Sprint(i))}})
				if err != nil {
					e.t.Errorf("commit: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func readersDuringCompaction(_ *testing.T, e *env) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				ms, err := e.b.List(ctx, e.key, store.ListOptions{Content: true})
				if err != nil {
					e.t.Errorf("list: %v", err)
					return
				}
				for _, m := range ms {
					if memory.ETagOf(m.Content) != m.ETag {
						e.t.Errorf("%s at %d: content and etag do not belong together", m.Path, m.Revision)
					}
				}
				info, err := e.b.Project(ctx, e.key)
				if err != nil {
					e.t.Errorf("project: %v", err)
					return
				}
				for at := info.Oldest - 1; at >= 1 && at <= info.Head.Revision; at++ {
					_, err := e.b.Get(ctx, e.key, "a.md", at)
					if err != nil && !errors.Is(err, memory.ErrRevisionCompacted) {
						e.t.Errorf("get at %d: %v", at, err)
						return
					}
				}
				_, err = e.b.Changes(ctx, e.key, info.Oldest-1, 0, 0)
				if err != nil && !errors.Is(err, memory.ErrRevisionCompacted) {
					e.t.Errorf("changes: %v", err)
					return
				}
			}
		})
	}
	for i := range 200 {
		e.commit(put("a.md", fmt.Sprint(i)), put(fmt.Sprintf("f%d.md", i%5), fmt.Sprint(i)))
		if i%10 == 9 {
			e.compact(e.now.Add(-3e9))
		}
	}
	close(done)
	wg.Wait()
}

func closeWaits(_ *testing.T, e *env) {
	var wg sync.WaitGroup
	acked := make([]int, writers)
	started := make(chan struct{}, writers)
	for w := range writers {
		wg.Go(func() {
			for i := 1; ; i++ {
				_, err := e.b.Commit(ctx, store.CommitRequest{Project: e.key, Author: author, Now: day0, Changes: []memory.Change{put(fmt.Sprintf("w%d.md", w), fmt.Sprint(i))}})
				if errors.Is(err, store.ErrClosed) {
					return
				}
				if err != nil {
					e.t.Errorf("commit: %v", err)
					return
				}
				acked[w] = i
				if i == 1 {
					started <- struct{}{}
				}
			}
		})
	}
	for range writers {
		<-started
	}
	if e.h.Reopen == nil {
		e.must(e.b.Close())
		wg.Wait()
		return
	}
	e.must(e.b.Close())
	wg.Wait()
	e.reopen()
	for w, n := range acked {
		if got := e.text(fmt.Sprintf("w%d.md", w), 0); got != fmt.Sprint(n) {
			e.t.Errorf("writer %d: %s is stored, %d was acknowledged last", w, got, n)
		}
	}
}
