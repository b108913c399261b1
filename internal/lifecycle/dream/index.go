package dream

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memsvc/memsvc/internal/lifecycle/dates"
	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

// adviceBytes is how long an index line should be at most where room is short (ruling
// 13.19).
const adviceBytes = 100

// tidyIndexes makes both indexes name what is there, within their caps.
func (t *tree) tidyIndexes() {
	for _, scope := range []memory.Scope{memory.ScopePrivate, memory.ScopeTeam} {
		f := t.indexes[scope]
		if f == nil {
			continue
		}
		x := memory.ParseIndex(f.text)
		t.dropGhosts(scope, f, &x)
		named := map[string]bool{}
		for _, e := range x.Entries() {
			named[e.Key()] = true
		}
		for _, it := range t.scope(scope) {
			if !memory.IsIndex(it.Path) && !named[string(it.Path)] {
				x.Set(memory.EntryFor(it.Path, it.Front))
				f.because("added the lines that were missing")
			}
		}
		t.freshenLines(scope, f, &x)
		t.shortenLines(scope, f, &x, func(raw []byte) bool { return utf8.RuneCount(raw) > memory.MaxIndexLineChars }, fitsChars)
		t.fitCaps(scope, f, &x)
		if !bytes.Equal(x.Render(), f.text) {
			x.DropMarker()
			f.text = x.Render()
		}
	}
}

func (f *indexFile) because(reason string) {
	if !slices.Contains(f.notes, reason) {
		f.notes = append(f.notes, reason)
	}
}

func names(x *memory.Index, key string) bool {
	for _, l := range x.Lines {
		if l.Entry != nil && l.Entry.Key() == key {
			return true
		}
	}
	return false
}

// dropGhosts takes out lines whose file is not there, and the second of two for one file.
func (t *tree) dropGhosts(scope memory.Scope, f *indexFile, x *memory.Index) {
	seen := map[string]bool{}
	x.Lines = slices.DeleteFunc(x.Lines, func(l memory.IndexLine) bool {
		if l.Entry == nil {
			return false
		}
		key := l.Entry.Key()
		switch {
		case !t.there(scope, key):
			f.because("dropped lines that led to no file")
		case seen[key]:
			f.because("dropped lines that stood twice")
		default:
			seen[key] = true
			return false
		}
		return true
	})
}

// refOf is the memory that an index line of a scope means.
func refOf(scope memory.Scope, key string) memories.Ref {
	if rest, ok := strings.CutPrefix(key, memdir.TeamDir+"/"); ok && scope == memory.ScopePrivate {
		return memories.Ref{Scope: memory.ScopeTeam, Path: memory.Path(rest)}
	}
	return memories.Ref{Scope: scope, Path: memory.Path(key)}
}

func (t *tree) there(scope memory.Scope, key string) bool {
	ref := refOf(scope, key)
	if it := t.at[ref]; it != nil {
		return !it.gone
	}
	return t.onDisk(scope, key)
}

// freshenLines lets lines follow what became of their memories: those that repeat the name
// and the description repeat the new ones, and relative dates become absolute there, too.
func (t *tree) freshenLines(scope memory.Scope, f *indexFile, x *memory.Index) {
	for i, l := range x.Lines {
		if l.Entry == nil {
			continue
		}
		it := t.find(refOf(scope, l.Entry.Key()))
		if it == nil || it.frozen {
			continue
		}
		raw := bytes.TrimRight(l.Raw, "\r\n")
		end := l.Raw[len(raw):]
		was, _, _ := memory.ParseFrontmatter(it.first)
		before, after := memory.EntryFor(it.Path, was), memory.EntryFor(it.Path, it.Front)
		hook := l.Entry.Hook
		if at := it.Age(); !it.fresh && !at.IsZero() {
			hook = dates.Absolute(hook, at.In(t.now.Location()))
		}
		switch {
		case it.first != nil && before != after && l.Entry.Title == before.Title && l.Entry.Hook == before.Hook:
			e := *l.Entry
			e.Title, e.Hook = after.Title, after.Hook
			raw = []byte(strings.TrimSuffix(memory.FormatIndexEntry(e), "\n"))
		case hook != l.Entry.Hook && bytes.Count(raw, []byte(l.Entry.Hook)) == 1:
			raw = bytes.Replace(raw, []byte(l.Entry.Hook), []byte(hook), 1)
		default:
			continue
		}
		fresh := memory.ParseIndex(raw).Entries()
		if len(fresh) != 1 || fresh[0].Key() != l.Entry.Key() {
			continue // it would not be this line any more
		}
		x.Lines[i] = memory.IndexLine{Raw: slices.Concat(raw, end), Entry: &fresh[0]}
		f.because("lines say what their memories say now")
	}
}

