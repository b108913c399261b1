package lexical

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ellipsis marks where an excerpt was cut.
const ellipsis = "…"

// maxSnippetScan bounds how much of a text is searched for the best place.
const maxSnippetScan = 64 << 10

// Snippet returns at most max characters of content, on one line, around the place
// where most of the query's terms stand close together; the beginning if none
// stands anywhere. A cut end is marked with an ellipsis, which counts.
func Snippet(content, query string, max int) string {
	if max <= 0 {
		return ""
	}
	scan := content
	if len(scan) > maxSnippetScan {
		scan = scan[:boundary(scan, maxSnippetScan)]
	}
	start := bestPlace(scan, ParseQuery(query), max)
	return excerpt(content, start, max)
}

// bestPlace returns the byte at which to begin, a little before the densest group of
// matches.
func bestPlace(text string, q Query, max int) int {
	type match struct{ start, end, term int }
	var matches []match
	for t := range Tokens(text) {
		if i, ok := q.at[t.Term]; ok {
			matches = append(matches, match{t.Start, t.End, i})
		}
	}
	if len(matches) == 0 {
		return 0
	}
	// A window of max bytes is at most max characters; for scripts with longer
	// encodings it is a careful guess, which only makes groups denser.
	counts := make(map[int]int)
	best, bestStart, bestEnd, left := 0, matches[0].start, matches[0].end, 0
	for _, m := range matches {
		counts[m.term]++
		for m.end-matches[left].start > max && matches[left].start < m.start {
			gone := matches[left].term
			if counts[gone]--; counts[gone] == 0 {
				delete(counts, gone)
			}
			left++
		}
		if len(counts) > best {
			best, bestStart, bestEnd = len(counts), matches[left].start, m.end
		}
	}
	// Half of what the group leaves free goes before it, from the start of a line or
	// word if there is one.
	lead := (max - utf8.RuneCountInString(text[bestStart:bestEnd])) / 2
	start := bestStart
	for lead > 0 && start > 0 {
		_, n := utf8.DecodeLastRuneInString(text[:start])
		start -= n
		lead--
	}
	if start == 0 {
		return 0
	}
	lineStart := strings.LastIndexByte(text[start:bestStart], '\n') + 1
	if lineStart > 0 {
		return start + lineStart
	}
	if i := strings.IndexFunc(text[start:bestStart], unicode.IsSpace); i >= 0 {
		return start + i
	}
	return start
}

// excerpt returns content from start on one line, blanks joined, in max characters.
func excerpt(content string, start, max int) string {
	var b strings.Builder
	n, blank := 0, false
	if strings.TrimSpace(content[:start]) != "" {
		b.WriteString(ellipsis)
		n++
	}
	began := false
	for at := start; at < len(content); {
		r, size := utf8.DecodeRuneInString(content[at:])
		at += size
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			blank = began
			continue
		}
		need := 1
		if blank {
			need++
		}
		if n+need > max || n+need == max && strings.TrimSpace(content[at:]) != "" {
			return b.String() + ellipsisWithin(n, max)
		}
		if blank {
			b.WriteByte(' ')
		}
		b.WriteRune(r) // U+FFFD for a byte that is not UTF-8
		n += need
		began, blank = true, false
	}
	return b.String()
}

// ellipsisWithin returns the mark if there is room for it.
func ellipsisWithin(n, max int) string {
	if n < max {
		return ellipsis
	}
	return ""
}

// boundary returns the last start of a character at or before i.
func boundary(s string, i int) int {
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}
