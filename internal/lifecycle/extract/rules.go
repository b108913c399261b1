package extract

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/memsvc/memsvc/internal/lifecycle/dates"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

// Candidate is a memory to be, as the rules or a model propose it.
type Candidate struct {
	Name        string      `json:"name"`
	Type        memory.Type `json:"type"`
	Description string      `json:"description"`
	Body        string      `json:"body"`

	// revises says that the person gave it as a change of what they said before.
	revises bool
	// onlyIf says that it is a memory only if it changes one that is there.
	onlyIf bool
}

// trigger is a way of saying that something is to be remembered. Its first group is what.
type trigger struct {
	pattern *regexp.Regexp
	typ     memory.Type
	// command says that what begins with always or never, so that it may be a description
	// or an idiom instead: "never works", "always a pleasure".
	command bool
	han     bool // it needs Chinese characters
}

// hints are what every English trigger holds one of: most sentences hold none, and need no
// closer look.
func hints() []string {
	return []string{"remember", "mind", "forget", "note", "memor", "always", "never", "ever", "now on", "here", "today on", "future", "forward", "next time", "later", "again", "anymore", "any more", "anytime", "any time", "every", "each time",
		"stop", "rule", "convention", "polic", "order", "requirement", "save", "store", "log", "record", "write", "jot", "when", "before", "after", "don't", "do not", "only", "if ", "keep", "goes for", "holds for", "applies", "in general", "by default"}
}

// mayTrigger says which triggers are worth trying on a sentence.
func mayTrigger(sentence string) (english, han bool) {
	low := strings.ToLower(sentence)
	for _, h := range hints() {
		if strings.Contains(low, h) {
			english = true
			break
		}
	}
	return english, strings.IndexFunc(sentence, func(r rune) bool { return unicode.Is(unicode.Han, r) }) >= 0
}

// ordering returns the trigger as one whose always or never must order something.
func (t trigger) ordering() trigger {
	t.command = true
	return t
}

// What may stand before a trigger without changing what it means: a few words of
// politeness or emphasis, and a rule's title. Anything else, such as who said it, makes
// the sentence somebody else's.
const (
	leadIn = `(?:please|pls|plz|and|also|but|so|then|btw|fyi|ok|okay|no|nope|yes|yeah|right|oh|ah|hey|hm+|well|again|thanks|thank you|good|great|nice|cool|perfect|actually|wait|sorry|look|listen|` +
		`important|seriously|(?:(?:one|two|another|a|last|small|general|new|my) (?:\w+ )?(?:thing|things|request|rule|preference|point|remark|wish|habit)(?: for (?:the future|later|next time))?|for the future|for next time)\s*:|` +
		`once more|one more thing|change of plans?|correction|reminder|heads up|note|rule|our rule|team rule|house rule|convention|policy|i told you|as i said|like i said|in general|generally|` +
		`(?:for|in|on) (?:this|the) (?:whole )?(?:repo|repository|project|codebase|team|service)|here)(?:\b|\s)[\s,.:;!—–-]*`
	leadInHan = `(?:[^，,：:。说写讲问“”"「」]{1,16}[，,：:]\s*|(?:说过|我说|跟你说)[^，,：:。]{0,4}[，,：:]\s*){0,2}(?:另外|请|麻烦|帮我|你|大家|要|得|需要|一定)*`

	askEnglish = `(?:remember|keep in mind|bear in mind|don'?t forget|do not forget|never forget|take note|note)`
	sinkWords  = `(?:remember(?: for (?:later|the future|next time))?|keep in mind|bear in mind|don'?t forget|do not forget|never forget|for future reference|for the record|make a (?:mental )?note|take a note|note to self|note for (?:later|the future)|` +
		`(?:for (?:later|next time|the future)|(?:save|store|note|log|record) (?:this|that)|(?:write|jot|note) (?:this|that) down)|` +
		`(?:save|add|put|write|commit)(?: (?:this|it|that|the following))? (?:to|in|into|down in) (?:your |the |long-term )?memory|memori[sz]e)`
	askHan = `(?:(?:记|存|写|加|放|保存)(?:入|进|到)?(?:你的)?记忆(?:里|库|中)?|记住|记一下|记下来?|记录一下|牢记|谨记|别忘了?|不要忘记?|记得|备忘)`
)

