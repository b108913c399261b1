package storetest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

func redactPromises() []promise {
	return []promise{
		{"RedactEveryVersion", redactEvery},
		{"RedactNamedVersions", redactNamed},
		{"RedactTombstone", redactTombstone},
		{"RedactRewritesRequestResults", redactResults},
		{"RedactCompactedRemnants", redactCompacted},
		{"RedactUnknown", redactUnknown},
		{"RedactFingerprints", redactFingerprints},
		{"RedactKeepsOthers", redactKeepsOthers},
		{"RedactElsewhere", redactElsewhere},
	}
}

const marker = "[redacted]"

func (e *env) redaction(path string, etags ...memory.ETag) store.RedactRequest {
	return store.RedactRequest{
		Project: e.key, Path: memory.Path(path), ETags: etags, Marker: []byte(marker), Author: memory.Author{Principal: "token:admin"},
		Now: e.tick(), Message: "leaked", Fingerprints: []string{"fp1", "fp2"},
	}
}

func (e *env) redact(req store.RedactRequest) store.CommitResult {
	e.t.Helper()
	res, err := e.b.Redact(ctx, req)
	e.must(err)
	return res
}

// traceless fails if anything that the store answers holds the text or its etag.
func (e *env) traceless(secret string) {
	e.t.Helper()
	s := e.snapshot(e.key)
	if dump := fmt.Sprintf("%+v", s); bytes.Contains([]byte(dump), []byte(etag(secret))) {
		e.t.Fatalf("the etag of the redacted text is still there:\n%s", dump)
	}
	for _, m := range s.Memories {
		if bytes.Contains(m.Content, []byte(secret)) {
			e.t.Fatalf("%s at %d still holds the redacted text", m.Path, m.Revision)
		}
	}
	for _, c := range s.History {
		for _, ch := range c.Changes {
			if bytes.Contains(ch.Content, []byte(secret)) {
				e.t.Fatalf("%s in revision %d still holds the redacted text", ch.Path, c.Revision)
			}
		}
	}
}

func redactEvery(_ *testing.T, e *env) {
	e.commit(put("a.md", "secret-1"), put("b.md", "fine"))
	e.commit(put("a.md", "secret-2"))
	e.commit(del("a.md"))
	e.commit(put("a.md", "secret-3"))
	res := e.redact(e.redaction("a.md"))
	mark := etag(marker)
	e.equal("result", res.Commit, memory.Commit{
		Project: e.key, Revision: 5, ID: res.Commit.ID, Author: memory.Author{Principal: "token:admin"}, Time: e.now, Message: "leaked",
		Changes: []memory.AppliedChange{{Path: "a.md", Kind: memory.Redact, ETag: mark, PreviousETag: mark, Size: int64(len(marker)), ModTime: day0.Add(4 * time.Second)}},
	})
	e.equal("head", res.Head, e.info(e.key).Head)
	e.equal("created", res.Created, true)
	for range 2 {
		for _, secret := range []string{"secret-1", "secret-2", "secret-3"} {
			e.traceless(secret)
		}
		for _, at := range []memory.Revision{0, 1, 2, 4, 5} {
			e.equal("text", e.text("a.md", at), marker)
			e.equal("etag", e.get("a.md", at).ETag, mark)
		}
		e.noMemory("a.md", 3)
		e.equal("told to watchers", without(e.changes(4)[0]), res.Commit)
		e.equal("with the text", string(e.changes(4)[0].Changes[0].Content), marker)
		e.equal("bytes", e.info(e.key).Bytes, int64(len(marker)+4))
		e.reopen()
	}
	e.commit(when(put("a.md", "clean"), memory.IfMatch(mark)))
}

func redactNamed(_ *testing.T, e *env) {
	e.commit(put("a.md", "clean-1"))
	e.commit(put("a.md", "secret"))
	e.commit(put("a.md", "clean-2"))
	res := e.redact(e.redaction("a.md", etag("secret"), etag("not there")))
	c := res.Commit.Changes[0]
	e.equal("present etag", c.ETag, etag("clean-2"))
	e.traceless("secret")
	e.equal("before", e.text("a.md", 1), "clean-1")
	e.equal("redacted", e.text("a.md", 2), marker)
	e.equal("after", e.text("a.md", 3), "clean-2")
	e.equal("present", e.text("a.md", 0), "clean-2")
	e.equal("the commit carries the present text", string(e.changes(3)[0].Changes[0].Content), "clean-2")
	e.equal("previous etag of its successor", e.changes(2)[0].Changes[0].PreviousETag, etag(marker))
}

func redactTombstone(_ *testing.T, e *env) {
	e.commit(put("a.md", "secret"))
	e.commit(del("a.md"))
	res := e.redact(e.redaction("a.md"))
	e.equal("change", res.Commit.Changes, []memory.AppliedChange{{Path: "a.md", Kind: memory.Redact, PreviousETag: etag(marker)}})
	for range 2 {
		e.traceless("secret")
		e.noMemory("a.md", 0)
		m := e.list(store.ListOptions{Deleted: true})[0]
		if !m.Deleted || m.LastETag != etag(marker) || m.Revision != 3 {
			e.t.Fatalf("got %+v, want a tombstone of the marker", m)
		}
		e.equal("counts", []int64{e.info(e.key).Files, e.info(e.key).Bytes}, []int64{0, 0})
		e.reopen()
	}
	e.commit(when(put("a.md", "new"), memory.IfAbsent()))
}

