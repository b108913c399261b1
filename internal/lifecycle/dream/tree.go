package dream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

// item is a memory while it is being tidied.
type item struct {
	memories.Memory
	first  []byte    // the text on disk; nil = there is none yet
	time   time.Time // the file's, on disk
	asOld  time.Time // what the file is to be: its own time, or a younger one's that it took in
	clocks clocks    // of all that it says
	frozen bool      // it is left as it is
	gone   bool      // deleted
	// whyGone is the reason for that, the only one that a deleted memory has.
	whyGone string
	// contested says that another one says otherwise in nearly its words; told once.
	contested bool
	fresh     bool    // what it says changed: it is as old as this dream
	into      *item   // that says what this one said
	needs     []*item // further memories that must be written before this one may go

	reasons    []string
	superseded []string

	version              int             // grows with every other text
	unequal              bool            // said not to be compared to its end; told once
	nameTerms, textTerms map[string]bool // see terms
	nameWords            []string        // see words
	begin                *string         // see begins
	said                 []statement     // see statements
}

// parse gives an item another text.
func (it *item) parse(content []byte) {
	it.version++
	it.Content, it.nameTerms, it.nameWords, it.begin, it.said = content, nil, nil, nil, nil
	it.Front, _, it.Unreadable = memory.ParseFrontmatter(content)
	if it.Unreadable != nil {
		it.Front = memory.Frontmatter{}
	}
}

func (it *item) because(reason string) {
	if !slices.Contains(it.reasons, reason) {
		it.reasons = append(it.reasons, reason)
	}
}

// head returns the frontmatter with its fences, as it stands.
func (it *item) head() []byte { return it.Content[:len(it.Content)-len(it.Body())] }

// withBody returns the text with another body.
func (it *item) withBody(body string) []byte {
	return append(bytes.Clone(it.head()), body...)
}

// keeper is the memory that says in the end what this one said.
func (it *item) keeper() *item {
	for it.into != nil {
		it = it.into
	}
	return it
}

// indexFile is an index while it is being tidied.
type indexFile struct {
	first []byte // nil = there is none
	time  time.Time
	text  []byte
	notes []string
}

// tree is the whole of a project's memories, in memory.
type tree struct {
	now     time.Time
	items   []*item // personal ones first, each in path order
	indexes map[memory.Scope]*indexFile
	left    []Left
	deletes int // that are still allowed
	onDisk  func(memory.Scope, string) bool
	at      map[memories.Ref]*item
	touched map[*item]bool // changed or deleted: they count against the room of a commit
	effort  *effort        // what comparing may cost, of the dream as a whole
	vain    map[vain]bool
	sealed  map[memory.Scope]bool // the index cannot be read
	looked  *looked               // what the last search for near duplicates found
}

// put adds an item.
func (t *tree) put(it *item) {
	t.items = append(t.items, it)
	t.at[it.Ref] = it
}

// clone returns a tree that can be changed without changing this one.
func (t *tree) clone() *tree {
	c := &tree{now: t.now, deletes: t.deletes, onDisk: t.onDisk, left: slices.Clone(t.left), effort: t.effort, vain: map[vain]bool{}, sealed: t.sealed,
		indexes: map[memory.Scope]*indexFile{}, at: map[memories.Ref]*item{}, touched: map[*item]bool{}}
	for _, it := range t.items {
		own := *it
		c.put(&own)
		if it.gone || !bytes.Equal(it.first, it.Content) {
			c.touched[&own] = true
		}
	}
	for _, it := range c.items {
		if it.into != nil {
			it.into = c.at[it.into.Ref]
		}
		it.needs = slices.Clone(it.needs)
		for i, n := range it.needs {
			it.needs[i] = c.at[n.Ref]
		}
	}
	for scope, f := range t.indexes {
		own := *f
		c.indexes[scope] = &own
	}
	return c
}

// mayTouch reports whether a commit can take these changes too (ruling 13.10): a dream
// that is more than one commit is done in several. The index is counted in.
func (t *tree) mayTouch(items ...*item) bool {
	count, size := map[memory.Scope]int{}, map[memory.Scope]int{}
	for _, it := range items {
		if !t.touched[it] {
			count[it.Scope]++
			size[it.Scope] += len(it.Content)
		}
	}
	for it := range t.touched {
		count[it.Scope]++
		size[it.Scope] += len(it.Content)
	}
	for scope, n := range count {
		// What a change adds to a text is not known yet; one memory more is room enough.
		if n > memory.MaxCommitChanges-1 || size[scope] > memory.MaxCommitBytes-2*memory.MaxMemoryBytes {
			t.say(Left{Why: "more is to be done than one commit holds; the next dream goes on"})
			return false
		}
	}
	for _, it := range items {
		t.touched[it] = true
	}
	return true
}

// set changes a text, for a reason; the same text changes nothing.
// It reports whether the memory has the text then.
func (t *tree) set(it *item, content []byte, reason string) bool {
	if bytes.Equal(content, it.Content) {
		return true
	}
	if len(content) > memory.MaxMemoryBytes || !t.mayTouch(it) {
		return false
	}
	it.parse(content)
	it.because(reason)
	return true
}

// minDeletes is how many memories a dream may always delete; beyond it counts the fifth
// (SPEC 9).
const minDeletes = 5

func maxDeletes(memories int) int { return max(minDeletes, memories/5) }

