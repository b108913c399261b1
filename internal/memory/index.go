package memory

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The rules of an index, as a Violation names them. All are warnings.
const (
	RuleIndexLineLong = "index-line-long" // a line over MaxIndexLineChars
	RuleIndexOverCap  = "index-over-cap"  // lines beyond what is loaded
	RuleIndexGhost    = "index-ghost"     // an entry whose file is not there
	RuleIndexMissing  = "index-missing"   // a file without an entry
)

// Index is a MEMORY.md taken apart without loss: Render gives back its bytes.
type Index struct {
	Lines []IndexLine
}

// IndexLine is one line of an index, whatever it holds.
type IndexLine struct {
	Raw   []byte      // with its line end; shares the content's memory
	Entry *IndexEntry // nil for prose, headings, blanks, frontmatter, comments, code
}

// IndexEntry is what a line `- [Title](file.md) — hook (type, date)` says. Its
// identity is its link target (ruling 13.7).
type IndexEntry struct {
	Title  string
	Target string // as written between the parentheses
	Hook   string // without the type and date at its end
	Type   string // of ` (type, date)`; "" without it
	Date   string // of ` (type, date)`, as written; "" without it
}

// Key returns the target as a path relative to the index's directory: decoded, in
// NFC, without ./ and without a fragment. Two entries are the same when their keys are.
func (e *IndexEntry) Key() string {
	t := e.Target
	if i := strings.IndexByte(t, '#'); i >= 0 {
		t = t[:i]
	}
	if d, _ := percentDecode(t); utf8.ValidString(d) { // a hostile one comes back as it was
		t = d
	}
	return norm.NFC.String(path.Clean(t))
}

// ParseIndex takes content apart. It never fails: a line that is no entry is prose.
func ParseIndex(content []byte) Index {
	var x Index
	var s blockScanner
	for at := s.start(content); at < len(content); {
		if len(x.Lines) == 0 && at > 0 {
			x.appendProse(content[:at])
		}
		text, n := cutLine(content[at:])
		line := IndexLine{Raw: content[at : at+n : at+n]}
		if s.next(text) == inText {
			line.Entry = parseIndexEntry(string(text))
		}
		x.Lines = append(x.Lines, line)
		at += n
	}
	if len(x.Lines) == 0 {
		x.appendProse(content)
	}
	return x
}

func (x *Index) appendProse(b []byte) {
	for len(b) > 0 {
		_, n := cutLine(b)
		x.Lines = append(x.Lines, IndexLine{Raw: b[:n:n]})
		b = b[n:]
	}
}

// Render returns the bytes of all lines.
func (x Index) Render() []byte {
	var out []byte
	for _, l := range x.Lines {
		out = append(out, l.Raw...)
	}
	return out
}

// Entries returns the entries in order.
func (x Index) Entries() []IndexEntry {
	var out []IndexEntry
	for _, l := range x.Lines {
		if l.Entry != nil {
			out = append(out, *l.Entry)
		}
	}
	return out
}

// Ghosts returns the entries whose target is not among paths, in order. Paths are
// relative to the index's directory.
func (x Index) Ghosts(paths []Path) []IndexEntry {
	there := make(map[string]bool, len(paths))
	for _, p := range paths {
		there[string(p)] = true
	}
	return slices.DeleteFunc(x.Entries(), func(e IndexEntry) bool { return there[e.Key()] })
}

