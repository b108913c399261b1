package service

import (
	"context"
	"errors"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// maxAnswerBytes bounds the contents of one answer (SPEC 13.10: messages stay
// below 12 MiB).
const maxAnswerBytes = 8 << 20

// ListQuery narrows List.
type ListQuery struct {
	Page         Page
	Content      bool
	Deleted      bool
	EarlierETags bool
	ChangedAfter memory.Revision
}

// Listing is one page of a list.
type Listing struct {
	Memories []memory.Memory
	Next     string
	// Head is where the project stood when the first page was read; what changed
	// since comes by watching from there.
	Head memory.Cursor
	// NotModified says that ChangedAfter is the head.
	NotModified bool
}

type listPosition struct {
	After memory.Path
	Head  memory.Cursor
}

// List returns memories in path order.
func (s *Service) List(ctx context.Context, c Call, key memory.ProjectKey, q ListQuery) (Listing, error) {
	if err := c.Principal.mayProject(key, Reader); err != nil {
		return Listing{}, s.refused(ctx, c, key.Team, "memory.list", key.String(), err)
	}
	of := listOf("memories", key.String(), q.Content, q.Deleted, q.EarlierETags, q.ChangedAfter)
	var at listPosition
	if err := q.Page.decode(of, &at); err != nil {
		return Listing{}, err
	}
	if at.Head.Epoch == "" {
		info, err := s.Backend.Project(ctx, key)
		if err != nil {
			return Listing{}, hide(key, err)
		}
		at.Head = info.Head
		if q.ChangedAfter > 0 && q.ChangedAfter == info.Head.Revision {
			return Listing{Head: info.Head, NotModified: true}, nil
		}
	}
	size := q.Page.size(500, 1000)
	if q.Content {
		size = q.Page.size(100, 1000)
	}
	opts := store.ListOptions{
		After: at.After, Limit: size + 1, Deleted: q.Deleted, EarlierETags: q.EarlierETags, ChangedAfter: q.ChangedAfter,
	}
	found, err := s.Backend.List(ctx, key, opts)
	if err != nil {
		return Listing{}, hide(key, err)
	}
	more := len(found) > size
	found = found[:min(size, len(found))]
	if q.Content && len(found) > 0 {
		n := fitting(found)
		more = more || n < len(found)
		opts.Content, opts.Limit = true, n
		if found, err = s.Backend.List(ctx, key, opts); err != nil {
			return Listing{}, hide(key, err)
		}
		// A commit in between may have made them larger.
		if m := fitting(found); m < len(found) {
			found, more = found[:m], true
		}
	}
	out := Listing{Memories: found, Head: at.Head}
	if more && len(found) > 0 {
		at.After = found[len(found)-1].Path
		out.Next = encodePage(of, at)
	}
	return out, nil
}

// fitting returns how many of the memories fit into one answer; at least one.
func fitting(ms []memory.Memory) int {
	var bytes int64
	for i := range ms {
		if bytes += ms[i].Size; bytes > maxAnswerBytes && i > 0 {
			return i
		}
	}
	return len(ms)
}

// Get returns one memory, content included, as of revision at (0 = now).
func (s *Service) Get(ctx context.Context, c Call, key memory.ProjectKey, path memory.Path, at memory.Revision) (memory.Memory, error) {
	if err := c.Principal.mayProject(key, Reader); err != nil {
		return memory.Memory{}, s.refused(ctx, c, key.Team, "memory.get", key.String(), err)
	}
	m, err := s.Backend.Get(ctx, key, path, at)
	if errors.Is(err, memory.ErrNotFound) {
		if _, perr := s.Backend.Project(ctx, key); perr != nil {
			return memory.Memory{}, hide(key, perr)
		}
	}
	return m, err
}

// Batch is the answer of BatchGet.
type Batch struct {
	Memories  []memory.Memory // in the order asked, those that exist
	Remaining []memory.Path   // not looked at, since the answer was full
	Head      memory.Cursor
}

// BatchGet returns memories by path, up to 8 MiB of contents.
func (s *Service) BatchGet(ctx context.Context, c Call, key memory.ProjectKey, paths []memory.Path, at memory.Revision) (Batch, error) {
	if err := c.Principal.mayProject(key, Reader); err != nil {
		return Batch{}, s.refused(ctx, c, key.Team, "memory.batchGet", key.String(), err)
	}
	// The head is read first: what changes while the memories are read comes again
	// by watching from it, and nothing is missed.
	info, err := s.Backend.Project(ctx, key)
	if err != nil {
		return Batch{}, hide(key, err)
	}
	out := Batch{Head: info.Head}
	if at == 0 || at == info.Head.Revision {
		return s.batchNow(ctx, key, paths, out)
	}
	var bytes int64
	for i, path := range paths {
		m, err := s.Backend.Get(ctx, key, path, at)
		if errors.Is(err, memory.ErrNotFound) {
			continue
		}
		if err != nil {
			return Batch{}, err
		}
		if bytes += m.Size; bytes > maxAnswerBytes && len(out.Memories) > 0 {
			out.Remaining = paths[i:]
			break
		}
		out.Memories = append(out.Memories, m)
	}
	return out, nil
}

// batchNow fills out with what is at paths now. They are read together: a first
// upload is a few large commits, and each is opened once and not once a path.
func (s *Service) batchNow(ctx context.Context, key memory.ProjectKey, paths []memory.Path, out Batch) (Batch, error) {
	found, err := s.Backend.List(ctx, key, store.ListOptions{Paths: paths})
	if err != nil {
		return Batch{}, hide(key, err)
	}
	living := make(map[memory.Path]memory.Memory, len(found))
	for _, m := range found {
		living[m.Path] = m
	}
	var bytes int64
	want := paths
	for i, path := range paths {
		if bytes += living[path].Size; bytes > maxAnswerBytes && i > 0 {
			want, out.Remaining = paths[:i], paths[i:]
			break
		}
	}
	if found, err = s.Backend.List(ctx, key, store.ListOptions{Paths: want, Content: true}); err != nil {
		return Batch{}, hide(key, err)
	}
	clear(living)
	for _, m := range found {
		living[m.Path] = m
	}
	for _, path := range want {
		if m, ok := living[path]; ok {
			out.Memories = append(out.Memories, m)
		}
	}
	return out, nil
}

// Bounds of one call of Commits: how much history it reads at most. A page may come
// short, or even empty, with a token to go on from.
const (
	historyWindow = 100
	historyScan   = 2000
)

type historyPosition struct {
	Below memory.Revision // exclusive
	Path  memory.Path     // as it was called then
}

// Commits lists commits, newest first, without contents; with path, those that
// touch it, renames followed.
func (s *Service) Commits(ctx context.Context, c Call, key memory.ProjectKey, path memory.Path, page Page) ([]memory.Commit, string, error) {
	if err := c.Principal.mayProject(key, Reader); err != nil {
		return nil, "", s.refused(ctx, c, key.Team, "commit.list", key.String(), err)
	}
	info, err := s.Backend.Project(ctx, key)
	if err != nil {
		return nil, "", hide(key, err)
	}
	at := historyPosition{Below: info.Head.Revision + 1, Path: path}
	of := listOf("commits", key.String(), path)
	if err := page.decode(of, &at); err != nil {
		return nil, "", err
	}
	if at.Below > info.Head.Revision+1 {
		return nil, "", invalid("page token: beyond the head; start at the first page")
	}
	size := page.size(50, 500)
	var out []memory.Commit
	for scanned := 0; len(out) < size && scanned < historyScan && at.Below > info.Oldest; {
		window := historyWindow
		if path == "" {
			window = size - len(out)
		}
		low := max(at.Below-memory.Revision(window), info.Oldest)
		commits, err := s.commitsBetween(ctx, key, low, at.Below)
		if err != nil {
			return nil, "", err
		}
		for i := len(commits) - 1; i >= 0 && len(out) < size; i-- {
			scanned++
			at.Below = commits[i].Revision
			if path == "" || touches(&commits[i], &at.Path) {
				out = append(out, commits[i])
			}
		}
	}
	if at.Below > info.Oldest {
		return out, encodePage(of, at), nil
	}
	return out, "", nil
}

// commitsBetween returns the commits low ≤ revision < below without contents.
func (s *Service) commitsBetween(ctx context.Context, key memory.ProjectKey, low, below memory.Revision) ([]memory.Commit, error) {
	var out []memory.Commit
	for next := low; next < below; {
		page, err := s.Backend.Changes(ctx, key, next-1, int(below-next), maxAnswerBytes)
		if err != nil {
			return nil, hide(key, err)
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			out = append(out, store.WithoutContents(&page[i]))
		}
		next = page[len(page)-1].Revision + 1
	}
	return out, nil
}

// touches reports whether the commit changed path, and sets path to what the memory
// was called before it.
func touches(c *memory.Commit, path *memory.Path) bool {
	for i := range c.Changes {
		ch := &c.Changes[i]
		if ch.Path == *path {
			if ch.RenamedFrom != "" {
				*path = ch.RenamedFrom
			}
			return true
		}
	}
	return false
}
