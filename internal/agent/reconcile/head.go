package reconcile

import (
	"bytes"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/memory"
)

type headOutcome uint8

const (
	headUnread   headOutcome = iota // some frontmatter is missing or cannot be read
	headMerged                      // merged, field by field
	headConflict                    // a field was changed on both sides, differently
)

// mergeHeads merges the frontmatter of three plain texts field by field and returns
// it with both fences, and the three bodies.
func mergeHeads(base, local, remote []byte) (head []byte, bodies [3][]byte, how headOutcome) {
	var fms [3]memory.Frontmatter
	for i, t := range [3][]byte{base, local, remote} {
		fm, body, err := memory.ParseFrontmatter(t)
		if err != nil || i > 0 && !fm.Present {
			return nil, bodies, headUnread
		}
		fms[i], bodies[i] = fm, body
	}
	b, ok0 := fieldsOf(fms[0])
	l, ok1 := fieldsOf(fms[1])
	r, ok2 := fieldsOf(fms[2])
	if !ok0 || !ok1 || !ok2 {
		return nil, bodies, headUnread
	}
	later := laterSide(fms[1], fms[2])
	fields, ok := mergeFields(b, l, r, later)
	if !ok {
		return nil, bodies, headConflict
	}
	fence := func(from func(i int) []byte) []byte {
		fb, fl, fr := from(0), from(1), from(2)
		switch {
		case !bytes.Equal(fl, fb) && fms[0].Present && bytes.Equal(fr, fb):
			return fl
		case !bytes.Equal(fr, fb) && fms[0].Present && bytes.Equal(fl, fb):
			return fr
		case bytes.Compare(fl, fr) < 0:
			return fl
		}
		return fr
	}
	texts := [3][]byte{base, local, remote}
	head = append(head, fence(func(i int) []byte { return texts[i][:fms[i].YAMLStart] })...)
	for _, f := range fields {
		head = append(head, f.raw...)
	}
	head = append(head, fence(func(i int) []byte { return texts[i][fms[i].YAMLEnd:fms[i].BodyStart] })...)
	return head, bodies, headMerged
}

// laterSide returns -1 when the local side was modified later, 1 when the remote
// was, 0 when the fields do not tell.
func laterSide(l, r memory.Frontmatter) int { return r.Modified.Compare(l.Modified) }

// volatile reports whether the field is rewritten on every save (ruling 13.16), by clients
// or by our own programs. A date is one where it is the memory's own time (ruling 13.19).
func volatile(key string) bool {
	switch strings.TrimPrefix(key, "metadata.") {
	case "modified", "node_type", "originSessionId":
		return true
	}
	return key == "date"
}

// field is one field with the comments and blank lines before it.
type field struct {
	key   string
	raw   []byte
	value string
}

// tailKey holds the comments and blanks after the last field. No YAML key has a NUL.
const tailKey = "\x00tail"

// fieldsOf returns the fields in order. ok is false when a key stands twice or
// metadata has a form that cannot be merged with others by lines.
func fieldsOf(fm memory.Frontmatter) (out []field, ok bool) {
	var lead []byte
	seen := map[string]bool{}
	for _, f := range fm.Fields {
		if f.Key == "" {
			lead = append(lead, f.Raw...)
			continue
		}
		if seen[f.Key] || strings.HasPrefix(f.Key, "\x00") {
			return nil, false
		}
		if f.Key == "metadata" && string(bytes.TrimSpace(f.Raw)) != "metadata:" {
			return nil, false
		}
		seen[f.Key] = true
		out = append(out, field{key: f.Key, raw: append(lead, f.Raw...), value: f.Value})
		lead = nil
	}
	if lead != nil {
		out = append(out, field{key: tailKey, raw: lead})
	}
	return out, true
}

// mergeFields merges three lists of fields. ok is false when a field that is not
// volatile was changed on both sides.
func mergeFields(b, l, r []field, later int) (out []field, ok bool) {
	bm, lm, rm := byKey(b), byKey(l), byKey(r)
	merged := map[string]field{}
	for _, key := range keysOf(b, l, r) {
		fb, inB := bm[key]
		fl, inL := lm[key]
		fr, inR := rm[key]
		sameL, sameR := inL == inB && bytes.Equal(fl.raw, fb.raw), inR == inB && bytes.Equal(fr.raw, fb.raw)
		switch {
		case !inL && !inR:
		case inL && inR && bytes.Equal(fl.raw, fr.raw):
			merged[key] = fl
		case sameL:
			if inR {
				merged[key] = fr
			}
		case sameR:
			if inL {
				merged[key] = fl
			}
		case !inL: // dropped here, changed there: the edit stays
			merged[key] = fr
		case !inR:
			merged[key] = fl
		case volatile(key) || key == tailKey:
			merged[key] = laterField(fl, fr, later)
		case fl.value != "" && fl.value == fr.value:
			// Only quoted, spaced or commented differently.
			merged[key] = laterField(fl, fr, 0)
		default:
			return nil, false
		}
	}
	for _, key := range orderKeys(b, l, r) {
		if f, kept := merged[key]; kept {
			out = append(out, f)
		}
	}
	return out, true
}

// laterField picks the field of the later side, else by bytes, so that both machines
// pick the same.
func laterField(l, r field, later int) field {
	if later == 0 {
		later = -bytes.Compare(l.raw, r.raw)
	}
	if later > 0 {
		return r
	}
	return l
}

func byKey(fs []field) map[string]field {
	m := make(map[string]field, len(fs))
	for _, f := range fs {
		m[f.key] = f
	}
	return m
}

func keysOf(lists ...[]field) []string {
	var out []string
	for _, fs := range lists {
		for _, f := range fs {
			out = append(out, f.key)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// orderKeys returns the order of the merged fields: the base's, new ones after the
// field they followed, several of these by name; metadata and its children together,
// the tail last.
func orderKeys(b, l, r []field) []string {
	split := func(fs []field) (top, sub []string) {
		for _, f := range fs {
			switch {
			case strings.HasPrefix(f.key, "metadata."):
				sub = append(sub, f.key)
			case f.key != tailKey:
				top = append(top, f.key)
			}
		}
		return top, sub
	}
	bt, bs := split(b)
	lt, ls := split(l)
	rt, rs := split(r)
	var out []string
	for _, key := range orderNames(bt, lt, rt) {
		out = append(out, key)
		if key == "metadata" {
			out = append(out, orderNames(bs, ls, rs)...)
		}
	}
	return append(out, tailKey)
}

func orderNames(base, l, r []string) []string {
	known := map[string]bool{"": true}
	for _, k := range base {
		known[k] = true
	}
	// after[k] are the new names that follow the known name k, on either side.
	after := map[string][]string{}
	for _, side := range [2][]string{l, r} {
		last := ""
		for _, k := range side {
			if known[k] {
				last = k
				continue
			}
			after[last] = append(after[last], k)
		}
	}
	var out []string
	placed := map[string]bool{}
	put := func(anchor string) {
		names := slices.Clone(after[anchor])
		if !slices.Equal(l, r) && hasNew(l, known) && hasNew(r, known) {
			slices.Sort(names) // both sides added: neither order may win
		}
		for _, k := range names {
			if !placed[k] {
				placed[k] = true
				out = append(out, k)
			}
		}
	}
	put("")
	for _, k := range base {
		out = append(out, k)
		put(k)
	}
	return out
}

func hasNew(side []string, known map[string]bool) bool {
	return slices.ContainsFunc(side, func(k string) bool { return !known[k] })
}
