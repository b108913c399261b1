package secretscan

import (
	"container/list"
	"sync"
)

// lru is a bounded map that forgets what was used longest ago. A bound of 0 keeps nothing. It is safe for concurrent use.
type lru[K comparable, V any] struct {
	bound int

	mu    sync.Mutex // guards order and items
	order *list.List // of lruItem[K, V], newest first
	items map[K]*list.Element
}

type lruItem[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](bound int) *lru[K, V] {
	return &lru[K, V]{bound: bound, order: list.New(), items: map[K]*list.Element{}}
}

func (c *lru[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.items[key]; ok {
		c.order.MoveToFront(e)
		return e.Value.(lruItem[K, V]).value, true
	}
	var none V
	return none, false
}

func (c *lru[K, V]) put(key K, value V) {
	if c.bound == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.items[key]; ok {
		e.Value = lruItem[K, V]{key, value}
		c.order.MoveToFront(e)
		return
	}
	c.items[key] = c.order.PushFront(lruItem[K, V]{key, value})
	for c.order.Len() > c.bound {
		last := c.order.Back()
		delete(c.items, last.Value.(lruItem[K, V]).key)
		c.order.Remove(last)
	}
}

func (c *lru[K, V]) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}
