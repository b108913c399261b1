package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// env is one store under test with a project in it, and short words for what tests
// do all the time.
type env struct {
	t   T
	h   Harness
	b   store.Backend
	key memory.ProjectKey
	now time.Time
}

var ctx = context.Background()

// day0 is when every test begins. It has nanoseconds, which must survive.
var day0 = time.Date(2026, 3, 1, 9, 30, 0, 123456789, time.UTC)

func newEnv(t *testing.T, h Harness) *env {
	e := &env{t: t, h: h, b: h.New(t), key: memory.ProjectKey{Team: "acme", Project: "payments"}, now: day0}
	t.Cleanup(func() {
		if err := e.b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	e.must(e.b.CreateProject(ctx, e.key, day0))
	return e
}

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatalf("unexpected error: %v", err)
	}
}

// must1 is must for a call that returns an id.
func (e *env) must1(id int64, err error) int64 {
	e.t.Helper()
	e.must(err)
	return id
}

// wants checks that err is of want's kind, and returns it as a domain error.
func (e *env) wants(err error, want *memory.Error) *memory.Error {
	e.t.Helper()
	var got *memory.Error
	if !errors.As(err, &got) || got.Reason != want.Reason {
		e.t.Fatalf("got error %v, want %s", err, want.Reason)
	}
	return got
}

func (e *env) equal(what string, got, want any) {
	e.t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		e.t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

// author is who commits, unless a test says otherwise.
var author = memory.Author{Principal: "token:ann", Machine: "mill", Client: "claude-code", Session: "s1"}

// tick moves the clock on by a second and returns it.
func (e *env) tick() time.Time {
	e.now = e.now.Add(time.Second)
	return e.now
}

func (e *env) request(changes ...memory.Change) store.CommitRequest {
	return store.CommitRequest{Project: e.key, Author: author, Now: e.tick(), Message: "a message", Changes: changes}
}

// commit commits changes and expects a revision.
func (e *env) commit(changes ...memory.Change) store.CommitResult {
	e.t.Helper()
	res, err := e.b.Commit(ctx, e.request(changes...))
	e.must(err)
	if !res.Created {
		e.t.Fatalf("commit made no revision, want one")
	}
	return res
}

// refused commits changes and expects an error of want's kind and no effect.
func (e *env) refused(want *memory.Error, changes ...memory.Change) *memory.Error {
	e.t.Helper()
	before := e.snapshot(e.key)
	_, err := e.b.Commit(ctx, e.request(changes...))
	got := e.wants(err, want)
	e.equal("state after a refused commit", e.snapshot(e.key), before)
	return got
}

func put(path, content string) memory.Change {
	return memory.Change{Path: memory.Path(path), Kind: memory.Put, Content: []byte(content)}
}

func del(path string) memory.Change {
	return memory.Change{Path: memory.Path(path), Kind: memory.Delete}
}

func when(c memory.Change, p memory.Precondition) memory.Change {
	c.Precondition = p
	return c
}

func renamed(c memory.Change, from string) memory.Change {
	c.RenamedFrom = memory.Path(from)
	return c
}

func etag(s string) memory.ETag { return memory.ETagOf([]byte(s)) }

func (e *env) info(key memory.ProjectKey) store.ProjectInfo {
	e.t.Helper()
	info, err := e.b.Project(ctx, key)
	e.must(err)
	return info
}

func (e *env) get(path string, at memory.Revision) memory.Memory {
	e.t.Helper()
	m, err := e.b.Get(ctx, e.key, memory.Path(path), at)
	e.must(err)
	return m
}

func (e *env) text(path string, at memory.Revision) string { return string(e.get(path, at).Content) }

func (e *env) noMemory(path string, at memory.Revision) {
	e.t.Helper()
	_, err := e.b.Get(ctx, e.key, memory.Path(path), at)
	e.wants(err, memory.ErrNotFound)
}

func (e *env) list(opts store.ListOptions) []memory.Memory {
	e.t.Helper()
	ms, err := e.b.List(ctx, e.key, opts)
	e.must(err)
	return ms
}

func (e *env) changes(after memory.Revision) []memory.Commit {
	e.t.Helper()
	cs, err := e.b.Changes(ctx, e.key, after, 0, 0)
	e.must(err)
	return cs
}

// state is all that can be seen of a project.
type state struct {
	Info     store.ProjectInfo
	Memories []memory.Memory
	History  []memory.Commit
	Spans    []store.Span
}

func (e *env) snapshot(key memory.ProjectKey) state {
	e.t.Helper()
	var s state
	var err error
	s.Info = e.info(key)
	s.Memories, err = e.b.List(ctx, key, store.ListOptions{Content: true, Deleted: true, EarlierETags: true})
	e.must(err)
	s.History, err = e.b.History(ctx, key, 0, 0, 0)
	e.must(err)
	s.Spans, err = e.b.Spans(ctx, key)
	e.must(err)
	return s
}

// reopen restarts the store, where the backend can.
func (e *env) reopen() {
	if e.h.Reopen != nil {
		e.b = e.h.Reopen(e.t, e.b)
	}
}

// without returns c as a result carries it: no contents.
func without(c memory.Commit) memory.Commit { return store.WithoutContents(&c) }
