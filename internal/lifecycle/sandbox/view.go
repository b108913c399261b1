package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/dates"
	"github.com/memsvc/memsvc/internal/lifecycle/inject"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
)

// What a model is told that would change what it was not shown.
var (
	errLeftOut = said("lines of this memory are left out, since the guard finds secrets there; leave it, or change other parts with old and new")
	errMark    = said("it repeats a mark that stands for a secret; such a mark may only stay where it was shown")
	errLost    = said("a line that is left out must come again in new, once, as it was shown in old")
	errSeveral = said("several lines are left out there; change one part of it at a time")
	errPart    = said("old: that line was shown otherwise than it is written; give all of it")
	errNotHeld = said("old: the text does not hold it; read the memory again")
)

// view is a memory as a model is shown it: secrets left out, and nothing in it that would
// pass for words of a client or a turn. It knows the lines behind what it shows, so that
// an edit leaves them as they are.
type view struct {
	content string
	text    string   // what is shown, with \n for each line's end
	was     []string // the lines as they are written, without their ends
	ends    []string // \n, \r\n, or "" of the last
	shown   []string // nil = the lines of text are not those of the memory
	hidden  bool     // a line is left out
}

func viewOf(content []byte, secrets model.Secrets) view {
	v := view{content: string(content)}
	masked := secrets.Masked(v.content)
	v.text = inject.Neutral(masked)
	v.hidden = masked != v.content && model.HoldsMark(masked)
	for line := range strings.SplitSeq(v.content, "\n") {
		end := "\n"
		if l, ok := strings.CutSuffix(line, "\r"); ok {
			line, end = l, "\r\n"
		}
		v.was, v.ends = append(v.was, line), append(v.ends, end)
	}
	v.ends[len(v.ends)-1] = strings.TrimSuffix(v.ends[len(v.ends)-1], "\n") // a last \r is nobody's end
	if shown := strings.Split(v.text, "\n"); len(shown) == len(v.was) {
		v.shown = shown
	}
	return v
}

// left reports whether line i is left out.
func (v view) left(i int) bool { return v.shown[i] != v.was[i] && model.IsMark(v.shown[i]) }

// replaced returns the memory with another text for a part of what is shown. The part is
// there once.
func (v view) replaced(old, with string, at time.Time) (string, error) {
	old = strings.ReplaceAll(old, "\r\n", "\n")
	if v.shown == nil {
		return v.replacedAsWritten(old, dates.Absolute(with, at))
	}
	switch n := strings.Count(v.text, old); {
	case n == 0:
		return "", errNotHeld
	case n > 1:
		return "", said(fmt.Sprintf("old: the text holds it %d times; give more of what surrounds it", n))
	}
	begin := strings.Index(v.text, old)
	first, head := v.place(begin)
	last, tail := v.place(begin + len(old))
	// A line that is only touched at its edge stays as it is written.
	from, to := first, last+1
	before, after := v.was[first], v.was[last]
	switch {
	case head == len(v.shown[first]) && first < last:
		from++
	case v.shown[first] == v.was[first]:
		before = before[:head]
	case head == 0:
		before = ""
	default:
		return "", errPart
	}
	switch {
	case tail == 0 && first < last:
		to--
	case v.shown[last] == v.was[last]:
		after = after[tail:]
	case tail == len(v.shown[last]):
		after = ""
	default:
		return "", errPart
	}
	middle, err := v.back(with, at, from, to)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i := range first {
		b.WriteString(v.was[i] + v.ends[i])
	}
	b.WriteString(before + strings.ReplaceAll(middle, "\n", v.end()) + after + v.ends[last])
	for i := last + 1; i < len(v.was); i++ {
		b.WriteString(v.was[i] + v.ends[i])
	}
	return b.String(), nil
}

// replacedAsWritten works on the memory itself, whose lines are not those that are shown.
func (v view) replacedAsWritten(old, with string) (string, error) {
	switch n := strings.Count(v.content, old); {
	case v.hidden:
		return "", errLeftOut
	case n == 0:
		return "", errNotHeld
	case n > 1:
		return "", said(fmt.Sprintf("old: the text holds it %d times; give more of what surrounds it", n))
	}
	return strings.Replace(v.content, old, with, 1), nil
}

// whole returns a text that a model gives for all that stands below the frontmatter, with
// the lines that it was shown otherwise as they are written.
func (v view) whole(body string, at time.Time) (string, error) {
	switch {
	case v.hidden:
		return "", errLeftOut
	case v.shown == nil:
		return dates.Absolute(body, at), nil
	}
	return v.back(body, at, 0, len(v.was))
}

// place returns the line and the byte in it of an offset of what is shown.
func (v view) place(at int) (line, col int) {
	line = strings.Count(v.text[:at], "\n")
	return line, at - strings.LastIndexByte(v.text[:at], '\n') - 1
}

// end is how most lines of the memory end.
func (v view) end() string { return v.ends[0] }

// back gives those lines of a model's text their own words back that were shown otherwise
// and stand between from and to. Each that was left out there comes again, once; relative
// dates of the others become absolute as of at.
func (v view) back(text string, at time.Time, from, to int) (string, error) {
	behind := map[string]string{} // by the forms in which a line was shown
	out, groups := 0, 0
	var marks []string
	for i := from; i < to; i++ {
		if v.left(i) {
			if out++; i == from || !v.left(i-1) || v.shown[i-1] != v.shown[i] {
				groups++
			}
			marks = append(marks, v.shown[i])
			continue
		}
		if v.shown[i] != v.was[i] {
			behind[v.shown[i]] = v.was[i]
		}
		if alone := inject.Neutral(v.shown[i]); alone != v.was[i] { // as part of the text it may have been shown so
			behind[alone] = v.was[i]
		}
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	absolute := strings.Split(dates.Absolute(strings.Join(lines, "\n"), at), "\n")
	used := 0
	for i, l := range lines {
		was, known := behind[l]
		switch {
		case known:
			lines[i] = was
		case model.HoldsMark(l) && !slices.Contains(v.was, l):
			if used == len(marks) || l != marks[used] {
				return "", errMark
			}
			lines[i] = v.was[v.nth(from, used)]
			used++
		case len(absolute) == len(lines):
			lines[i] = absolute[i]
		default:
			lines[i] = dates.Absolute(l, at)
		}
	}
	switch {
	case used < out:
		return "", errLost
	case groups > 1:
		return "", errSeveral // which is which, no mark tells
	}
	return strings.Join(lines, "\n"), nil
}

// nth is the number of the nth line, from 0, that is left out from a line on.
func (v view) nth(from, n int) int {
	for i := from; ; i++ {
		if v.left(i) {
			if n == 0 {
				return i
			}
			n--
		}
	}
}
