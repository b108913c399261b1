package reconcile

import "bytes"

// mergeLines merges two texts line by line against their ancestor. Changes that have
// at least one untouched line between them are both taken; the same change made on
// both sides is taken once; changes that touch are not merged (ok is false), nor are
// texts too far apart to compare. It is symmetric in local and remote.
func mergeLines(base, local, remote []byte) (merged []byte, ok bool) {
	switch {
	case bytes.Equal(local, remote), bytes.Equal(base, remote):
		return local, true
	case bytes.Equal(base, local):
		return remote, true
	}
	t := lineTable{ids: map[string]int32{}}
	b, l, r := t.number(base), t.number(local), t.number(remote)
	toLocal, ok := diff(b, l)
	if !ok {
		return nil, false
	}
	toRemote, ok := diff(b, r)
	if !ok {
		return nil, false
	}
	var out []int32
	done := 0 // lines of base that are dealt with
	for len(toLocal) > 0 || len(toRemote) > 0 {
		// The group begins with the first hunk of either side and takes in all that
		// touch it, and what touches these.
		var lo, hi int
		if len(toRemote) == 0 || len(toLocal) > 0 && toLocal[0].aLo <= toRemote[0].aLo {
			lo, hi = toLocal[0].aLo, toLocal[0].aHi
		} else {
			lo, hi = toRemote[0].aLo, toRemote[0].aHi
		}
		nl, nr := 0, 0
		for grown := true; grown; {
			grown = false
			for nl < len(toLocal) && toLocal[nl].aLo <= hi {
				hi = max(hi, toLocal[nl].aHi)
				nl, grown = nl+1, true
			}
			for nr < len(toRemote) && toRemote[nr].aLo <= hi {
				hi = max(hi, toRemote[nr].aHi)
				nr, grown = nr+1, true
			}
		}
		out = append(out, b[done:lo]...)
		mine := rewrite(b, l, toLocal[:nl], lo, hi)
		theirs := rewrite(b, r, toRemote[:nr], lo, hi)
		switch {
		case nr == 0:
			out = append(out, mine...)
		case nl == 0:
			out = append(out, theirs...)
		case equalLines(mine, theirs):
			out = append(out, mine...)
		default:
			return nil, false
		}
		done = hi
		toLocal, toRemote = toLocal[nl:], toRemote[nr:]
	}
	out = append(out, b[done:]...)
	return t.text(out), true
}

// rewrite returns what base[lo:hi] became on one side.
func rewrite(base, side []int32, hunks []hunk, lo, hi int) []int32 {
	var out []int32
	for _, h := range hunks {
		out = append(out, base[lo:h.aLo]...)
		out = append(out, side[h.bLo:h.bHi]...)
		lo = h.aHi
	}
	return append(out, base[lo:hi]...)
}

func equalLines(a, b []int32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// lineTable gives equal lines equal numbers, so that comparing texts compares numbers.
type lineTable struct {
	ids   map[string]int32
	lines []string
}

func (t *lineTable) number(text []byte) []int32 {
	var out []int32
	for line := range bytes.Lines(text) {
		id, known := t.ids[string(line)]
		if !known {
			id = int32(len(t.lines))
			t.lines = append(t.lines, string(line))
			t.ids[string(line)] = id
		}
		out = append(out, id)
	}
	return out
}

func (t *lineTable) text(ids []int32) []byte {
	n := 0
	for _, id := range ids {
		n += len(t.lines[id])
	}
	out := make([]byte, 0, n)
	for _, id := range ids {
		out = append(out, t.lines[id]...)
	}
	return out
}
