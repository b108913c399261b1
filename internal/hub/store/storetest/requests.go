package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

func requestPromises() []promise {
	return []promise{
		{"RequestIDAnswersFirstResult", requestRepeats},
		{"RequestIDOfUnchanged", requestUnchanged},
		{"RequestIDReused", requestReused},
		{"RequestIDIsPerPrincipalAndProject", requestScopes},
		{"RequestIDExpires", requestExpires},
		{"RequestIDOfFailureIsFree", requestOfFailure},
		{"RequestIDOutlivesCompaction", requestCompacted},
		{"RequestIDsMany", requestsMany},
	}
}

func (e *env) withID(id string, changes ...memory.Change) store.CommitRequest {
	req := e.request(changes...)
	req.RequestID = id
	return req
}

func (e *env) send(req store.CommitRequest) store.CommitResult {
	e.t.Helper()
	res, err := e.b.Commit(ctx, req)
	e.must(err)
	return res
}

func requestRepeats(_ *testing.T, e *env) {
	req := e.withID("r1", when(put("a.md", "one"), memory.IfAbsent()), put("b.md", "two"))
	first := e.send(req)
	e.equal("retry at once", e.send(req), first)
	e.commit(put("a.md", "three"))
	e.reopen()
	req.Now = e.tick()
	req.Author.Session, req.Author.Machine = "s2", "other" // labels may change between tries
	req.Changes[0].ModTime = e.now
	e.equal("retry after others", e.send(req), first)
	e.equal("text", e.text("a.md", 0), "three")
	e.equal("head", e.info(e.key).Head.Revision, memory.Revision(2))
	req.ValidateOnly = true
	e.equal("validated", e.send(req), first)
}

func requestUnchanged(_ *testing.T, e *env) {
	e.commit(put("a.md", "one"))
	req := e.withID("r1", put("a.md", "one"))
	first := e.send(req)
	e.equal("created", first.Created, false)
	e.commit(put("a.md", "two"))
	e.equal("retry", e.send(req), first)
	e.equal("text", e.text("a.md", 0), "two")
}

func requestReused(_ *testing.T, e *env) {
	e.send(e.withID("r1", put("a.md", "one")))
	for _, other := range [][]memory.Change{
		{put("a.md", "two")},
		{put("b.md", "one")},
		{del("a.md")},
		{put("a.md", "one"), put("b.md", "one")},
		{when(put("a.md", "one"), memory.IfAbsent())},
	} {
		before := e.snapshot(e.key)
		_, err := e.b.Commit(ctx, e.withID("r1", other...))
		e.wants(err, memory.ErrRequestIDReused)
		e.equal("state", e.snapshot(e.key), before)
	}
	req := e.withID("r1", put("a.md", "one"))
	req.Message = "another message"
	_, err := e.b.Commit(ctx, req)
	e.wants(err, memory.ErrRequestIDReused)
}

func requestScopes(_ *testing.T, e *env) {
	other := memory.ProjectKey{Team: "acme", Project: "web"}
	e.must(e.b.CreateProject(ctx, other, e.now))
	e.send(e.withID("r1", put("a.md", "one")))
	theirs := e.withID("r1", put("a.md", "two"))
	theirs.Author.Principal = "token:bob"
	e.equal("another principal", e.send(theirs).Created, true)
	there := e.withID("r1", put("a.md", "three"))
	there.Project = other
	e.equal("another project", e.send(there).Created, true)
}

func requestExpires(_ *testing.T, e *env) {
	req := e.withID("r1", put("a.md", "one"))
	first := e.send(req)
	retry := req
	retry.Now = req.Now.Add(memory.RequestIDLifetime - time.Nanosecond)
	e.equal("just before", e.send(retry), first)
	late := e.withID("r1", put("a.md", "two"))
	late.Now = req.Now.Add(memory.RequestIDLifetime)
	second := e.send(late)
	e.equal("after", second.Created, true)
	late.Now = late.Now.Add(time.Hour)
	e.equal("the new use is remembered", e.send(late), second)
}

func requestOfFailure(_ *testing.T, e *env) {
	e.commit(put("a.md", "one"))
	req := e.withID("r1", when(put("a.md", "two"), memory.IfMatch(etag("zero"))))
	_, err := e.b.Commit(ctx, req)
	e.wants(err, memory.ErrETagMismatch)
	e.commit(put("a.md", "zero"))
	e.equal("the same request later", e.send(req).Created, true)
}

func requestCompacted(_ *testing.T, e *env) {
	req := e.withID("r1", put("a.md", "one"), put("b.md", "two"))
	first := e.send(req)
	e.commit(put("a.md", "three"))
	e.commit(put("b.md", "four"))
	_, err := e.b.Compact(ctx, e.key, e.now.Add(time.Hour))
	e.must(err)
	e.equal("retry", e.send(req), first)
	e.reopen()
	e.equal("retry after a restart", e.send(req), first)
}

// requestsMany remembers more ids than a backend may wish to keep at hand.
func requestsMany(_ *testing.T, e *env) {
	const n = 2500
	start := e.now
	ask := func(i int) store.CommitRequest {
		return store.CommitRequest{Project: e.key, Author: author, Now: start.Add(time.Duration(i) * time.Millisecond), Message: "m",
			RequestID: fmt.Sprint("r", i), Changes: []memory.Change{put(fmt.Sprintf("f%d.md", i%50), fmt.Sprint(i))}}
	}
	first := make([]store.CommitResult, n)
	for i := range n {
		first[i] = e.send(ask(i))
	}
	check := func(when string) {
		for i := 0; i < n; i += 99 {
			e.equal(when, e.send(ask(i)), first[i])
		}
		e.equal("head "+when, e.info(e.key).Head.Revision, memory.Revision(n))
	}
	check("at once")
	e.reopen()
	check("after a restart")
	e.compact(start.Add(2 * time.Second))
	check("after compaction")
	e.reopen()
	check("after both")
}