// triggers are tried in order on each sentence; the first that fits decides. They take
// explicit statements only: what merely sounds important is a model's to judge.
var triggers = sync.OnceValue(newTriggers) //nolint:gochecknoglobals // compiled once, never changed

func newTriggers() []trigger {
	t := func(typ memory.Type, pattern string) trigger {
		return trigger{pattern: regexp.MustCompile(`(?is)^` + pattern), typ: typ}
	}
	command := func(pattern string) trigger { return t(memory.TypeFeedback, pattern).ordering() }
	han := func(typ memory.Type, pattern string) trigger {
		return trigger{pattern: regexp.MustCompile(`(?is)^\s*(?:[-*•]\s*)?` + leadInHan + pattern), typ: typ, han: true}
	}
	const that = `(?:\s+(?:this|it))?(?:\s+that\b|\s*一下|\s+to)?\s*[:：,，–—-]*\s*`
	const colon = `(?:\s+(?:this|it))?(?:\s+(?:for|about|with|in|on|as|one|two|three|these|the|a)\b[^:：]{0,40}[:：]|\s+that\b\s*[:：]?|\s*(?:一下)?\s*[:：,，–—-]+)\s*`
	return []trigger{
		t(memory.TypeFeedback, askEnglish+that+`((?:(?:we|you) )?(?:always|never|must|don'?t|do not|stop|avoid|use|prefer)\b.+)$`),
		t(memory.TypeFeedback, askEnglish+` to (\w+ .*\b(?:(?:before|after) (?:you|every|each|any|an?|\w+ing)|whenever|every time|each time|when you|every)\b.+)$`),
		t(memory.TypeUser, `(?:`+sinkWords+`|note)`+that+`((?:i|i'm|i'd|i've|my)\b.+)$`),
		t(memory.TypeProject, `(?:i (?:want|need|would like|'d like) you to )?`+sinkWords+colon+`(.+)$`),
		t(memory.TypeFeedback, `((?:from now on|from here on|from today on|in future|in the future|going forward|moving forward|next time|for future (?:work|changes|sessions))\b,?\s*.+)$`),
		t(memory.TypeFeedback, `(?:[^,;:]{3,120}[,;]\s+)(?:and |so |but |also |please )*((?:from now on|going forward)\b,?\s+.+)$`),
		t(memory.TypeFeedback, `((?:use|run|write|put|keep|prefer|name|call|add|avoid|skip|do|don't|make|stick|ask|check|start|commit|answer|reply|test|format|log|return|only|no|just|let's|leave|treat|build|deploy)\b.+\b(?:from now on|going forward)\b.*)$`),
		command(`((?:always|never)\s+.+)$`),
		command(`(?:i (?:want|need|expect|would like|'d like) you to|you (?:should|must|need to|have to|are to|can|may)|make sure (?:to|you|that you)|be sure to|try to|let's|we should|we must|we want to)\s+((?:always|never)\s+.+)$`),
		t(memory.TypeFeedback, `((?:when|whenever|every time|each time|any ?time|before|after|if)\b[^,，]{3,120},\s*(?:please\s+)?(?:always|never)\s+.+)$`).ordering(),
		t(memory.TypeFeedback, `(by default,?\s+(?:you|we|please|use|run|do|write|put|make|keep|ask|show)\b.+)$`),
		t(memory.TypeFeedback, `((?:whenever|every time|each time|any ?time)\s+(?:you|we)\b[^,，]{3,120},\s*\w+\s+.+)$`),
		t(memory.TypeFeedback, `(we\s+(?:always|never|only|don'?t|do not)\s+.+\b(?:here|around here|in this (?:repo|repository|project|codebase|team|service)|on this team))[.!]*$`),
		t(memory.TypeFeedback, `(.{12,}\b(?:must|should|needs? to|has to|have to|gets?|goes|go|is|are)\b.+,\s*always)[.!]*$`),
		t(memory.TypeFeedback, `((?:don'?t|do not)\s+ever\s+.+)$`),
		t(memory.TypeFeedback, `((?:don'?t|do not)\s+\w+.*(?:,\s*ever|\bunless (?:i|you|we|it'?s|they)?\s*(?:'re |are |am |have |was |were )?(?:asked?|told?|tell|say|confirm\w*|approv\w*)\b.*))[.!]*$`),
		t(memory.TypeFeedback, `(no\s+\w+.{3,80}?\bever\b.*)$`),
		t(memory.TypeFeedback, `((?:don'?t|do not)\s+\w+\s+.*\w+ (?:ever again|again|any ?more))[.!]*$`),
		t(memory.TypeFeedback, `(.{8,}?)[,;:–—-]+\s*(?:(?:that'?s|this is|as) (?:a|the|our) (?:general |standing |global |hard )?(?:rule|convention|requirement|policy)|(?:that|this) (?:goes|holds|applies) (?:for everything|everywhere|always|for (?:all of )?(?:the|this) (?:repo|project|team|codebase)|in general))[.!]*$`),
		t(memory.TypeProject, `(.{12,}?),\s*(?:please\s+)?(?:remember|note|keep|save) (?:that|this|it)(?: in mind| down)?[.!]*$`),
		t(memory.TypeFeedback, `(stop\s+\w+ing\s+.+)$`),
		t(memory.TypeFeedback, `(?:(?:our |team |house |project )?(?:rule|convention|policy|standing order))\s*[:：]\s*(.+)$`),

		han(memory.TypeFeedback, askHan+`[，,：:\s]*((?:以后|今后|永远|总是|始终|每次|一律|务必|必须|不要|别|禁止|不能|千万|(?:always|never|don'?t|avoid|use)\b).+)$`),
		han(memory.TypeUser, askHan+`[，,：:\s]*(我(?:是|叫|在|喜欢|习惯|更|的|不|们?组|负责|刚|对|只|总|一般|平时|比较|每次|从来).+)$`),
		han(memory.TypeProject, askHan+`(?:一点|一件事|这一点)?[，,：:\s]*(.+)$`),
		han(memory.TypeFeedback, `(.{4,}?)[，,；]\s*以后(?:就|都|也)*(?:这样|这么|照这样|照此|如此)[^，,]{0,4}[。！!]*$`),
		han(memory.TypeFeedback, `((?:以后|今后|从今以后|从(?:现在|今天|明天|本周|这周|下周|下个月|今年)(?:开始|起)|下次|往后)[，,：:\s]*.*(?:都|要|别|一律|必须|务必|先|用|不能|禁止|改成|多|少).+)$`),
		han(memory.TypeFeedback, `((?:永远|绝对|千万|再也)(?:不要|别|不能|不许|不可以).+)$`),
		han(memory.TypeFeedback, `((?:一律|务必|始终|总是|每次都)(?:要|用|先|使用|写|加|跑|在|把|将|不).+)$`),
		han(memory.TypeFeedback, `([^，,。：:]{1,16}(?:一律|务必)[^了].+)$`),
		han(memory.TypeFeedback, `([^，,。：:]{1,16}(?:以后|今后|往后|从现在起)(?:都|要|一定|必须|务必|一律|不要|不能|别|只|先|改).+)$`),
		han(memory.TypeFeedback, `(.{6,}?)[，,；]\s*(?:这是|这条是|这个是|作为)?(?:全局|通用|统一|长期|硬性)的?(?:要求|规则|规范|约定|规定)[。！!]*$`),
		han(memory.TypeProject, `(.{6,}?)[，,]\s*(?:请|你)?`+askHan+`(?:这个|这点|这条)?[。！!]*$`),
		han(memory.TypeFeedback, `((?:禁止|严禁|不许|不准)[^了].+)$`),
		han(memory.TypeFeedback, `(?:规定|约定|规范|原则|规矩|团队规定)[：:]\s*(.+)$`),
	}
}

