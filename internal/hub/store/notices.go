package store

import (
	"sync"

	"github.com/memsvc/memsvc/internal/memory"
)

// Notices is the in-process half of Store.Notify: who wants to know of which
// project. The zero value is ready; it is safe for concurrent use.
type Notices struct {
	mu   sync.RWMutex // guards subs and what it reaches
	subs map[memory.ProjectKey]map[chan struct{}]struct{}
}

// Notify is Store.Notify. The channel is never closed.
func (n *Notices) Notify(keys []memory.ProjectKey) (c <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	keys = append([]memory.ProjectKey(nil), keys...)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.subs == nil {
		n.subs = make(map[memory.ProjectKey]map[chan struct{}]struct{})
	}
	for _, k := range keys {
		if n.subs[k] == nil {
			n.subs[k] = make(map[chan struct{}]struct{})
		}
		n.subs[k][ch] = struct{}{}
	}
	var once sync.Once
	return ch, func() { once.Do(func() { n.drop(keys, ch) }) }
}

func (n *Notices) drop(keys []memory.ProjectKey, ch chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range keys {
		delete(n.subs[k], ch)
		if len(n.subs[k]) == 0 {
			delete(n.subs, k)
		}
	}
}

// Wake tells everyone who wants to know of key to look. It never blocks: a
// channel that is full already says so. Call it after the change is visible.
func (n *Notices) Wake(key memory.ProjectKey) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for ch := range n.subs[key] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// WakeAll tells everyone to look, whatever the project.
func (n *Notices) WakeAll() {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, chans := range n.subs {
		for ch := range chans {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
	}
}