func redactResults(_ *testing.T, e *env) {
	req := e.withID("r1", put("a.md", "secret"), put("b.md", "fine"))
	first := e.send(req)
	e.redact(e.redaction("a.md"))
	want := first
	want.Commit.Changes[0].ETag, want.Commit.Changes[0].Size = etag(marker), int64(len(marker))
	e.equal("retry", e.send(req), want)
	e.compact(e.now.Add(time.Hour))
	e.equal("retry after compaction", e.send(req), want)

	old := e.withID("r2", put("b.md", "secret"))
	first = e.send(old)
	e.commit(put("b.md", "other"))
	e.compact(e.now.Add(time.Hour))
	e.redact(e.redaction("b.md"))
	got := e.send(old)
	if got.Commit.ID != first.Commit.ID || got.Commit.Revision != first.Commit.Revision {
		e.t.Fatalf("got %+v, want the first result", got)
	}
	e.commit(put("c.md", "x"))
	late := e.withID("r3", put("c.md", "secret"))
	e.send(late)
	e.commit(put("d.md", "y"))
	e.commit(put("d.md", "z"))
	e.compact(e.now.Add(time.Hour))
	e.redact(e.redaction("c.md"))
	e.equal("a compacted result", e.send(late).Commit.Changes[0].ETag, etag(marker))
}

func redactCompacted(_ *testing.T, e *env) {
	e.commit(put("a.md", "secret"), put("b.md", "fine"))
	e.commit(put("c.md", "1"))
	e.commit(put("c.md", "2"))
	e.compact(e.now.Add(time.Hour))
	e.redact(e.redaction("a.md"))
	e.traceless("secret")
	e.equal("text", e.text("a.md", 0), marker)
	e.equal("others", e.text("b.md", 0), "fine")
}

func redactUnknown(_ *testing.T, e *env) {
	e.commit(put("a.md", "one"))
	before := e.snapshot(e.key)
	_, err := e.b.Redact(ctx, e.redaction("never.md"))
	e.wants(err, memory.ErrNotFound)
	_, err = e.b.Redact(ctx, e.redaction("a.md", etag("not there")))
	e.wants(err, memory.ErrNotFound)
	bad := e.redaction("a.md")
	bad.Marker = nil
	_, err = e.b.Redact(ctx, bad)
	e.wants(err, memory.ErrInvalidArgument)
	e.equal("state", e.snapshot(e.key), before)
	known, err := e.b.Redacted(ctx, "acme", []string{"fp1"})
	e.must(err)
	e.equal("fingerprints of a failed redaction", len(known), 0)
}

func redactFingerprints(_ *testing.T, e *env) {
	e.commit(put("a.md", "secret"))
	e.redact(e.redaction("a.md"))
	before := e.snapshot(e.key)
	_, err := e.b.Redact(ctx, e.redaction("a.md"))
	e.wants(err, memory.ErrNotFound)
	e.equal("again", e.snapshot(e.key), before)
	e.reopen()
	for _, c := range []struct {
		team memory.Team
		fps  []string
		want []string
	}{
		{"acme", []string{"fp1"}, []string{"fp1"}},
		{"acme", []string{"fp2", "other", "fp1"}, []string{"fp2", "fp1"}},
		{"acme", []string{"other"}, nil},
		{"acme", nil, nil},
		{"other", []string{"fp1"}, nil},
	} {
		got, err := e.b.Redacted(ctx, c.team, c.fps)
		e.must(err)
		e.equal(fmt.Sprint(c.team, c.fps), got, c.want)
	}
	all, err := e.b.Redactions(ctx, "acme")
	e.must(err)
	e.equal("list", all, []string{"fp1", "fp2"})
}

func redactKeepsOthers(_ *testing.T, e *env) {
	e.commit(put("a.md", "same"), put("b.md", "same"))
	e.redact(e.redaction("a.md"))
	e.equal("the same text elsewhere", e.text("b.md", 0), "same")
	e.equal("in history", string(e.changes(0)[0].Changes[1].Content), "same")
}

// redactElsewhere: texts of the path that the store knows nothing of are told to the
// watchers too, whether the path lives or not; a path that never was is none.
func redactElsewhere(_ *testing.T, e *env) {
	e.commit(put("a.md", "fine"), put("b.md", "gone"))
	e.commit(del("b.md"))
	elsewhere := func(path string) store.RedactRequest {
		req := e.redaction(path, etag("never stored"))
		req.Elsewhere = true
		return req
	}
	res := e.redact(elsewhere("a.md"))
	e.equal("living", res.Commit.Changes, []memory.AppliedChange{{Path: "a.md", Kind: memory.Redact, ETag: etag("fine"), PreviousETag: etag("fine"), Size: 4, ModTime: day0.Add(time.Second)}})
	e.equal("text", e.text("a.md", 0), "fine")
	res = e.redact(elsewhere("b.md"))
	e.equal("deleted", res.Commit.Changes, []memory.AppliedChange{{Path: "b.md", Kind: memory.Redact, PreviousETag: etag("gone")}})
	known, err := e.b.Redacted(ctx, "acme", []string{"fp1"})
	e.must(err)
	e.equal("fingerprints", known, []string{"fp1"})
	before := e.snapshot(e.key)
	_, err = e.b.Redact(ctx, elsewhere("never.md"))
	e.wants(err, memory.ErrNotFound)
	e.equal("state", e.snapshot(e.key), before)
}
