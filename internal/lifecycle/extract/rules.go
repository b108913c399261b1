package extract

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsvc/memsvc/internal/lifecycle/dates"
	"github.com/memsvc/memsvc/internal/memory"
)

// Candidate is a memory to be, as the rules or a model propose it.
type Candidate struct {
	Name        string      `json:"name"`
	Type        memory.Type `json:"type"`
	Description string      `json:"description"`
	Body        string      `json:"body"`
}

// trigger is a way of saying that something is to be remembered.
type trigger struct {
	pattern *regexp.Regexp
	typ     memory.Type
	// keep says that the words of the trigger belong to what is remembered.
	keep bool
}

// triggers are tried in order on each sentence; the first that fits decides. They take
// explicit statements only: what merely sounds important is a model's to judge.
func triggers() []trigger {
	t := func(typ memory.Type, keep bool, pattern string) trigger {
		return trigger{regexp.MustCompile(`(?i)^\s*(?:[-*>]\s*)?` + pattern), typ, keep}
	}
	return []trigger{
		t(memory.TypeFeedback, false, `(?:please\s+|also\s+)*(?:remember|note|keep in mind|don'?t forget)(?:\s+this)?(?:\s+that|\s+to|\s*[:,–—-])?\s+((?:always|never|don'?t|do not|stop|avoid|use|prefer)\b.+)$`),
		t(memory.TypeUser, false, `(?:please\s+|also\s+)*(?:remember|note|keep in mind|don'?t forget)(?:\s+that|\s*[:,–—-])?\s+((?:i|i'm|i'd|i've|my)\b.+)$`),
		t(memory.TypeProject, false, `(?:please\s+|also\s+)*(?:remember|keep in mind|don'?t forget|for future reference|make a note|take a note|note for (?:later|the future))(?:\s+this|\s+it)?(?:\s+that|\s*[:,–—-])\s+(.+)$`),
		t(memory.TypeFeedback, true, `((?:from now on|in future|in the future|going forward|next time|for future (?:work|changes|sessions)),?\s+.+)$`),
		t(memory.TypeFeedback, true, `(?:please\s+|and\s+|no[,.]?\s+)*((?:always|never)\s+\w+.+)$`),
		t(memory.TypeFeedback, true, `(?:please\s+|no[,.]?\s+)*((?:don'?t|do not)\s+ever\s+.+)$`),
		t(memory.TypeFeedback, true, `(?:please\s+)?(stop\s+\w+ing\s+.+)$`),
		t(memory.TypeFeedback, false, `(?:请|麻烦|帮我)?(?:记住|记一下|记下来|牢记|别忘了|不要忘记|记得)[，,：:\s]*((?:以后|今后|永远|总是|始终|每次|一律|务必|必须|不要|别|禁止|不能).+)$`),
		t(memory.TypeUser, false, `(?:请|麻烦|帮我)?(?:记住|记一下|记下来|牢记|别忘了|不要忘记|记得)[，,：:\s]*(我(?:是|叫|在|喜欢|不喜欢|习惯|更|的).+)$`),
		t(memory.TypeProject, false, `(?:请|麻烦|帮我)?(?:记住|记一下|记下来|牢记|别忘了|不要忘记)[，,：:\s]*(.+)$`),
		t(memory.TypeFeedback, true, `((?:以后|今后|从现在起|从今以后|下次|往后)[，,：:\s]*.*(?:都|要|别|一律|必须|务必|先|用|不能|禁止|改成).+)$`),
		t(memory.TypeFeedback, true, `((?:永远|绝对|千万)(?:不要|别|不能).+)$`),
		t(memory.TypeFeedback, true, `((?:一律|务必|始终|总是|每次都)(?:要|用|先|使用|写|加|跑|在|把|将|不).+)$`),
	}
}

// Bounds of what the rules take.
const (
	minWords      = 3 // of a statement, or characters over minHan
	minHan        = 5
	maxStatement  = 600 // characters
	maxCandidates = 8   // of one extraction: a stuck session fills no store
	nameChars     = 60
)

// Explicit returns what a person said is to be remembered, in order.
func Explicit(said []Said) []Candidate {
	var out []Candidate
	rules := triggers()
	for _, s := range said {
		if !s.Person {
			continue
		}
		for _, sentence := range sentences(s.Text) {
			if len(out) == maxCandidates {
				return out
			}
			if c, ok := explicit(rules, sentence, s); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

func explicit(rules []trigger, sentence string, s Said) (Candidate, bool) {
	if isQuestion(sentence) {
		return Candidate{}, false
	}
	for _, r := range rules {
		m := r.pattern.FindStringSubmatch(sentence)
		if m == nil {
			continue
		}
		what := strings.TrimSpace(m[1])
		if !says(what) || utf8.RuneCountInString(what) > maxStatement || aboutNow(what) {
			return Candidate{}, false
		}
		what = dates.Absolute(what, s.Time)
		body := what
		if !s.Time.IsZero() {
			body += "\n\nSaid on " + s.Time.Format("2006-01-02") + "."
		}
		return Candidate{Name: nameOf(what), Type: r.typ, Description: short(what, 140), Body: body}, true
	}
	return Candidate{}, false
}

// says reports whether a statement is long enough to mean something later.
func says(what string) bool {
	han := 0
	for _, r := range what {
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			han++
		}
	}
	return han >= minHan || len(strings.Fields(what)) >= minWords
}

// isQuestion knows what asks instead of telling.
func isQuestion(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？") || strings.HasSuffix(s, "吗") || strings.HasSuffix(s, "呢")
}

// aboutNow knows what holds for the task at hand alone.
func aboutNow(what string) bool {
	low := strings.ToLower(what)
	for _, now := range []string{"for now", "this time", "just this once", "for this task", "in this session", "right now", "until we're done", "这次", "这一次", "暂时", "目前先", "本次"} {
		if strings.Contains(low, now) {
			return true
		}
	}
	return false
}

// sentences cuts a text at the ends of sentences and lines; code is left out.
func sentences(text string) []string {
	var out []string
	fence := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fence = !fence
			continue
		}
		if fence {
			continue
		}
		start := 0
		for i, r := range line {
			end := i + utf8.RuneLen(r)
			cut := strings.ContainsRune("。！？；", r)
			if strings.ContainsRune(".!?;", r) {
				next, _ := utf8.DecodeRuneInString(line[end:])
				// v1.2 and foo.go go on; "etc. and" too.
				cut = end == len(line) || next == ' ' && startsSentence(line[end:])
			}
			if cut {
				out = append(out, line[start:end])
				start = end
			}
		}
		if start < len(line) {
			out = append(out, line[start:])
		}
	}
	var kept []string
	for _, s := range out {
		if s = strings.TrimSpace(s); s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

func startsSentence(rest string) bool {
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(rest, " "))
	return unicode.IsUpper(r) || unicode.In(r, unicode.Han) || r == utf8.RuneError
}

// nameOf makes a name of a statement: its first words.
func nameOf(what string) string {
	what = strings.TrimFunc(what, func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSpace(r) })
	if i := strings.IndexFunc(what, func(r rune) bool { return strings.ContainsRune("，,；;:：(（", r) }); i > 20 {
		what = what[:i]
	}
	words := strings.Fields(what)
	if len(words) > 8 {
		what = strings.Join(words[:8], " ")
	}
	r := []rune(what)
	if len(r) > nameChars {
		what = string(r[:nameChars])
	}
	return strings.TrimSpace(what)
}

// short cuts a text to n characters on one line.
func short(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
