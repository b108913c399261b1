package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

func readPromises() []promise {
	return []promise{
		{"ProjectInfo", projectInfo},
		{"CreateTwice", createTwice},
		{"ListInPathOrder", listInPathOrder},
		{"ListPages", listPages},
		{"ListOptions", listOptions},
		{"ListOfPaths", listOfPaths},
		{"ListEarlierETags", listEarlierETags},
		{"EarlierETagsAreBounded", earlierBounded},
		{"GetAtRevision", getAtRevision},
		{"TombstonesStay", tombstonesStay},
		{"ValuesAreCopies", valuesAreCopies},
		{"HandedOverContents", handedOverContents},
	}
}

func feedPromises() []promise {
	return []promise{
		{"ChangesAscendWhole", changesAscend},
		{"ChangesBounds", changesBounds},
		{"ChangesBeyondHead", changesBeyondHead},
		{"NotifyFires", notifyFires},
		{"NotifyMerges", notifyMerges},
		{"NotifyOfUnknownProject", notifyUnknown},
		{"NotifyStops", notifyStops},
	}
}

func projectInfo(_ *testing.T, e *env) {
	epoch, err := e.b.Epoch(ctx)
	e.must(err)
	if epoch == "" {
		e.t.Fatalf("the epoch is empty")
	}
	e.equal("fresh", e.info(e.key), store.ProjectInfo{Key: e.key, Head: memory.Cursor{Epoch: epoch}, Oldest: 1, CreateTime: day0})
}

func createTwice(_ *testing.T, e *env) {
	e.commit(put("a.md", "one"))
	e.wants(e.b.CreateProject(ctx, e.key, e.now), memory.ErrAlreadyExists)
	e.equal("text", e.text("a.md", 0), "one")
}

func paths(ms []memory.Memory) []memory.Path {
	var out []memory.Path
	for _, m := range ms {
		out = append(out, m.Path)
	}
	return out
}

func listInPathOrder(_ *testing.T, e *env) {
	for _, p := range []string{"b.md", "a/z.md", "a.md", "项目.md", "a-b.md", "Z.md"} {
		e.commit(put(p, p))
	}
	e.equal("order", paths(e.list(store.ListOptions{})), []memory.Path{"Z.md", "a-b.md", "a.md", "a/z.md", "b.md", "项目.md"})
}

func listOfPaths(_ *testing.T, e *env) {
	e.commit(put("a.md", "one"), put("b.md", "two"), put("c.md", "three"))
	e.commit(put("d.md", "four"), del("c.md"))
	asked := []memory.Path{"d.md", "never.md", "c.md", "a.md", "d.md"}
	got := e.list(store.ListOptions{Paths: asked, Content: true})
	e.equal("living ones, once each, in path order", paths(got), []memory.Path{"a.md", "d.md"})
	e.equal("text", string(got[0].Content)+" "+string(got[1].Content), "one four")
	e.equal("tombstones on request", paths(e.list(store.ListOptions{Paths: asked, Deleted: true})), []memory.Path{"a.md", "c.md", "d.md"})
	e.equal("after a path", paths(e.list(store.ListOptions{Paths: asked, After: "a.md"})), []memory.Path{"d.md"})
	e.equal("none asked for", paths(e.list(store.ListOptions{Paths: []memory.Path{}})), []memory.Path(nil))
}

func listPages(_ *testing.T, e *env) {
	var want []memory.Path
	for i := range 10 {
		p := fmt.Sprintf("f%d.md", i)
		want = append(want, memory.Path(p))
		e.commit(put(p, p))
	}
	var got []memory.Path
	after := memory.Path("")
	for {
		page := e.list(store.ListOptions{After: after, Limit: 3})
		if len(page) > 3 {
			e.t.Fatalf("a page of %d, want at most 3", len(page))
		}
		if len(page) == 0 {
			break
		}
		got = append(got, paths(page)...)
		after = page[len(page)-1].Path
	}
	e.equal("all pages", got, want)
}

func listOptions(_ *testing.T, e *env) {
	e.commit(put("a.md", "one"))
	e.commit(put("b.md", "two"))
	gone := e.commit(del("a.md"))
	e.equal("living", paths(e.list(store.ListOptions{})), []memory.Path{"b.md"})
	m := e.list(store.ListOptions{})[0]
	if m.Content != nil || m.Size != 3 || m.Author != author {
		e.t.Fatalf("got %+v, want metadata without content", m)
	}
	e.equal("with content", string(e.list(store.ListOptions{Content: true})[0].Content), "two")
	e.equal("tombstones", e.list(store.ListOptions{Deleted: true, Content: true, ChangedAfter: 2}), []memory.Memory{
		{Path: "a.md", Deleted: true, LastETag: etag("one"), Revision: 3, CommitTime: gone.Commit.Time, Author: author},
	})
	e.equal("changed after", paths(e.list(store.ListOptions{ChangedAfter: 1})), []memory.Path{"b.md"})
	e.equal("changed after the head", e.list(store.ListOptions{ChangedAfter: 3, Deleted: true}), []memory.Memory(nil))
}