// Missing returns the paths that no entry names, in order; indexes themselves do not
// count.
func (x Index) Missing(paths []Path) []Path {
	named := make(map[string]bool, len(x.Lines))
	for _, e := range x.Entries() {
		named[e.Key()] = true
	}
	var out []Path
	for _, p := range paths {
		if !named[string(p)] && !IsIndex(p) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// FormatIndexEntry returns the line for an entry, with its line end. Line ends in
// title and hook become blanks.
func FormatIndexEntry(e IndexEntry) string {
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	target := e.Target
	if strings.ContainsAny(target, " ()") {
		target = "<" + target + ">"
	}
	line := "- [" + flat(e.Title) + "](" + target + ")"
	if hook := flat(e.Hook); hook != "" {
		line += " — " + hook
	}
	switch {
	case e.Type != "" && e.Date != "":
		line += " (" + e.Type + ", " + e.Date + ")"
	case e.Type != "":
		line += " (" + e.Type + ")"
	}
	return line + "\n"
}

// parseIndexEntry reads a list item that begins with a link to a Markdown file below
// the index; nil for every other line.
func parseIndexEntry(text string) *IndexEntry {
	s := strings.TrimLeft(text, " \t")
	if len(s) < 2 || !strings.ContainsRune("-*+", rune(s[0])) || s[1] != ' ' && s[1] != '\t' {
		return nil
	}
	s = strings.TrimLeft(s[1:], " \t")
	if !strings.HasPrefix(s, "[") {
		return nil
	}
	title, rest, ok := strings.Cut(s[1:], "](")
	if !ok {
		return nil
	}
	target, rest, ok := cutTarget(rest)
	if !ok {
		return nil
	}
	e := &IndexEntry{Title: title, Target: target, Hook: trimHook(rest)}
	if key := e.Key(); !strings.HasSuffix(key, Extension) || strings.Contains(target, ":") {
		return nil
	}
	e.Hook, e.Type, e.Date = cutTypeAndDate(e.Hook)
	return e
}

// cutTarget reads a link target up to its closing parenthesis: in angle brackets, or
// with balanced parentheses of its own.
func cutTarget(s string) (target, rest string, ok bool) {
	if strings.HasPrefix(s, "<") {
		target, rest, ok = strings.Cut(s[1:], ">)")
		return target, rest, ok && target != ""
	}
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth == 0 {
				return strings.TrimSpace(s[:i]), s[i+1:], strings.TrimSpace(s[:i]) != ""
			}
			depth--
		}
	}
	return "", "", false
}

// trimHook drops the dash, colon or blanks between link and hook.
func trimHook(s string) string {
	s = strings.TrimSpace(s)
	for _, sep := range [...]string{"——", "—", "–", "--", "-", "：", ":"} {
		if t, ok := strings.CutPrefix(s, sep); ok {
			return strings.TrimSpace(t)
		}
	}
	return s
}

// cutTypeAndDate takes ` (type, date)` or ` (type)` off the end of a hook, if the
// word is one of the four types.
func cutTypeAndDate(hook string) (rest, typ, date string) {
	if !strings.HasSuffix(hook, ")") {
		return hook, "", ""
	}
	i := strings.LastIndexByte(hook, '(')
	if i < 0 {
		return hook, "", ""
	}
	typ, date, _ = strings.Cut(hook[i+1:len(hook)-1], ",")
	if _, ok := ParseType(strings.TrimSpace(typ)); !ok {
		return hook, "", ""
	}
	return strings.TrimSpace(hook[:i]), strings.TrimSpace(typ), strings.TrimSpace(date)
}

// IndexWarnings returns what whoever wrote the index at path is to be told at once:
// lines that are too long, and entries beyond the caps.
func IndexWarnings(path Path, content []byte) []Violation {
	var out []Violation
	var s blockScanner
	line := 1 + bytes.Count(content[:s.start(content)], []byte("\n"))
	for at := s.start(content); at < len(content); line++ {
		text, n := cutLine(content[at:])
		at += n
		if s.next(text) != inText || len(text) <= MaxIndexLineChars {
			continue
		}
		if chars := utf8.RuneCount(text); chars > MaxIndexLineChars {
			out = append(out, Violation{Path: cutText(string(path)), Line: line, Rule: RuleIndexLineLong,
				Message: fmt.Sprintf("the line has %d characters; keep to %d and move the rest into the memory", chars, MaxIndexLineChars)})
		}
	}
	loaded, cut := CutIndex(content)
	if stripped := StripIndex(content); len(loaded) < len(stripped) {
		out = append(out, Violation{Path: cutText(string(path)), Rule: RuleIndexOverCap,
			Message: fmt.Sprintf("the index has %d lines and %d bytes, but only %d lines or %d bytes are loaded, so %d entries are not seen; shorten it",
				countLines(stripped), len(stripped), MaxIndexLines, MaxIndexBytes, cut)})
	}
	return out
}
