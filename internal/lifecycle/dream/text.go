package dream

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// unit is a piece of a memory's body that stands or falls as a whole: a line, or a block
// that means nothing in pieces: fenced code, a table, an item of a list with what hangs
// below it.
type unit struct {
	raw     string // whole lines, with their ends
	heading string // the normal form of the heading above, "" before the first
	kind    unitKind

	said   *statement // what a line says, once it was asked for
	single bool       // that is one sentence alone
}

type unitKind uint8

const (
	lineUnit unitKind = iota
	blankUnit
	headUnit
	blockUnit // of several lines
)

// unitsOf takes a body apart without loss.
func unitsOf(body string) []unit {
	var out []unit
	heading := ""
	lines := strings.SplitAfter(body, "\n")
	if n := len(lines); n > 0 && lines[n-1] == "" {
		lines = lines[:n-1]
	}
	for i := 0; i < len(lines); {
		n := 1
		kind := lineUnit
		trimmed := strings.TrimSpace(lines[i])
		switch {
		case trimmed == "":
			kind = blankUnit
		case isFence(trimmed):
			for n < len(lines)-i && strings.TrimSpace(lines[i+n]) != trimmed[:3] {
				n++
			}
			n = min(n+1, len(lines)-i)
			kind = blockUnit
		case strings.HasPrefix(trimmed, "#") && strings.HasPrefix(strings.TrimLeft(trimmed, "#"), " "):
			kind, heading = headUnit, normal(trimmed)
		case strings.HasPrefix(trimmed, "|"):
			for n < len(lines)-i && strings.HasPrefix(strings.TrimSpace(lines[i+n]), "|") {
				n++
			}
		default:
			for n < len(lines)-i && strings.TrimSpace(lines[i+n]) != "" && indent(lines[i+n]) > indent(lines[i])+1 && !isFence(strings.TrimSpace(lines[i+n])) {
				n++
			}
		}
		if n > 1 {
			kind = blockUnit
		}
		out = append(out, unit{raw: strings.Join(lines[i:i+n], ""), heading: heading, kind: kind})
		i += n
	}
	return out
}

// block is the text of a block by which two are the same: every character counts but for
// line ends and what surrounds it.
func (u unit) block() string { return strings.TrimSpace(strings.ReplaceAll(u.raw, "\r\n", "\n")) }

// ending returns the unit with other line ends, the last one too.
func (u unit) ending(end string) unit {
	u.raw = strings.ReplaceAll(strings.TrimSuffix(strings.ReplaceAll(u.raw, "\r\n", "\n"), "\n")+"\n", "\n", end)
	return u
}

func isFence(line string) bool {
	return strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~")
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// saidOn is the line that says when a statement was made (memories.SaidOn); it is no fact
// of its own.
var saidOn = regexp.MustCompile(`^said on \d{4}-\d{2}-\d{2}$`)

var (
	marker  = regexp.MustCompile(`^\s*(?:[-*+]|\d{1,3}[.)]|#{1,6}|>)\s+`)
	markers = regexp.MustCompile(`^(?:\s*(?:[-*+]|\d{1,3}[.)]|#{1,6}|>)\s+)+`) // however many
)

// normal is what two lines are the same by: without marks, doubled blanks, closing
// punctuation, and case outside of code.
func normal(line string) string {
	line = norm.NFKC.String(marked.ReplaceAllString(line, ""))
	line = line[len(markers.FindString(line)):]
	line = strings.ReplaceAll(strings.ReplaceAll(line, "**", ""), "__", "")
	parts := strings.Split(strings.Join(strings.Fields(line), " "), "`")
	for i := range parts {
		if i%2 == 0 {
			parts[i] = strings.ToLower(parts[i])
		}
	}
	return strings.Trim(strings.Join(parts, "`"), " .,;!。")
}

// gist is a line's words in order without those that carry nothing, so that "Deploys run
// at 5" and "The deploy runs at 5." are one. What is in code keeps every character.
func gist(line string) string {
	n := normal(line)
	var b strings.Builder
	for i, part := range strings.Split(n, "`") {
		if i%2 == 1 {
			b.WriteString("`" + part + "` ")
			continue
		}
		for _, w := range words(part) {
			switch w {
			case "a", "an", "the", "is", "are", "was", "were", "be", "please", "的", "了":
				continue
			}
			b.WriteString(plainForm(w) + " ")
		}
	}
	return strings.TrimSpace(b.String())
}

// words returns the words of lower-case text; marks within one (v1.2, a/b, x-y) are part
// of it, and so that no meaning is lost, signs that stand alone are words too.
func words(s string) []string {
	var out []string
	for _, f := range strings.Fields(s) {
		if w := strings.Trim(f, `.,;:!?"'()[]{}，。；：！？“”‘’（）《》、`); w != "" {
			out = append(out, w)
		}
	}
	return out
}

// plainForm takes an English plural or third person back, if it plainly is one: changes and
// change, touches and touch, policies and policy come to the same.
func plainForm(w string) string {
	if len(w) < 4 || strings.IndexFunc(w, func(r rune) bool { return r < 'a' || r > 'z' }) >= 0 {
		return w
	}
	if strings.HasSuffix(w, "ies") && len(w) > 4 {
		return w[:len(w)-3] + "y"
	}
	if strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is") {
		w = w[:len(w)-1]
	}
	for _, hiss := range []string{"che", "she", "xe", "sse", "ze"} {
		if strings.HasSuffix(w, hiss) {
			return w[:len(w)-1] // the e of the ending, or of cache and size
		}
	}
	return w
}

