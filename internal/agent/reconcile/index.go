package reconcile

import (
	"bytes"
	"path"
	"strconv"
	"strings"

	"github.com/memsvc/memsvc/internal/memory"
)

// indexLine is one line of an index. Its id says what it is about: the target of an
// entry, or the words of any other line; a second one of the same id counts up.
type indexLine struct {
	id    string
	raw   string
	entry bool
	key   string // of an entry
}

func indexLines(text []byte) []indexLine {
	var out []indexLine
	seen := map[string]int{}
	for _, line := range memory.ParseIndex(text).Lines {
		il := indexLine{raw: string(line.Raw)}
		if line.Entry != nil {
			il.entry, il.key = true, line.Entry.Key()
			il.id = "e" + il.key
		} else {
			il.id = "p" + strings.TrimRight(il.raw, "\r\n")
		}
		seen[il.id]++
		if n := seen[il.id]; n > 1 {
			il.id += "\x00" + strconv.Itoa(n)
		}
		out = append(out, il)
	}
	return out
}

// mergeIndex merges three plain index texts line by line, whatever stands beside
// what. It cannot fail: of an entry that both sides changed the remote line stays and
// the local one is returned in lost. A line that one side deleted goes, unless the
// other side changed it.
func mergeIndex(base, local, remote []byte) (merged []byte, lost []string) {
	b, l, r := indexLines(base), indexLines(local), indexLines(remote)
	bm, lm, rm := byID(b), byID(l), byID(r)
	kept := map[string]string{}
	for _, list := range [2][]indexLine{r, l} {
		for _, line := range list {
			if _, done := kept[line.id]; done {
				continue
			}
			raw, keep, gaveWay := mergeIndexLine(line.id, bm, lm, rm)
			if keep {
				kept[line.id] = raw
			}
			if gaveWay != "" {
				lost = append(lost, gaveWay)
			}
		}
	}
	// The order of the side that reordered is the skeleton; the hub's if in doubt.
	skeleton, other := r, l
	if sameOrder(b, r) && !sameOrder(b, l) {
		skeleton, other = l, r
	}
	for _, id := range weave(skeleton, other, kept) {
		merged = append(merged, kept[id]...)
	}
	return merged, lost
}

func mergeIndexLine(id string, bm, lm, rm map[string]string) (raw string, keep bool, lost string) {
	b, inB := bm[id]
	l, inL := lm[id]
	r, inR := rm[id]
	switch {
	case inL && inR:
		if l == r || inB && b == l {
			return r, true, ""
		}
		if inB && b == r {
			return l, true, ""
		}
		return r, true, strings.TrimRight(l, "\r\n")
	case inL:
		return l, !inB || l != b, ""
	default:
		return r, inR && (!inB || r != b), ""
	}
}

func byID(lines []indexLine) map[string]string {
	m := make(map[string]string, len(lines))
	for _, l := range lines {
		m[l.id] = l.raw
	}
	return m
}

// sameOrder reports whether the lines that both have stand in the same order.
func sameOrder(a, b []indexLine) bool {
	at := make(map[string]int, len(a))
	for i, l := range a {
		at[l.id] = i
	}
	last := -1
	for _, l := range b {
		if i, both := at[l.id]; both {
			if i < last {
				return false
			}
			last = i
		}
	}
	return true
}

// weave returns the kept ids in the order of the skeleton, those of the other side
// alone each after the line it followed there.
func weave(skeleton, other []indexLine, kept map[string]string) []string {
	inSkeleton := make(map[string]bool, len(skeleton))
	for _, l := range skeleton {
		inSkeleton[l.id] = true
	}
	follow := map[string][]string{} // by the skeleton line that they follow; "" = at the top
	last := ""
	for _, l := range other {
		if _, keep := kept[l.id]; !keep {
			continue
		}
		if inSkeleton[l.id] {
			last = l.id
			continue
		}
		follow[last] = append(follow[last], l.id)
	}
	out := append([]string(nil), follow[""]...)
	for _, l := range skeleton {
		if _, keep := kept[l.id]; keep {
			out = append(out, l.id)
			out = append(out, follow[l.id]...)
		}
	}
	return out
}

// ShareIndex returns what of a local index may leave the machine (ruling 13.7).
// Lines whose target private reports stay: one that the agreed index has too goes
// out as it is there, any other is left out. A target outside the team directory is
// private always. index is the path of the index; targets are relative to it.
func ShareIndex(index memory.Path, local, agreed []byte, private func(memory.Path) bool) []byte {
	var known map[string]string
	var out []byte
	changed := false
	for _, line := range indexLines(local) {
		if line.entry {
			target := path.Join(index.Dir(), line.key)
			if target == ".." || strings.HasPrefix(target, "../") || strings.HasPrefix(target, "/") || private(memory.Path(target)) {
				if known == nil {
					known = byID(indexLines(agreed))
				}
				if line.raw != known[line.id] {
					changed = true
					out = append(out, known[line.id]...)
					continue
				}
			}
		}
		out = append(out, line.raw...)
	}
	if !changed {
		return local
	}
	return out
}

// KeepPrivate returns merged with the lines of the local index that shared, the
// outcome of ShareIndex on it, lacks or has otherwise. Where merged says something new
// of the same target, the local line gives way and is returned in lost.
func KeepPrivate(index memory.Path, local, shared, merged []byte) (text []byte, lost []string) {
	if bytes.Equal(local, shared) {
		return merged, nil
	}
	m := MergeTexts(index, shared, true, local, merged)
	return m.Text, m.Lost
}

// KeepEntries returns shared with the entries of the agreed index whose target held
// reports and that shared lacks, at their old place: while a refused rename holds the
// delete of its old file, the line for that file has to stay too.
func KeepEntries(index memory.Path, shared, agreed []byte, held func(memory.Path) bool) []byte {
	has := byID(indexLines(shared))
	var less []byte // agreed, less the entries to keep: then they count as added there
	missing := false
	for _, line := range indexLines(agreed) {
		_, there := has[line.id]
		if line.entry && !there && held(memory.Path(path.Join(index.Dir(), line.key))) {
			missing = true
			continue
		}
		less = append(less, line.raw...)
	}
	if !missing {
		return shared
	}
	return MergeTexts(index, less, true, shared, agreed).Text
}
