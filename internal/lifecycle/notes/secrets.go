package notes

import "strings"

// Secrets finds secrets: it returns the numbers, from 1, of the lines of a text that hold
// one. An error is no verdict.
type Secrets func(text string) (lines []int, err error)

// leftOut stands where a line with a secret stood.
const leftOut = "[secret left out]"

// maxFinds bounds how often a text is looked at again: a secret may hide the next one.
const maxFinds = 5

// masked returns a text without the lines that hold secrets. What cannot be judged, or
// shows new ones again and again, is left out whole. s nil knows no secrets.
func (s Secrets) masked(text string) string {
	if s == nil || strings.TrimSpace(text) == "" {
		return text
	}
	lines := strings.Split(text, "\n")
	for range maxFinds {
		found, err := s(strings.Join(lines, "\n"))
		switch {
		case err != nil:
			return leftOut
		case len(found) == 0:
			return strings.Join(lines, "\n")
		}
		for _, n := range found {
			if n < 1 || n > len(lines) {
				return leftOut
			}
			leaveOut(lines, n-1)
		}
	}
	return leftOut
}

// leaveOut masks a line, and of a key in a block of its own the whole block: without its
// first line nobody would know the rest for one.
func leaveOut(lines []string, at int) {
	block := strings.Contains(lines[at], "-----BEGIN")
	lines[at] = leftOut
	for i := at + 1; block && i < len(lines); i++ {
		block = !strings.Contains(lines[i], "-----END")
		lines[i] = leftOut
	}
}

// mask leaves secrets out of all that was said and done, while it is whole: a cut could
// leave so much of one that it is not known for one, and still too much.
func (f *Facts) mask(s Secrets) {
	for _, said := range [][]said{f.prompts, f.answers} {
		for i := range said {
			said[i].text = s.masked(said[i].text)
		}
	}
	for i := range f.commands {
		f.commands[i].text = s.masked(f.commands[i].text)
	}
	for i := range f.errors {
		e := &f.errors[i]
		e.what, e.how = s.masked(e.what), s.masked(e.how)
	}
	for _, one := range f.files {
		one.name = s.masked(one.name)
	}
}
