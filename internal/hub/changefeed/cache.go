package changefeed

import (
	"container/list"
	"sync"

	"github.com/memsvc/memsvc/internal/memory"
)

// place names a commit across projects.
type place struct {
	project  memory.ProjectKey
	revision memory.Revision
}

// cache keeps the commits used last, up to a bound in bytes, for all watchers.
type cache struct {
	max int64

	mu    sync.Mutex // guards what follows
	size  int64
	order *list.List // of *cached, used last in front
	index map[place]*list.Element
}

type cached struct {
	at     place
	shared *Shared
	size   int64
}

func newCache(maxBytes int64) *cache {
	return &cache{max: maxBytes, order: list.New(), index: map[place]*list.Element{}}
}

// get returns the commit at the place, or nil.
func (c *cache) get(at place) *Shared {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.index[at]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).shared
}

// put keeps s and returns the one that all share: s, or the one already there.
func (c *cache) put(at place, s *Shared) *Shared {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.index[at]; ok {
		c.order.MoveToFront(e)
		return e.Value.(*cached).shared
	}
	size := s.size()
	c.index[at] = c.order.PushFront(&cached{at: at, shared: s, size: size})
	c.size += size
	// The newest stays even if it alone is over the bound: it is about to be sent.
	for c.size > c.max && c.order.Len() > 1 {
		c.drop(c.order.Back())
	}
	return s
}

// forget drops every commit of the project.
func (c *cache) forget(project memory.ProjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, e := range c.index {
		if at.project == project {
			c.drop(e)
		}
	}
}

func (c *cache) drop(e *list.Element) {
	v := c.order.Remove(e).(*cached)
	delete(c.index, v.at)
	c.size -= v.size
}

// bytes returns what the cache holds.
func (c *cache) bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}
