package secretscan

import (
	"sort"
	"strings"
)

// variant is a form of the scanned text (as given, normalised, decoded, joined) that can say where its bytes came from.
type variant struct {
	s      string
	parent *variant // the form it was made from; nil for the text as given
	marks  []mark   // by ascending at; nil means offsets equal the parent's
}

// mark says that from offset at on, a variant's bytes came from offset from of its parent. With still, all bytes up to
// the next mark came from that one place, which ends at to: a decoded segment has no finer position.
type mark struct {
	at, from, to int
	still        bool
}

// origin maps an offset in v to one in the text as given.
func (v *variant) origin(at int) int {
	for ; v.parent != nil; v = v.parent {
		if len(v.marks) == 0 {
			continue
		}
		switch m, ok := v.markOf(at); {
		case !ok:
			at = 0
		case m.still:
			at = m.from
		default:
			at = min(m.from+at-m.at, len(v.parent.s))
		}
	}
	return at
}

// originEnd maps the offset after a byte of v to the one after what it came from in the text as given.
func (v *variant) originEnd(end int) int {
	for ; v.parent != nil; v = v.parent {
		if len(v.marks) == 0 {
			continue
		}
		switch m, ok := v.markOf(end - 1); {
		case !ok:
			end = 0
		case m.still:
			end = m.to
		default:
			end = min(m.from+end-m.at, len(v.parent.s))
		}
	}
	return min(end, len(v.s))
}

// markOf returns the mark that says where the byte at came from; none for what is before the first.
func (v *variant) markOf(at int) (m mark, ok bool) {
	i := sort.Search(len(v.marks), func(i int) bool { return v.marks[i].at > at }) - 1
	if i < 0 {
		return mark{}, false
	}
	return v.marks[i], true
}

// builder writes a variant.
type builder struct {
	parent *variant
	out    strings.Builder
	marks  []mark
}

// keep copies parent[from:to].
func (b *builder) keep(from, to int) {
	if from < to {
		b.marks = append(b.marks, mark{at: b.out.Len(), from: from})
		b.out.WriteString(b.parent.s[from:to])
	}
}

// put writes text that stands for parent[from:to].
func (b *builder) put(text string, from, to int) {
	if text != "" {
		b.marks = append(b.marks, mark{at: b.out.Len(), from: from, to: to, still: true})
		b.out.WriteString(text)
	}
}

func (b *builder) variant() *variant {
	return &variant{s: b.out.String(), parent: b.parent, marks: b.marks}
}