func listEarlierETags(_ *testing.T, e *env) {
	e.commit(put("a.md", "1"), put("b.md", "x"), put("c.md", "only"))
	e.commit(put("a.md", "2"))
	e.commit(del("b.md"))
	e.commit(put("a.md", "1"))
	e.commit(put("a.md", "3"))
	e.commit(del("a.md"))
	e.commit(put("a.md", "4"))
	got := make(map[memory.Path][]memory.ETag)
	for _, m := range e.list(store.ListOptions{EarlierETags: true, Deleted: true}) {
		got[m.Path] = m.EarlierETags
	}
	e.equal("earlier etags", got, map[memory.Path][]memory.ETag{
		"a.md": {etag("3"), etag("1"), etag("2")},
		"b.md": {etag("x")},
		"c.md": nil,
	})
	e.equal("only when asked for", e.list(store.ListOptions{})[0].EarlierETags, []memory.ETag(nil))
}

func earlierBounded(_ *testing.T, e *env) {
	for i := range store.MaxEarlierETags + 10 {
		e.commit(put("a.md", fmt.Sprint(i)))
	}
	got := e.list(store.ListOptions{EarlierETags: true})[0].EarlierETags
	if len(got) != store.MaxEarlierETags {
		e.t.Fatalf("%d earlier etags, want %d", len(got), store.MaxEarlierETags)
	}
	e.equal("newest first", got[0], etag(fmt.Sprint(store.MaxEarlierETags+8)))
}

func getAtRevision(_ *testing.T, e *env) {
	e.commit(put("a.md", "1"))
	e.commit(put("b.md", "x"))
	e.commit(put("a.md", "2"))
	e.commit(del("a.md"))
	e.commit(put("b.md", "y"))
	e.commit(put("a.md", "3"))
	for at, want := range map[memory.Revision]string{1: "1", 2: "1", 3: "2", 6: "3", 0: "3"} {
		e.equal(fmt.Sprintf("a.md at %d", at), e.text("a.md", at), want)
	}
	e.noMemory("a.md", 4)
	e.noMemory("a.md", 5)
	e.noMemory("b.md", 1)
	e.noMemory("never.md", 0)
	e.noMemory("never.md", 3)
	m := e.get("a.md", 2)
	e.equal("whole value", m, memory.Memory{Path: "a.md", ETag: etag("1"), Content: []byte("1"), Size: 1, Revision: 1,
		ModTime: day0.Add(time.Second), CommitTime: day0.Add(time.Second), Author: author})
	for _, at := range []memory.Revision{7, -1} {
		_, err := e.b.Get(ctx, e.key, "a.md", at)
		e.wants(err, memory.ErrInvalidArgument)
	}
}

func tombstonesStay(_ *testing.T, e *env) {
	e.commit(put("a.md", "one"))
	e.commit(del("a.md"))
	e.reopen()
	m := e.list(store.ListOptions{Deleted: true})
	if len(m) != 1 || !m[0].Deleted || m[0].LastETag != etag("one") || m[0].ETag != "" || m[0].Revision != 2 {
		e.t.Fatalf("got %+v, want a tombstone", m)
	}
	e.equal("a delete of a tombstone changes nothing", func() bool {
		res, err := e.b.Commit(ctx, e.request(del("a.md")))
		e.must(err)
		return res.Created
	}(), false)
	e.equal("counts", []int64{e.info(e.key).Files, e.info(e.key).Bytes}, []int64{0, 0})
}

func valuesAreCopies(_ *testing.T, e *env) {
	content := []byte("original")
	changes := []memory.Change{{Path: "a.md", Kind: memory.Put, Content: content}}
	e.commit(changes...)
	copy(content, "scribble")
	changes[0].Path = "b.md"
	for range 2 {
		e.equal("text", e.text("a.md", 0), "original")
		copy(e.get("a.md", 0).Content, "scribble")
		copy(e.list(store.ListOptions{Content: true})[0].Content, "scribble")
		cs := e.changes(0)
		e.equal("changes", string(cs[0].Changes[0].Content), "original")
		copy(cs[0].Changes[0].Content, "scribble")
		cs[0].Changes[0].Path = "x.md"
		_, err := e.b.Commit(ctx, e.request(when(put("a.md", "x"), memory.IfAbsent())))
		copy(e.wants(err, memory.ErrETagMismatch).Current[0].Content, "scribble")
		h, err := e.b.History(ctx, e.key, 0, 0, 0)
		e.must(err)
		copy(h[0].Changes[0].Content, "scribble")
	}
}

