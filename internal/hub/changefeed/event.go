package changefeed

import (
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// MaxQuiet is the longest time that a watched project stays without an event
// (SPEC 4.2, fixed).
const MaxQuiet = 15 * time.Second

// Kind says what an Event tells.
type Kind uint8

// The kinds of event.
const (
	// KindCommit carries a whole commit.
	KindCommit Kind = iota + 1
	// KindBookmark says that the reader has everything up to Cursor.
	KindBookmark
	// KindStatus says that the project is not followed from here; Err says why.
	KindStatus
	// KindPolicy says that the guard policy of the project's team is now Policy.
	KindPolicy
)

// Event is one thing that a watcher is told.
type Event struct {
	Project memory.ProjectKey
	Kind    Kind
	Commit  *Shared       // KindCommit
	Cursor  memory.Cursor // the reader's place after the event; not for KindStatus
	Err     error         // KindStatus, a *memory.Error
	Policy  int64         // KindPolicy
}

// Variant names one of the encoded forms of a commit.
type Variant uint8

// The encoded forms that a commit may have.
const (
	Full Variant = iota // contents inline
	Meta                // without contents
	variants
)

// Shared is a commit that all its watchers share. Neither the commit nor its
// encoded forms may be changed by anyone.
type Shared struct {
	// Commit is the commit, contents included.
	Commit *memory.Commit
	forms  [variants]form
}

type form struct {
	once sync.Once
	data any
	err  error
}

// Share wraps c, which its maker must not change afterwards.
func Share(c *memory.Commit) *Shared { return &Shared{Commit: c} }

// Encoded returns the commit's form v. encode makes it, once, whoever asks first;
// the feed does not look into it.
func (s *Shared) Encoded(v Variant, encode func(*memory.Commit) (any, error)) (any, error) {
	f := &s.forms[v]
	f.once.Do(func() { f.data, f.err = encode(s.Commit) })
	return f.data, f.err
}

// size is about what the commit costs in memory: its contents, as much again for
// the encoded form, and its records.
func (s *Shared) size() int64 {
	n := int64(1024)
	for i := range s.Commit.Changes {
		n += 512 + 2*int64(len(s.Commit.Changes[i].Content))
	}
	return n
}
