package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// model says what a project's answers must be, as plainly as can be: it keeps the
// text of every path after every revision, and what commits said.
type model struct {
	states  []map[memory.Path]string // by revision; states[0] is empty
	commits []memory.Commit          // by revision-1, without contents
	oldest  memory.Revision
	first   map[string]store.CommitResult // by request id
	payload map[string][]memory.Change
}

func (m *model) head() memory.Revision { return memory.Revision(len(m.commits)) }

func (m *model) present() map[memory.Path]string { return m.states[len(m.states)-1] }

// runModel compares a backend with the model over random sequences of calls.
func runModel(t *testing.T, h Harness) {
	rapid.Check(t, func(rt *rapid.T) {
		e := &env{t: rt, h: h, b: h.New(rt), key: memory.ProjectKey{Team: "acme", Project: "model"}, now: day0}
		defer func() { _ = e.b.Close() }()
		e.must(e.b.CreateProject(ctx, e.key, day0))
		m := &model{states: []map[memory.Path]string{{}}, oldest: 1,
			first: make(map[string]store.CommitResult), payload: make(map[string][]memory.Change)}
		rt.Repeat(map[string]func(*rapid.T){
			"":        func(rt *rapid.T) { m.compare(rt, e) },
			"commit":  func(rt *rapid.T) { m.commit(rt, e) },
			"commit2": func(rt *rapid.T) { m.commit(rt, e) }, // commits are what happens most
			"retry":   func(rt *rapid.T) { m.retry(rt, e) },
			"compact": func(rt *rapid.T) { m.compact(rt, e) },
			"redact":  func(rt *rapid.T) { m.redact(rt, e) },
			"reopen":  func(rt *rapid.T) { e.reopen() },
		})
	})
}

// names are few, so that changes meet; they collide by case and as directories.
var names = []string{"a.md", "A.md", "b.md", "d.md/x.md", "d.md", "d.md/y.md", "e/f.md", "E/g.md"}

var collide = func(a, b memory.Path) bool { return len(memory.Collisions([]memory.Path{a, b})) > 0 }

func drawChanges(rt *rapid.T, m *model) []memory.Change {
	picked := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID).Draw(rt, "paths")
	var out []memory.Change
	for _, name := range picked {
		c := put(name, rapid.SampledFrom([]string{"", "x", "y", "longer text", "z"}).Draw(rt, "content"))
		if rapid.IntRange(0, 2).Draw(rt, "kind") == 0 {
			c = del(name)
		}
		switch rapid.IntRange(0, 5).Draw(rt, "precondition") {
		case 0:
			c.Precondition = memory.IfAbsent()
		case 1, 2:
			if text, ok := m.present()[c.Path]; ok {
				c.Precondition = memory.IfMatch(etag(text))
			}
		case 3:
			c.Precondition = memory.IfMatch(etag("x"))
		}
		out = append(out, c)
	}
	for i := range out {
		for j := range out {
			if out[i].Kind == memory.Put && out[j].Kind == memory.Delete && rapid.Bool().Draw(rt, "rename") {
				out[i].RenamedFrom = out[j].Path
			}
		}
	}
	return out
}