// Contents that were handed over are kept as others are, and given out as copies.
func handedOverContents(_ *testing.T, e *env) {
	req := e.request(put("a.md", "original"), memory.Change{Path: "empty.md", Kind: memory.Put})
	req.HandedOver = true
	_, err := e.b.Commit(ctx, req)
	e.must(err)
	for range 2 {
		for range 2 {
			copy(e.get("a.md", 0).Content, "scribble")
			for _, ch := range e.changes(0)[0].Changes {
				e.equal("there is a content", ch.Content != nil, true)
				copy(ch.Content, "scribble")
			}
		}
		e.equal("text", e.text("a.md", 0), "original")
		e.equal("empty text", e.text("empty.md", 0), "")
		e.reopen()
	}
}

func changesAscend(_ *testing.T, e *env) {
	for i := range 20 {
		e.commit(put("a.md", fmt.Sprint(i)), put(fmt.Sprintf("b%d.md", i), "x"))
	}
	for pass := range 2 {
		for after := range memory.Revision(20) {
			next := after + 1
			for _, c := range e.changes(after) {
				if c.Revision != next || len(c.Changes) != 2 || string(c.Changes[0].Content) != fmt.Sprint(c.Revision-1) {
					e.t.Fatalf("pass %d, after %d: got %+v, want whole revision %d", pass, after, c, next)
				}
				next++
			}
			if next != 21 {
				e.t.Fatalf("after %d: changes end before %d, want 21", after, next)
			}
		}
		e.reopen()
	}
	e.equal("after the head", len(e.changes(20)), 0)
}

func changesBounds(_ *testing.T, e *env) {
	for i := range 10 {
		e.commit(put("a.md", strings.Repeat(fmt.Sprint(i), 1000)))
	}
	revs := func(after memory.Revision, limit int, maxBytes int64) (out []memory.Revision) {
		cs, err := e.b.Changes(ctx, e.key, after, limit, maxBytes)
		e.must(err)
		for _, c := range cs {
			out = append(out, c.Revision)
		}
		return out
	}
	for range 2 {
		e.equal("limit", revs(2, 3, 0), []memory.Revision{3, 4, 5})
		e.equal("bytes", revs(2, 0, 2500), []memory.Revision{3, 4})
		e.equal("at least one", revs(2, 0, 10), []memory.Revision{3})
		e.equal("both", revs(8, 5, 1<<20), []memory.Revision{9, 10})
		e.reopen()
	}
}

func changesBeyondHead(_ *testing.T, e *env) {
	e.commit(put("a.md", "one"))
	for _, after := range []memory.Revision{2, 100, -1} {
		_, err := e.b.Changes(ctx, e.key, after, 0, 0)
		e.wants(err, memory.ErrInvalidArgument)
	}
}

// fired reports whether a notice comes out of c. Where the commit went to the same handle
// it is there already; other replicas look for themselves, on a slow machine late.
func fired(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-time.After(time.Minute):
		return false
	}
}

func notifyFires(_ *testing.T, e *env) {
	other := memory.ProjectKey{Team: "acme", Project: "web"}
	e.must(e.b.CreateProject(ctx, other, e.now))
	c, stop := e.b.Notify([]memory.ProjectKey{e.key, other})
	defer stop()
	for _, k := range []memory.ProjectKey{e.key, other, e.key} {
		req := e.request(put("a.md", fmt.Sprint(e.now)))
		req.Project = k
		_, err := e.b.Commit(ctx, req)
		e.must(err)
		if !fired(c) {
			e.t.Fatalf("no notice of a commit to %s", k)
		}
	}
	_, err := e.b.Redact(ctx, store.RedactRequest{Project: e.key, Path: "a.md", Marker: []byte("gone"), Now: e.tick()})
	e.must(err)
	if !fired(c) {
		e.t.Fatalf("no notice of a redaction")
	}
}

func notifyMerges(_ *testing.T, e *env) {
	c, stop := e.b.Notify([]memory.ProjectKey{e.key})
	defer stop()
	for i := range 100 { // nobody reads; writers go on
		e.commit(put("a.md", fmt.Sprint(i)))
	}
	if !fired(c) {
		e.t.Fatalf("no notice of a hundred commits")
	}
	e.equal("capacity", cap(c), 1)
}

func notifyUnknown(_ *testing.T, e *env) {
	key := memory.ProjectKey{Team: "new", Project: "later"}
	c, stop := e.b.Notify([]memory.ProjectKey{key})
	defer stop()
	e.must(e.b.CreateProject(ctx, key, e.now))
	if !fired(c) {
		e.t.Fatalf("no notice of the project's creation")
	}
}

func notifyStops(_ *testing.T, e *env) {
	c, stop := e.b.Notify([]memory.ProjectKey{e.key})
	stop()
	stop() // twice is fine
	e.commit(put("a.md", "one"))
	select {
	case <-c:
		e.t.Fatalf("a notice after stop")
	default:
	}
}
