package model

import (
	"slices"
	"strings"
)

// Secret is a secret in a text, and the rule that says so: the line where it begins, from
// 1, and the one where it ends; 0 = the same.
type Secret struct {
	Line, End int
	Rule      string
}

// Secrets finds secrets. An error is no verdict. nil finds none.
type Secrets func(text string) ([]Secret, error)

// What stands where something was left out.
const (
	markBegin  = "[secret left out: "
	noVerdict  = markBegin + "not judged]"
	blockBegin = "-----BEGIN"
	blockEnd   = "-----END"
)

// mark is what stands in the place of a line that holds a secret.
func mark(rule string) string { return markBegin + rule + "]" }

// IsMark reports whether a line is one that stands for a secret.
func IsMark(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, markBegin) && strings.HasSuffix(line, "]")
}

// HoldsMark reports whether a text holds what stands for a secret, as a line or within one.
func HoldsMark(text string) bool { return strings.Contains(text, markBegin) }

// Unjudged reports whether a masked text is one of which nothing stayed, since it could
// not be judged.
func Unjudged(masked string) bool { return masked == noVerdict }

// maxFinds bounds how often a text is looked at again: a secret may hide the next one.
const maxFinds = 5

// Masked returns a text in which a mark that names the rule stands in the place of each
// line that holds a secret or a part of one, so that it has as many lines as before. Of what cannot be
// judged, or shows new secrets again and again, nothing stays but a mark. A text is to be
// masked while it is whole: a cut could leave so much of a secret that it is not known
// for one, and still too much.
func (s Secrets) Masked(text string) string {
	if s == nil || strings.TrimSpace(text) == "" {
		return text
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "")
	lines := strings.Split(text, "\n")
	for range maxFinds {
		found, err := s(strings.Join(lines, "\n"))
		switch {
		case err != nil:
			return noVerdict
		case len(found) == 0:
			return strings.Join(lines, "\n")
		}
		for _, f := range found {
			end := max(f.Line, f.End)
			if f.Line < 1 || end > len(lines) {
				return noVerdict
			}
			leaveOut(lines, f.Line-1, end, mark(f.Rule))
		}
	}
	return noVerdict
}

// leaveOut puts the mark in the place of lines[from:to], and of a key in a block of its own
// in that of every line: without the first one nobody would know the rest for a key.
func leaveOut(lines []string, from, to int, mark string) {
	block := false
	for i := from; i < len(lines) && (i < to || block); i++ {
		if begin, end := strings.LastIndex(lines[i], blockBegin), strings.LastIndex(lines[i], blockEnd); begin != end {
			block = begin > end
		}
		lines[i] = mark
	}
}

// Line returns a text in one line, masked, and then cut to n characters.
func (s Secrets) Line(text string, n int) string {
	r := []rune(s.Masked(strings.Join(strings.Fields(text), " ")))
	if len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return string(r)
}

// OnlyMarks reports whether nothing of a masked text is left to read.
func OnlyMarks(masked string) bool {
	marks := 0
	for line := range strings.Lines(masked) {
		switch {
		case IsMark(line):
			marks++
		case strings.TrimSpace(line) != "":
			return false
		}
	}
	return marks > 0
}

// Head returns at most the first n bytes of a text that is not masked yet, without the
// word that the cut goes through: half a token is none that anybody knows.
func Head(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(strings.TrimRightFunc(text[:n], isGraph), "")
}

// Tail returns at most the last n bytes of a text that is not masked yet, from where a
// line begins and no key goes on.
func Tail(text string, n int) string {
	if len(text) <= n {
		return text
	}
	_, tail, _ := strings.Cut(text[len(text)-n:], "\n")
	before := text[:len(text)-len(tail)]
	end, begin := strings.Index(tail, blockEnd), strings.Index(tail, blockBegin)
	switch {
	case end >= 0 && (begin < 0 || begin > end):
		_, tail, _ = strings.Cut(tail[end:], "\n")
	case strings.LastIndex(before, blockBegin) > strings.LastIndex(before, blockEnd): // a key of which nobody sees the end
		for tail != "" {
			line, rest, _ := strings.Cut(tail, "\n")
			if len(strings.Fields(line)) > maxKeyFields || strings.Contains(line, blockBegin) {
				break
			}
			tail = rest
		}
	}
	return strings.ToValidUTF8(tail, "")
}

// maxKeyFields bounds the words of a line of a key: its number or a quotation's mark may
// stand before it.
const maxKeyFields = 2

// isGraph knows what a token is made of: all of ASCII that is seen, and halves of other
// characters.
func isGraph(r rune) bool { return r > ' ' && r < 0x7f || r == '\ufffd' }

// Indented returns a text whose lines but the first are moved in, so that none of them
// passes for one of ours in a list that begins each entry at the margin.
func Indented(text string) string {
	return strings.Join(slices.Collect(strings.Lines(text)), "  ")
}