// snapshot reads both directories.
func (d *Dreamer) snapshot(ctx context.Context, s *memories.Store) (*tree, error) {
	t := &tree{now: d.Now(), effort: newEffort(), vain: map[vain]bool{}, sealed: map[memory.Scope]bool{}, indexes: map[memory.Scope]*indexFile{}, at: map[memories.Ref]*item{}, touched: map[*item]bool{}}
	list, skipped, err := s.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("dream: %w", err)
	}
	for _, err := range skipped {
		t.left = append(t.left, Left{Why: err.Error()})
	}
	for _, m := range list {
		if m.Scope == memory.ScopePrivate && isClients(m.Path) {
			continue
		}
		if m.Content == nil {
			m.Content = []byte{} // nil is a file that is not there
		}
		it := &item{Memory: m, first: m.Content, time: m.ModTime, asOld: m.ModTime, clocks: clocksOf(m.Age(), m.ModTime)}
		switch {
		case m.Unreadable != nil:
			it.frozen = true
			t.left = append(t.left, Left{it.Ref.String(), "its frontmatter cannot be read, so it is left as it is"})
		case !utf8.Valid(m.Content) || bytes.IndexByte(m.Content, 0) >= 0:
			it.frozen = true
		}
		t.put(it)
	}
	t.deletes = maxDeletes(len(t.items))
	for _, scope := range []memory.Scope{memory.ScopePrivate, memory.ScopeTeam} {
		if err := t.readIndex(s, scope); err != nil {
			return nil, err
		}
	}
	t.onDisk = func(scope memory.Scope, key string) bool { return onDisk(s, scope, key) }
	return t, nil
}

// isClients knows the directories beside the memories that are a client's own business:
// what its sub-agents keep, and its logs by day. They are neither tidied nor listed.
func isClients(p memory.Path) bool {
	first, _, below := strings.Cut(string(p), "/")
	return below && (first == "agents" || first == "logs")
}

func (t *tree) readIndex(s *memories.Store, scope memory.Scope) error {
	if s.Dir(scope) == "" {
		return nil
	}
	dir, err := memdir.Open(s.Dir(scope))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("dream: %w", err)
	}
	defer func() { _ = dir.Close() }() // only read
	x := &indexFile{}
	text, at, err := dir.Read(memory.IndexName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		// Nothing may go here: the line of what is gone could not be taken out.
		t.sealed[scope] = true
		t.left = append(t.left, Left{memories.Ref{Scope: scope, Path: memory.IndexName}.String(),
			fmt.Sprintf("it is left as it is, and no memory beside it goes: %v", err)})
		return nil
	default:
		x.first, x.text, x.time = text, text, at
		if x.first == nil {
			x.first = []byte{}
		}
	}
	t.indexes[scope] = x
	return nil
}

// onDisk reports whether an index line's target is there, or may be: only what certainly
// is not is a ghost.
func onDisk(s *memories.Store, scope memory.Scope, key string) bool {
	there := func(dir memory.Scope, name string) bool {
		d, err := memdir.Open(s.Dir(dir))
		if err != nil {
			return !errors.Is(err, fs.ErrNotExist)
		}
		defer func() { _ = d.Close() }() // only read
		return d.Has(name)
	}
	if rest, ok := strings.CutPrefix(key, memdir.TeamDir+"/"); ok && scope == memory.ScopePrivate && s.Dir(memory.ScopeTeam) != "" && there(memory.ScopeTeam, rest) {
		return true
	}
	return there(scope, key)
}

// scope yields the memories of a scope that are still there.
func (t *tree) scope(scope memory.Scope) []*item {
	var out []*item
	for _, it := range t.items {
		if it.Scope == scope && !it.gone {
			out = append(out, it)
		}
	}
	return out
}

// find returns the memory, if it is still there.
func (t *tree) find(ref memories.Ref) *item {
	if it := t.at[ref]; it != nil && !it.gone {
		return it
	}
	return nil
}

// drop deletes a memory that into says as well, unless the cap is reached.
func (t *tree) drop(it, into *item, reason string) bool {
	if t.sealed[it.Scope] {
		return false // it was said why
	}
	if t.deletes <= 0 {
		t.say(Left{Why: "more memories could go than a dream may delete; the next one goes on"})
		return false
	}
	if !t.mayTouch(it, into) {
		return false
	}
	t.deletes--
	it.gone, it.into, it.whyGone = true, into, reason
	return true
}

// changes returns what differs from the disk: files, then indexes, then deletes.
func (t *tree) changes() []Change {
	var files, indexes, deletes []Change
	for _, it := range t.items {
		c := Change{Ref: it.Ref, Reasons: it.reasons, Old: it.first, New: it.Content, OldTime: it.time, Superseded: it.superseded}
		if !it.fresh {
			c.NewTime = it.asOld
		}
		switch {
		case it.gone && it.first == nil:
		case it.gone:
			c.Kind, c.New, c.NewTime, c.Reasons = Delete, nil, time.Time{}, []string{it.whyGone}
			if k := it.keeper(); k != it {
				c.Into = k.Ref
				c.Needs = append(c.Needs, Needed{k.Ref, memory.ETagOf(k.Content)})
			}
			for _, n := range it.needs {
				if n = n.keeper(); !n.gone {
					c.Needs = append(c.Needs, Needed{n.Ref, memory.ETagOf(n.Content)})
				}
			}
			deletes = append(deletes, c)
		case it.first == nil:
			c.Kind = Create
			files = append(files, c)
		case !bytes.Equal(it.first, it.Content):
			c.Kind = Edit
			files = append(files, c)
		}
	}
	for _, scope := range []memory.Scope{memory.ScopePrivate, memory.ScopeTeam} {
		x := t.indexes[scope]
		if x == nil || bytes.Equal(x.first, x.text) {
			continue
		}
		c := Change{Ref: memories.Ref{Scope: scope, Path: memory.IndexName}, Kind: Edit, Reasons: x.notes, Old: x.first, New: x.text, OldTime: x.time}
		if x.first == nil {
			c.Kind = Create
		}
		indexes = append(indexes, c)
	}
	return slices.Concat(files, indexes, deletes)
}
