package agent

import (
	"slices"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// maxNews bounds how many changes of others a link remembers, for conversations that
// are under way (ruling 13.21).
const maxNews = 50

// newsEntry is a memory that somebody else changed, as it was applied here.
type newsEntry struct {
	Path        string    `json:"path"`
	Author      string    `json:"author"`
	Time        time.Time `json:"time"` // when it was applied, by this machine's clock
	Deleted     bool      `json:"deleted"`
	Description string    `json:"description"`
	// Grants says that the text grants permissions (ruling 13.20).
	Grants bool `json:"grants"`
}

// news are the last changes of others on one link.
type news struct {
	mu      sync.Mutex // guards entries
	entries []newsEntry
}

// add notes the changes of a commit that was applied at now.
func (n *news) add(a arrival, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range a.news {
		e.Time = now
		// A memory is news once, as it is now.
		n.entries = slices.DeleteFunc(n.entries, func(old newsEntry) bool { return old.Path == e.Path })
		n.entries = append(n.entries, e)
	}
	if over := len(n.entries) - maxNews; over > 0 {
		n.entries = append(n.entries[:0:0], n.entries[over:]...)
	}
}

// since returns what was applied after t, each memory once, the newest last.
func (n *news) since(t time.Time) []newsEntry {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := []newsEntry{}
	for _, e := range n.entries {
		if e.Time.After(t) {
			out = append(out, e)
		}
	}
	return out
}

// newsOf returns what people may hear of a commit; indexes follow their files and are
// left out.
func newsOf(c memory.Commit) []newsEntry {
	author := c.Author.Principal
	if c.Author.Machine != "" {
		author += " on " + c.Author.Machine
	}
	var out []newsEntry
	for _, ch := range c.Changes {
		if memory.IsIndex(ch.Path) {
			continue
		}
		e := newsEntry{Path: string(ch.Path), Author: author, Deleted: ch.Kind == memory.Delete}
		if ch.Kind == memory.Put {
			fm, _, _ := memory.ParseFrontmatter(ch.Content) // without one there is no description
			e.Description, e.Grants = fm.Description, memory.GrantsApproval(ch.Content) > 0
		}
		out = append(out, e)
	}
	return out
}

// newsParams ask what others changed on a link.
type newsParams struct {
	Link  string    `json:"link"`
	Since time.Time `json:"since"`
}
