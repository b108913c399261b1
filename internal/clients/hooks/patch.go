package hooks

import (
	"slices"
	"strings"
)

// patchMark begins and patchEnd ends a patch in the form that Codex and others write files in: whole files
// and hunks of several files in one text.
const (
	patchMark = "*** Begin Patch"
	patchEnd  = "\n*** End Patch"
)

// patched is what a patch does to one file.
type patched struct {
	from, to string // the file that is read and the one that is written, as the patch calls them
	fresh    bool   // whether old text does not matter
	hunks    [][]string
}

// parsePatch takes a patch apart; nil if text is none. Deleted files are left out. It is
// lenient: what the client itself will refuse may be anything here.
func parsePatch(text string) (out []patched) {
	_, text, found := strings.Cut(text, patchMark)
	if !found {
		return nil
	}
	text, _, _ = strings.Cut(text, patchEnd)
	var now *patched
	add := func(file string, fresh bool) {
		file = strings.TrimSpace(file)
		out = append(out, patched{from: file, to: file, fresh: fresh, hunks: [][]string{nil}})
		now = &out[len(out)-1]
	}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if file, ok := strings.CutPrefix(line, "*** Add File: "); ok {
			add(file, true)
		} else if file, ok := strings.CutPrefix(line, "*** Update File: "); ok {
			add(file, false)
		} else if _, ok := strings.CutPrefix(line, "*** Delete File: "); ok {
			now = nil
		} else if now == nil {
			continue
		} else if file, ok := strings.CutPrefix(line, "*** Move to: "); ok {
			now.to = strings.TrimSpace(file)
		} else if strings.HasPrefix(line, "@@") {
			now.hunks = append(now.hunks, nil)
		} else if !strings.HasPrefix(line, "*** ") {
			last := len(now.hunks) - 1
			now.hunks[last] = append(now.hunks[last], line)
		}
	}
	return out
}

// apply returns the text after the patch. A hunk that does not fit is added at the end:
// clients find places more loosely than this does, and what is added must be judged.
func (p patched) apply(old string) string {
	lines := strings.Split(old, "\n")
	if p.fresh {
		lines = nil
	}
	for _, h := range p.hunks {
		var before, after []string
		for _, l := range h {
			switch {
			case strings.HasPrefix(l, "+"):
				after = append(after, l[1:])
			case strings.HasPrefix(l, "-"):
				before = append(before, l[1:])
			default:
				l = strings.TrimPrefix(l, " ")
				before, after = append(before, l), append(after, l)
			}
		}
		at := len(lines)
		if !p.fresh && len(before) > 0 {
			for i := 0; i+len(before) <= len(lines); i++ {
				if slices.Equal(lines[i:i+len(before)], before) {
					at = i
					break
				}
			}
		}
		end := min(at+len(before), len(lines))
		lines = slices.Concat(lines[:at], after, lines[end:])
	}
	return strings.Join(lines, "\n")
}