// sentences cuts a line where a sentence plainly ends. Joined they are the line.
func sentences(line string) []string {
	if strings.Contains(line, "`") {
		return []string{line}
	}
	var out []string
	r := []rune(line)
	from := 0
	for i := 0; i < len(r)-1; i++ {
		end := false
		switch r[i] {
		case '。', '！', '？':
			end = true
		case '.', '!', '?':
			end = i+2 < len(r) && unicode.IsSpace(r[i+1]) && (unicode.IsUpper(r[i+2]) || r[i+2] > 0x2e80) && wordBefore(r, i) > 3
		}
		if end {
			out = append(out, string(r[from:i+1]))
			from = i + 1
		}
	}
	return append(out, string(r[from:]))
}

// wordBefore counts the letters right before a full stop: abbreviations are short.
func wordBefore(r []rune, i int) int {
	n := 0
	for j := i - 1; j >= 0 && (unicode.IsLetter(r[j]) || unicode.IsDigit(r[j])); j-- {
		n++
	}
	return n
}

var keyed = regexp.MustCompile(`^([^:：=` + "`" + `|]{1,60})(?:：\s*|:\s+|\s+=\s+)(\S.*)$`)

// dated is a date that stands for a key: what was said on one day is no value.
var dated = regexp.MustCompile(`^(?:\d[\d\-/. ]*|(?:\d+年)?(?:\d+月)?(?:\d+日)?)$`)

// keyOf returns the X and the value of a line "X: value", in normal form. Dates, and words
// that memories use as labels of whatever they say (why, how to apply, rule, decided), are
// no keys.
func keyOf(line string) (key, value string) {
	m := keyed.FindStringSubmatch(strings.TrimSpace(normal(line)))
	if m == nil {
		return "", ""
	}
	key = strings.TrimSpace(m[1])
	if len(strings.Fields(key)) > 5 || len([]rune(key)) > 40 || strings.ContainsAny(key, ".?!。？！") || dated.MatchString(key) {
		return "", ""
	}
	switch key {
	case "why", "how", "how to apply", "how to use", "apply", "when", "when to apply", "reason", "because", "note", "notes", "example", "examples",
		"e.g", "todo", "see", "see also", "warning", "important", "background", "context", "exception", "update",
		"decision", "decided", "rule", "tip", "hint", "fix", "fixed", "cause", "root cause", "problem", "issue", "known issue", "gotcha", "pitfall", "caveat", "workaround",
		"remember", "never", "always", "don't", "do", "avoid", "fact", "idea", "question", "answer", "learned", "lesson", "summary", "goal", "plan", "also", "but", "and",
		"原因", "为什么", "如何应用", "怎么用", "何时", "何时用", "例", "例如", "注意", "说明", "背景", "参见", "更新", "理由", "适用",
		"决定", "约定", "规则", "提示", "问题", "解决", "解决办法", "修复", "记住", "永远不要", "总是", "坑", "教训", "结论", "计划", "目标", "还有", "另外":
		return "", ""
	}
	return key, m[2]
}
