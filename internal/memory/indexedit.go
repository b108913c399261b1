package memory

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// EntryFor returns the index entry of the memory at path, whose hook is cut so that the
// line keeps to MaxIndexLineChars: a hook that begins with the title goes on where that
// ends, before anything of its end is cut. Without a name the title is the file's name.
func EntryFor(path Path, fm Frontmatter) IndexEntry {
	e := IndexEntry{Title: fm.Name, Target: string(path), Hook: fm.Description}
	if e.Title == "" {
		e.Title = path.Base()
	}
	line := FormatIndexEntry(e)
	if n := len(e.Title); n > 0 && utf8.RuneCountInString(line)-1 > MaxIndexLineChars && len(e.Hook) > n && strings.EqualFold(e.Hook[:n], e.Title) {
		e.Hook = "…" + strings.TrimLeft(e.Hook[n:], " ") // what the title does not say
		line = FormatIndexEntry(e)
	}
	for over := utf8.RuneCountInString(line) - 1 - MaxIndexLineChars; over > 0 && e.Hook != ""; over = utf8.RuneCountInString(line) - 1 - MaxIndexLineChars {
		r := []rune(e.Hook)
		keep := max(len(r)-over-1, 0)
		if e.Hook = string(r[:keep]); keep > 0 {
			e.Hook += "…"
		}
		line = FormatIndexEntry(e)
	}
	return e
}

// Set makes e the one entry of its target: the first line that names the target is
// replaced where it stands, later ones go; a new entry follows the last one, or ends
// the index. Lines of other targets keep their bytes. It reports whether a byte changed.
func (x *Index) Set(e IndexEntry) (changed bool) {
	key := e.Key()
	raw := []byte(FormatIndexEntry(e))
	if x.crlf() {
		raw = append(raw[:len(raw)-1], '\r', '\n')
	}
	line := IndexLine{Raw: raw, Entry: &e}
	last, done := -1, false
	kept := x.Lines[:0:0]
	for _, l := range x.Lines {
		if l.Entry == nil {
			kept = append(kept, l)
			continue
		}
		if l.Entry.Key() == key {
			if done {
				changed = true
				continue
			}
			done = true
			if !bytes.Equal(bytes.TrimRight(l.Raw, "\r\n"), bytes.TrimRight(raw, "\r\n")) {
				l, changed = line, true
			}
		}
		kept = append(kept, l)
		last = len(kept) - 1
	}
	if !done {
		changed = true
		if last < 0 {
			last = len(kept) - 1
		}
		if last >= 0 && !bytes.HasSuffix(kept[last].Raw, []byte("\n")) {
			end := raw[len(raw)-len(lineEnd(raw)):]
			kept[last].Raw = append(bytes.Clone(kept[last].Raw), end...)
		}
		kept = append(kept[:last+1], append([]IndexLine{line}, kept[last+1:]...)...)
	}
	x.Lines = kept
	return changed
}

// DropMarker removes the marker of a redaction, which an index of that time begins with.
func (x *Index) DropMarker() {
	x.Lines = slices.DeleteFunc(x.Lines, func(l IndexLine) bool { return l.Entry == nil && IsRedactionMarker(l.Raw) })
}

// Drop removes every entry whose Key is key, and reports whether there was one.
func (x *Index) Drop(key string) (changed bool) {
	kept := x.Lines[:0:0]
	for _, l := range x.Lines {
		if l.Entry != nil && l.Entry.Key() == key {
			changed = true
			continue
		}
		kept = append(kept, l)
	}
	x.Lines = kept
	return changed
}

// crlf reports whether the lines end as on Windows; the first one decides.
func (x *Index) crlf() bool {
	return len(x.Lines) > 0 && len(lineEnd(x.Lines[0].Raw)) == 2
}

func lineEnd(raw []byte) []byte {
	return raw[len(bytes.TrimRight(raw, "\r\n")):]
}
