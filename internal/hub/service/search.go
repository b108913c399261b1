package service

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/lexical"
	"github.com/memsvc/memsvc/internal/memory"
)

// Bounds of searching: texts indexed at a time for all projects, and characters of
// an excerpt.
const (
	maxIndexedBytes = 128 << 20
	snippetChars    = 240
)

// Found is one memory that a search found.
type Found struct {
	Memory  memory.Memory // without content
	Score   float64       // higher is better; comparable within one answer only
	Snippet string
}

// searchIndexes keeps the indexes used last. An index is built when it is first
// asked for and brought up to the head at each search.
type searchIndexes struct {
	mu    sync.Mutex // guards what follows
	order *list.List // of *projectIndex, used last in front
	byKey map[memory.ProjectKey]*list.Element
	bytes int64
}

type projectIndex struct {
	key memory.ProjectKey

	mu       sync.Mutex // guards what follows; held while building and searching
	at       memory.Cursor
	made     time.Time // of the project: another replica may have purged it, and another come
	index    lexical.Index
	sizes    map[memory.Path]int64
	bytes    int64
	reported int64 // guarded by searchIndexes.mu: what of bytes is in the sum
}

func newSearchIndexes() *searchIndexes {
	return &searchIndexes{order: list.New(), byKey: map[memory.ProjectKey]*list.Element{}}
}

func (x *searchIndexes) get(key memory.ProjectKey) *projectIndex {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e, ok := x.byKey[key]; ok {
		x.order.MoveToFront(e)
		return e.Value.(*projectIndex)
	}
	p := &projectIndex{key: key, sizes: map[memory.Path]int64{}}
	x.byKey[key] = x.order.PushFront(p)
	return p
}

// grown notes the size of an index and drops those used longest ago over the bound.
func (x *searchIndexes) grown(p *projectIndex, bytes int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e, ok := x.byKey[p.key]; !ok || e.Value != p {
		return
	}
	x.bytes += bytes - p.reported
	p.reported = bytes
	for x.bytes > maxIndexedBytes && x.order.Len() > 1 {
		x.dropLocked(x.order.Back())
	}
}

func (x *searchIndexes) forget(key memory.ProjectKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e, ok := x.byKey[key]; ok {
		x.dropLocked(e)
	}
}

func (x *searchIndexes) dropLocked(e *list.Element) {
	p := x.order.Remove(e).(*projectIndex)
	delete(x.byKey, p.key)
	x.bytes -= p.reported
}

// Search finds memories by their words, the best first, at most limit (0 = 20).
func (s *Service) Search(ctx context.Context, c Call, key memory.ProjectKey, query string, limit int) ([]Found, error) {
	if err := c.Principal.mayProject(key, Reader); err != nil {
		return nil, s.refused(ctx, c, key.Team, "memory.search", key.String(), err)
	}
	info, err := s.Backend.Project(ctx, key)
	if err != nil {
		return nil, hide(key, err)
	}
	hits, err := s.searchHits(ctx, info, query, Page{Size: limit}.size(20, 100))
	if err != nil {
		return nil, err
	}
	out := make([]Found, 0, len(hits))
	for _, h := range hits {
		m, err := s.Backend.Get(ctx, key, memory.Path(h.ID), 0)
		if err != nil {
			continue // deleted meanwhile
		}
		f := Found{Memory: m, Score: h.Score, Snippet: snippet(m.Content, query)}
		f.Memory.Content = nil
		out = append(out, f)
	}
	return out, ctx.Err()
}

// snippet returns what an answer shows of a memory: text around the query's words,
// without the frontmatter, of which name and description are told elsewhere.
func snippet(content []byte, query string) string {
	fm, body, _ := memory.ParseFrontmatter(content) // without a closing fence all is body
	if text := lexical.Snippet(string(body), query, snippetChars); text != "" {
		return text
	}
	return lexical.Snippet(fm.Description, query, snippetChars) // a memory that is all frontmatter
}

func (s *Service) searchHits(ctx context.Context, info store.ProjectInfo, query string, limit int) ([]lexical.Hit, error) {
	p := s.search.get(info.Key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.Epoch != info.Head.Epoch || p.at.Revision > info.Head.Revision || !p.made.Equal(info.CreateTime) {
		p.at, p.index, p.bytes = memory.Cursor{Epoch: info.Head.Epoch}, lexical.Index{}, 0
		p.made = info.CreateTime
		clear(p.sizes)
	}
	if p.at.Revision < info.Head.Revision {
		if err := s.advanceIndex(ctx, p, info.Head); err != nil {
			return nil, err
		}
		s.search.grown(p, p.bytes)
	}
	return p.index.Search(query, limit), nil
}

// advanceIndex takes in what changed after the index's revision. What changes while
// it reads comes again next time.
func (s *Service) advanceIndex(ctx context.Context, p *projectIndex, head memory.Cursor) error {
	opts := store.ListOptions{Limit: 50, Content: true, Deleted: true, ChangedAfter: p.at.Revision}
	for {
		page, err := s.Backend.List(ctx, p.key, opts)
		if err != nil {
			return hide(p.key, err)
		}
		for i := range page {
			p.take(&page[i])
		}
		if len(page) < opts.Limit {
			p.at = head
			return nil
		}
		opts.After = page[len(page)-1].Path
	}
}

func (p *projectIndex) take(m *memory.Memory) {
	p.bytes -= p.sizes[m.Path]
	delete(p.sizes, m.Path)
	if m.Deleted || memory.IsRedactionMarker(m.Content) {
		p.index.Remove(string(m.Path))
		return
	}
	// Frontmatter that cannot be parsed is text like any other.
	fm, body, _ := memory.ParseFrontmatter(m.Content)
	p.index.Add(string(m.Path),
		lexical.Field{Text: string(m.Path), Weight: 2},
		lexical.Field{Text: fm.Name, Weight: 3},
		lexical.Field{Text: fm.Description, Weight: 2},
		lexical.Field{Text: string(body), Weight: 1},
	)
	p.sizes[m.Path] = m.Size
	p.bytes += m.Size
}