// expect says what must become of changes: the state after, the changes that
// count, or the reason of the error.
func (m *model) expect(changes []memory.Change) (after map[memory.Path]string, applied []memory.AppliedChange, reason memory.Reason) {
	now := m.present()
	after = make(map[memory.Path]string)
	for p, text := range now {
		after[p] = text
	}
	sources := make(map[memory.Path]int)
	for _, c := range changes {
		sources[c.RenamedFrom]++
		if c.RenamedFrom != "" && sources[c.RenamedFrom] > 1 {
			return nil, nil, memory.ReasonInvalidArgument
		}
	}
	var added []memory.Path
	for _, c := range changes {
		was, exists := now[c.Path]
		have := memory.ETag("")
		if exists {
			have = etag(was)
		}
		switch c.Precondition.Kind {
		case memory.MustNotExist:
			if exists {
				reason = memory.ReasonETagMismatch
			}
		case memory.MustMatch:
			if !exists || c.Precondition.ETag != have {
				reason = memory.ReasonETagMismatch
			}
		}
		a := memory.AppliedChange{Path: c.Path, Kind: c.Kind, PreviousETag: have}
		if c.Kind == memory.Delete {
			delete(after, c.Path)
			if exists {
				applied = append(applied, a)
			}
			continue
		}
		after[c.Path] = string(c.Content)
		if exists && was == string(c.Content) {
			continue
		}
		if !exists {
			added = append(added, c.Path)
		}
		a.ETag, a.Size, a.RenamedFrom = etag(string(c.Content)), int64(len(c.Content)), c.RenamedFrom
		if _, there := now[c.RenamedFrom]; !there {
			a.RenamedFrom = ""
		}
		applied = append(applied, a)
	}
	if reason != "" {
		return nil, nil, reason
	}
	for _, p := range added {
		for q := range after {
			if p != q && collide(p, q) {
				return nil, nil, memory.ReasonPathCollision
			}
		}
	}
	return after, applied, ""
}

func (m *model) commit(rt *rapid.T, e *env) {
	req := e.request(drawChanges(rt, m)...)
	if rapid.Bool().Draw(rt, "with id") {
		req.RequestID = fmt.Sprint("r", len(m.first), m.head())
	}
	req.ValidateOnly = rapid.IntRange(0, 4).Draw(rt, "validate only") == 0
	after, applied, reason := m.expect(req.Changes)
	res, err := e.b.Commit(ctx, req)
	if reason != "" {
		e.wants(err, &memory.Error{Reason: reason})
		return
	}
	e.must(err)
	if res.Created != (len(applied) > 0) {
		rt.Fatalf("created %v, want %v", res.Created, len(applied) > 0)
	}
	if res.Created {
		for i := range applied {
			if applied[i].Kind == memory.Put {
				applied[i].ModTime = req.Now
			}
		}
		want := memory.Commit{Project: e.key, Revision: m.head() + 1, ID: res.Commit.ID, Author: author, Time: req.Now, Message: "a message", Changes: applied}
		e.equal("result", res.Commit, want)
	}
	if req.ValidateOnly {
		return
	}
	if res.Created {
		m.states = append(m.states, after)
		m.commits = append(m.commits, res.Commit)
	}
	if req.RequestID != "" {
		m.first[req.RequestID], m.payload[req.RequestID] = res, req.Changes
	}
}

