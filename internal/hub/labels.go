package hub

import "sync"

// labelBound keeps a metric's label from growing without end: after most values,
// new ones become "other".
type labelBound struct {
	most int

	mu   sync.Mutex // guards seen
	seen map[string]bool
}

func (b *labelBound) bound(value string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen[value] {
		return value
	}
	if len(b.seen) >= b.most {
		return "other"
	}
	if b.seen == nil {
		b.seen = map[string]bool{}
	}
	b.seen[value] = true
	return value
}