// shortenLines makes lines that are too long fit, each by cutting its hook. What the
// memory itself does not say of a hook moves there; in the team's index such a line stays.
func (t *tree) shortenLines(scope memory.Scope, f *indexFile, x *memory.Index, long func([]byte) bool, fits func(string) bool) {
	for i, l := range x.Lines {
		raw := bytes.TrimRight(l.Raw, "\r\n")
		if l.Entry == nil || !long(raw) || l.Entry.Hook == "" {
			continue
		}
		it := t.find(refOf(scope, l.Entry.Key()))
		if it == nil {
			continue
		}
		e, ok := shorter(*l.Entry, fits)
		if !ok {
			continue
		}
		if missing(termsOf(string(it.Content)), l.Entry.Hook) {
			if it.frozen || it.Scope == memory.ScopeTeam || strings.HasSuffix(l.Entry.Hook, "…") {
				continue
			}
			if !t.set(it, it.withBody(withLine(string(it.Body()), l.Entry.Hook)), reasonHook) {
				continue
			}
		}
		end := l.Raw[len(raw):]
		x.Lines[i] = memory.IndexLine{Raw: slices.Concat([]byte(strings.TrimSuffix(memory.FormatIndexEntry(e), "\n")), end), Entry: &e}
		f.because("shortened lines that were too long")
	}
}

func fitsChars(line string) bool { return utf8.RuneCountInString(line) <= memory.MaxIndexLineChars }
func fitsBytes(line string) bool { return len(line) <= adviceBytes }

// maxHook is how many characters of a hook are tried to fit into a line; no line has more.
const maxHook = 4 * memory.MaxIndexLineChars

// shorter cuts an entry's hook until its line fits; ok is false if nothing is gained.
func shorter(e memory.IndexEntry, fits func(string) bool) (memory.IndexEntry, bool) {
	hook := []rune(strings.TrimSuffix(e.Hook, "…"))
	hook = hook[:min(len(hook), maxHook)] // a far longer one need not be tried at every length
	for keep := len(hook); keep >= 0; keep-- {
		e.Hook = strings.TrimRight(string(hook[:keep]), " ")
		if keep > 0 && keep < len(hook) {
			e.Hook += "…"
		}
		if fits(strings.TrimSuffix(memory.FormatIndexEntry(e), "\n")) {
			return e, true
		}
	}
	return e, false
}

func overCap(text []byte) (bool, int) {
	loaded, cut := memory.CutIndex(text)
	return len(loaded) < len(memory.StripIndex(text)), cut
}

// fitCaps brings an index below its caps (SPEC 2.4): shorter hooks, then no blank lines
// between entries. Where that is not enough, the newest of the personal memories come
// first, since the end is what is not loaded; no line is dropped, for a memory without
// one would be lost.
func (t *tree) fitCaps(scope memory.Scope, f *indexFile, x *memory.Index) {
	if over, _ := overCap(x.Render()); !over {
		return
	}
	t.shortenLines(scope, f, x, func(raw []byte) bool { return len(raw) > adviceBytes }, fitsBytes)
	if over, _ := overCap(x.Render()); !over {
		return
	}
	entry := func(i int) bool { return i >= 0 && i < len(x.Lines) && x.Lines[i].Entry != nil }
	var kept []memory.IndexLine
	for i, l := range x.Lines {
		if l.Entry == nil && len(bytes.TrimSpace(l.Raw)) == 0 && entry(i-1) && entry(i+1) {
			f.because("took out blank lines between entries, for room")
			continue
		}
		kept = append(kept, l)
	}
	x.Lines = kept
	over, _ := overCap(x.Render())
	if over && scope == memory.ScopePrivate {
		t.newestFirst(f, x)
	}
	if over, cut := overCap(x.Render()); over {
		ref := memories.Ref{Scope: scope, Path: memory.IndexName}
		t.say(Left{ref.String(), fmt.Sprintf("the index is over its caps: %d entries are not loaded; merge or delete memories", cut)})
	}
}

// newestFirst orders the entries, if nothing stands between them that groups them.
func (t *tree) newestFirst(f *indexFile, x *memory.Index) {
	first := slices.IndexFunc(x.Lines, func(l memory.IndexLine) bool { return l.Entry != nil })
	if first < 0 {
		return
	}
	end := first
	for end < len(x.Lines) && x.Lines[end].Entry != nil {
		end++
	}
	for _, l := range x.Lines[end:] {
		if l.Entry != nil {
			return
		}
	}
	if last := x.Lines[end-1].Raw; !bytes.HasSuffix(last, []byte("\n")) {
		x.Lines[end-1].Raw = append(bytes.Clone(last), '\n')
	}
	age := map[string]time.Time{}
	for _, it := range t.items {
		age[it.Ref.String()] = it.Age()
	}
	sorted := slices.Clone(x.Lines[first:end])
	slices.SortStableFunc(sorted, func(a, b memory.IndexLine) int {
		return cmp.Or(age[b.Entry.Key()].Compare(age[a.Entry.Key()]), cmp.Compare(a.Entry.Key(), b.Entry.Key()))
	})
	for i := range sorted {
		if !bytes.Equal(sorted[i].Raw, x.Lines[first+i].Raw) {
			f.because("the newest come first, since the end is not loaded")
		}
	}
	copy(x.Lines[first:end], sorted)
}

func (t *tree) say(l Left) {
	if !slices.Contains(t.left, l) {
		t.left = append(t.left, l)
	}
}