// Bounds of what the rules take.
const (
	minWords      = 3 // of a statement, or characters over minHan
	minHan        = 5
	maxStatement  = 600 // characters
	maxWritten    = 8   // of one extraction: a stuck session fills no store
	maxCandidates = 256 // that are looked at: what is refused, or known, costs no other its place
	nameWords     = 7
	nameChars     = 48 // the index has room for the name, the file's and the fact beside them

	descriptionChars = 140
)

// Explicit returns what a person said is to be remembered, in order. What they took back
// is not among it.
func Explicit(said []Said) []Candidate {
	kept, _, _ := heard(said)
	return slices.DeleteFunc(kept, func(c Candidate) bool { return c.onlyIf })
}

// heard returns what is to be remembered, and what was to be until the person took it
// back: in the same message, in the one that followed, or soon after in so many words.
// topics are what the person wants forgotten of whatever they said before.
func heard(said []Said) (kept, withdrawn []Candidate, topics []string) {
	var begins []int // of each message, how many were kept before it
	for _, s := range said {
		if !s.Person {
			continue
		}
		begins = append(begins, len(kept))
		for _, sentence := range sentences(s.Text) {
			if topic, ok := forgotten(sentence); ok {
				topics = append(topics, topic)
				kept = slices.DeleteFunc(kept, func(c Candidate) bool { return isAbout(c.Body, topic) })
				for i := range begins {
					begins[i] = min(begins[i], len(kept))
				}
				continue
			}
			rest, back, reach := takenBack(sentence)
			if back {
				from := len(kept)
				for i := len(begins) - 1; i >= 0 && i >= len(begins)-1-reach && from == len(kept); i-- {
					from = min(from, begins[i])
				}
				withdrawn = append(withdrawn, kept[from:]...)
				kept = kept[:from]
				sentence = rest
			}
			if sentence == "" || len(kept) == maxCandidates {
				continue // what is taken back still counts
			}
			if c, ok := explicit(sentence, s.Time); ok {
				kept = append(kept, c)
			}
		}
	}
	return kept, withdrawn, topics
}