func (m *model) retry(rt *rapid.T, e *env) {
	if len(m.first) == 0 {
		rt.Skip("nothing to retry")
	}
	ids := make([]string, 0, len(m.first))
	for id := range m.first {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	id := rapid.SampledFrom(ids).Draw(rt, "id")
	res, err := e.b.Commit(ctx, e.withID(id, m.payload[id]...))
	e.must(err)
	e.equal("first result", res, m.first[id])
	_, err = e.b.Commit(ctx, e.withID(id, put("other.md", "other")))
	e.wants(err, memory.ErrRequestIDReused)
}

func (m *model) compact(rt *rapid.T, e *env) {
	cut := e.now.Add(-time.Duration(rapid.IntRange(0, 20).Draw(rt, "seconds")) * time.Second)
	res := e.compact(cut)
	oldest := m.oldest
	for oldest < m.head() && m.commits[oldest-1].Time.Before(cut) {
		oldest++
	}
	if res.Commits != int64(oldest-m.oldest) {
		rt.Fatalf("compacted %d commits, want %d", res.Commits, oldest-m.oldest)
	}
	m.oldest = oldest
}

// redact replaces, in everything that the model holds, the texts of one path.
func (m *model) redact(rt *rapid.T, e *env) {
	path := memory.Path(rapid.SampledFrom(names).Draw(rt, "path"))
	text := false // anything of the path that is no marker: a version, or what a tombstone tells of
	for rev := m.oldest - 1; rev <= m.head(); rev++ {
		t, alive := m.states[rev][path]
		text = text || alive && t != marker
	}
	for _, c := range m.commits {
		for _, ch := range c.Changes {
			text = text || ch.Path == path && (isText(ch.ETag) || isText(ch.PreviousETag))
		}
	}
	res, err := e.b.Redact(ctx, e.redaction(string(path)))
	if !text {
		e.wants(err, memory.ErrNotFound)
		return
	}
	e.must(err)
	for _, s := range m.states {
		if _, alive := s[path]; alive {
			s[path] = marker
		}
	}
	for i := range m.commits {
		redactModel(m.commits[i].Changes, path)
	}
	for _, first := range m.first {
		redactModel(first.Commit.Changes, path)
	}
	after := make(map[memory.Path]string)
	for p, text := range m.present() {
		after[p] = text
	}
	m.states = append(m.states, after)
	m.commits = append(m.commits, res.Commit)
}

// isText reports whether e is the etag of something that a redaction replaces.
func isText(e memory.ETag) bool { return e != "" && e != etag(marker) }

func redactModel(changes []memory.AppliedChange, path memory.Path) {
	for i := range changes {
		if c := &changes[i]; c.Path == path {
			if c.ETag != "" {
				c.ETag, c.Size = etag(marker), int64(len(marker))
			}
			if c.PreviousETag != "" {
				c.PreviousETag = etag(marker)
			}
		}
	}
}

// compare asks the backend for everything and compares it with the model.
func (m *model) compare(rt *rapid.T, e *env) {
	info := e.info(e.key)
	var bytes int64
	for _, text := range m.present() {
		bytes += int64(len(text))
	}
	got := []int64{int64(info.Head.Revision), int64(info.Oldest), info.Files, info.Bytes}
	e.equal("head, oldest, files, bytes", got, []int64{int64(m.head()), int64(m.oldest), int64(len(m.present())), bytes})
	living := make(map[memory.Path]string)
	for _, mem := range e.list(store.ListOptions{Content: true, Deleted: true}) {
		if !mem.Deleted {
			living[mem.Path] = string(mem.Content)
		} else if mem.LastETag == "" || mem.ETag != "" {
			rt.Fatalf("tombstone %+v", mem)
		}
	}
	if d := cmp.Diff(m.present(), living, cmpopts.EquateEmpty()); d != "" {
		rt.Fatalf("list (-want +got):\n%s", d)
	}
	for at := memory.Revision(1); at <= m.head(); at++ {
		for _, name := range names {
			mem, err := e.b.Get(ctx, e.key, memory.Path(name), at)
			want, alive := m.states[at][memory.Path(name)]
			switch {
			case at < m.oldest-1:
				e.wants(err, memory.ErrRevisionCompacted)
			case !alive:
				e.wants(err, memory.ErrNotFound)
			case err != nil || string(mem.Content) != want:
				rt.Fatalf("%s at %d: got %q, %v, want %q", name, at, mem.Content, err, want)
			}
		}
	}
	if m.oldest > 1 {
		_, err := e.b.Changes(ctx, e.key, m.oldest-2, 0, 0)
		if !errors.Is(err, memory.ErrRevisionCompacted) {
			rt.Fatalf("changes below the oldest: %v", err)
		}
	}
	var log []memory.Commit
	for _, c := range e.changes(m.oldest - 1) {
		log = append(log, without(c))
		for _, ch := range c.Changes {
			if text, alive := m.states[c.Revision][ch.Path]; alive && text != string(ch.Content) {
				rt.Fatalf("revision %d: %s is %q, want %q", c.Revision, ch.Path, ch.Content, text)
			}
		}
	}
	e.equal("changes", log, m.commits[m.oldest-1:])
}
