package notes

import (
	"strings"
	"unicode"
)

// Bounds of the notes, in tokens as Tokens counts them (SPEC 8).
const (
	MaxSectionTokens = 2_000
	MaxTokens        = 12_000
)

// section is one of the ten, with the hint that stands below its heading.
type section struct{ Title, Hint string }

// sections returns the ten sections in order (SPEC 8, fixed).
func sections() []section {
	return []section{
		{"Session Title", "Five to ten words by which a person finds this conversation again."},
		{"Current State", "What is being worked on now, what is not done yet, and the next step."},
		{"Task specification", "What was asked for, with the decisions and bounds that came with it."},
		{"Files and Functions", "The files that matter here, and why."},
		{"Workflow", "The commands that are run here, and in which order."},
		{"Errors & Corrections", "What went wrong and what mended it; what the person corrected; what not to try again."},
		{"Codebase and System Documentation", "The parts of the system and how they fit together."},
		{"Learnings", "What worked well, what did not, and what to do next time."},
		{"Key results", "Answers, tables and other results that were asked for, word for word."},
		{"Worklog", "What was done, step by step, a line each."},
	}
}

// Template returns the empty notes.
func Template() string {
	var b strings.Builder
	for i, s := range sections() {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("# " + s.Title + "\n_" + s.Hint + "_\n")
	}
	return b.String()
}

// Document is a template, taken apart at its headings.
type Document struct {
	head  string // before the first heading
	parts []part
}

type part struct {
	title string
	fixed string // the heading's line and the hints below it, as they stand
	body  string
}

// Parse takes notes, or a person's own template, apart. A heading is a line that begins
// with one #; lines in italics right below it are its hints.
func Parse(text string) Document {
	var d Document
	hints := false
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch title, ok := strings.CutPrefix(line, "# "); {
		case ok:
			d.parts = append(d.parts, part{title: strings.TrimSpace(title), fixed: closed(line)})
			hints = true
			continue
		case len(d.parts) == 0:
			d.head += line
			continue
		}
		p := &d.parts[len(d.parts)-1]
		if hints && len(trimmed) > 2 && trimmed[0] == '_' && trimmed[len(trimmed)-1] == '_' {
			p.fixed += closed(line)
			continue
		}
		hints = false
		p.body += line
	}
	for i := range d.parts {
		d.parts[i].body = strings.Trim(d.parts[i].body, "\n")
	}
	return d
}

func closed(line string) string {
	if !strings.HasSuffix(line, "\n") {
		return line + "\n"
	}
	return line
}

// Titles returns the headings in order.
func (d Document) Titles() []string {
	var out []string
	for _, p := range d.parts {
		out = append(out, p.title)
	}
	return out
}

// Body returns what stands in a section.
func (d Document) Body(title string) string {
	for _, p := range d.parts {
		if p.title == title {
			return p.body
		}
	}
	return ""
}

// Set puts text into a section, cut to its bound at the end of a line. No line
// of the text can begin a section. An unknown title
// changes nothing.
func (d *Document) Set(title, text string) {
	for i := range d.parts {
		if d.parts[i].title == title {
			d.parts[i].body = Cut(demoted(strings.Trim(text, "\n")), MaxSectionTokens)
		}
	}
}

// each changes what stands in every section.
func (d *Document) each(change func(string) string) {
	for i := range d.parts {
		d.parts[i].body = change(d.parts[i].body)
	}
}

// demoted moves lines that would be headings in by a blank, which means the same to a
// reader and nothing to Parse; a comment in a piece of code stays one.
func demoted(text string) string {
	if strings.HasPrefix(text, "# ") {
		text = " " + text
	}
	return strings.ReplaceAll(text, "\n# ", "\n # ")
}

// String returns the notes. Where all sections together are too long, the longest are
// cut further, so that none is lost whole.
func (d Document) String() string {
	bound := MaxSectionTokens
	text := d.render(bound)
	for Tokens(text) > MaxTokens && bound > 50 {
		bound = bound * 3 / 4
		text = d.render(bound)
	}
	return text
}

func (d Document) render(bound int) string {
	var b strings.Builder
	b.WriteString(d.head)
	for i, p := range d.parts {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.fixed)
		if p.body != "" {
			b.WriteString(Cut(p.body, bound) + "\n")
		}
	}
	return b.String()
}

// Tokens estimates how many tokens a text has: four characters each in spaced scripts,
// one each in Chinese, Japanese and Korean. Tokenizers differ; bounds need no more.
func Tokens(text string) int {
	quarter := 0
	for _, r := range text {
		if r >= 0x80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			quarter += 4
		} else {
			quarter++
		}
	}
	return (quarter + 3) / 4
}

const cutMark = "[older lines were left out]"

// Cut returns the end of a text that has at most n tokens, from the start of a line on,
// and says so: what was noted last is worth most.
func Cut(text string, n int) string {
	if Tokens(text) <= n {
		return text
	}
	n -= Tokens(cutMark) + 1
	lines := strings.SplitAfter(text, "\n")
	from, used := len(lines), 0
	for from > 0 && used+Tokens(lines[from-1]) <= n {
		from--
		used += Tokens(lines[from])
	}
	if from == len(lines) { // the last line alone is too long
		r := []rune(lines[from-1])
		for Tokens(string(r)) > n {
			r = r[max(len(r)/10, 1):]
		}
		return cutMark + "\n" + string(r)
	}
	return cutMark + "\n" + strings.Join(lines[from:], "")
}