// explicit makes a memory of a sentence that is meant to be one.
func explicit(sentence string, at time.Time) (Candidate, bool) {
	sentence, revises := afterSlip(sentence)
	sentence = withoutTag(asOrder(sentence))
	if isQuestion(sentence) || isAside(sentence) {
		return Candidate{}, false
	}
	what, typ, ok := triggered(sentence)
	if !ok && what == "" {
		what, typ, ok = furtherOn(sentence)
	}
	onlyIf := false
	if !ok && what == "" {
		if m := announced().FindStringSubmatch(sentence); m != nil {
			what, typ, ok, onlyIf = strings.TrimSpace(m[1]), memory.TypeProject, true, true
		}
	}
	if !ok || !says(what) || utf8.RuneCountInString(what) > maxStatement || aboutNow(what) || isFeature(what) || isPointing(what) {
		return Candidate{}, false
	}
	switch {
	case typ == memory.TypeProject && isRule(what):
		typ = memory.TypeFeedback
	case typ == memory.TypeProject && isPlace(what):
		typ = memory.TypeReference
	}
	if limited(sentence, what, typ == memory.TypeFeedback || onlyIf) {
		return Candidate{}, false
	}
	what = dates.Absolute(what, at)
	body := what
	if !at.IsZero() {
		body += memories.SaidOn + at.Format("2006-01-02") + "."
	}
	return Candidate{Name: nameOf(what), Type: typ, Description: short(what, descriptionChars), Body: body, revises: revises || onlyIf || isRevision(sentence), onlyIf: onlyIf}, true
}

// triggered returns what the first trigger that fits takes of a sentence.
func triggered(sentence string) (what string, typ memory.Type, ok bool) {
	if m := command().FindStringSubmatch(sentence); m != nil {
		if what, typ, ok := triggered(m[1]); ok {
			return what, typ, true
		}
		return m[1], memory.TypeProject, true
	}
	folded := simplified(sentence) // of the same length, so that places agree
	english, han := mayTrigger(folded)
	begins := []int{0}
	if english {
		begins = afterLeadIn(folded)
	}
	for _, r := range triggers() {
		if r.han && !han || !r.han && !english {
			continue
		}
		at := begins
		if r.han {
			at = begins[len(begins)-1:]
		}
		for _, from := range at {
			m := r.pattern.FindStringSubmatchIndex(folded[from:])
			if m == nil {
				continue
			}
			begin := from + m[2]
			if r.han && utf8.RuneCountInString(sentence[:begin]) > maxHanLeadIn {
				begin = 0 // so much before it belongs to what is said
			}
			what = strings.TrimSpace(sentence[begin : from+m[3]])
			return what, r.typ, !r.command || isCommand(what)
		}
	}
	return "", "", false
}

// clause is where a further clause begins, in which a person may come to the point.
var clause = lazily(`(?i)[,;—–]\s*(?:and |but |also |so |then |please )*(remember|keep in mind|don'?t forget|always|never|from now on|going forward|make sure you)\b`)

// byTheWay are words before a clause that make it somebody else's, or no order.
var byTheWay = lazily(`(?i)\b(?:say|says|said|saying|wrote|writes|told|tells|claims?|thinks?|asked|asks|that|which|who|what|why|how|if|when|where|whether|suppose|maybe|perhaps|imagine|because|since|should|would|could|i|it|they|he|she|users?|people|everyone|named|called|test|comment|message|says?|to)\s*[,;:—–]?\s*$|["“”'` + "`" + `]`)

// furtherOn returns what a later clause of a sentence says is to be remembered.
func furtherOn(sentence string) (what string, typ memory.Type, ok bool) {
	for _, m := range clause().FindAllStringSubmatchIndex(sentence, -1) {
		before := sentence[:m[2]]
		if strings.Contains(before, ": ") || byTheWay().MatchString(before) || speech().MatchString(before) {
			continue
		}
		if what, typ, ok := triggered(sentence[m[2]:]); ok {
			return what, typ, true
		}
	}
	return "", "", false
}

// speech tells that somebody is quoted, or that something is only supposed.
var speech = lazily(`(?i)\b(?:says?|said|wrote|writes|told|tells|claims?|thinks?|suppose|maybe|perhaps|imagine|if|whether|what|why|how|named|called|saying)\b`)

// command is the one by which some clients take memories.
var command = lazily(`(?is)^\s*/(?:remember|memori[sz]e)\s+(\S.*)$`)

// maxLeadIn is how many words of politeness and emphasis may stand before a trigger.
const maxLeadIn = 5

// maxHanLeadIn is how many characters before a Chinese trigger say nothing of their own.
const maxHanLeadIn = 10

var (
	leadInWord = lazily(`(?is)^` + leadIn)
	itemMark   = lazily(`^\s*(?:[-*•]\s*)?`)
)

// afterLeadIn returns the places of a sentence where a trigger may begin, the furthest
// first; the last is its beginning.
func afterLeadIn(sentence string) []int {
	at := []int{itemMark().FindStringIndex(sentence)[1]}
	for range maxLeadIn {
		m := leadInWord().FindStringIndex(sentence[at[0]:])
		if m == nil {
			break
		}
		at = append([]int{at[0] + m[1]}, at...)
	}
	return at
}

// nameOf makes a name of a statement: its first words.
func nameOf(what string) string {
	head, rest, list := strings.Cut(what, "\n")
	if list && !says(head) {
		head, _, _ = strings.Cut(rest, "\n") // "a few things:" names nothing
		head = bullet().ReplaceAllString(head, "")
	}
	what = trimmedName(head)
	for _, m := range nameEnd().FindAllStringIndex(what, -1) {
		if m[0] > 20 {
			what = what[:m[0]]
			break
		}
	}
	words := strings.Fields(what)
	what = strings.Join(words[:min(len(words), nameWords)], " ")
	if r := []rune(what); len(r) > nameChars {
		what = string(r[:nameChars])
		if i := strings.LastIndexByte(what, ' '); i > 0 {
			what = what[:i]
		}
	}
	return trimmedName(paired(what))
}

// nameEnd is where a clause ends; the colon of 15:00 and the comma of 1,000 end none.
var nameEnd = lazily(`[，；：（]|[,;:](?:\s|$)|\s\(`)

// trimmedName takes off what begins or ends a sentence, not a quote or a name.
func trimmedName(s string) string {
	return strings.TrimRight(strings.TrimLeft(s, " \t-*•—–:,.，：。"), " \t.,;:!?…。，；：！？、—–-")
}

// paired drops a quote whose other half was cut off.
func paired(s string) string {
	for _, q := range [][2]string{{`"`, `"`}, {"`", "`"}, {"“", "”"}, {"‘", "’"}, {"「", "」"}, {"『", "』"}, {"《", "》"}, {"(", ")"}, {"[", "]"}} {
		open, closing := strings.Count(s, q[0]), strings.Count(s, q[1])
		i := strings.LastIndex(s, q[0])
		if i >= 0 && (q[0] == q[1] && open%2 == 1 || q[0] != q[1] && open > closing) {
			s = s[:i] + s[i+len(q[0]):]
		}
	}
	return s
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
