package extract

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

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

// tag is what makes an order polite and a question of its form alone.
var tag = lazily(`(?i)[\s,，]+(?:ok|okay|alright|please|got it|understood|deal|will you|would you|好吗|好嘛|好吧|好不好|行吗|行吧|可以吗|明白吗|懂吗|知道吗|知道了吗)\s*[?？!！.。]*$`)

func withoutTag(s string) string { return tag().ReplaceAllString(s, "") }

// asks are the ends of questions, and their beginnings where the mark is left out.
var asks = lazily(`(?i)(?:[?？]|吗|呢|么)[\s!！"”'’)）]*$|^\s*(?:do|does|did|should|shall|can|could|would|will|why|what|how|when did|who|which|are|is|isn't|aren't|don't you)\s+(?:we|you|i|it|they|the|there|this|that|people|everyone)\b|是不是|要不要|能不能|可不可以|为什么|怎么`)

// isQuestion knows what asks instead of telling.
func isQuestion(s string) bool { return asks().MatchString(simplified(s)) }

// aside is what is not meant, not so, or not the person's own.
var aside = lazily(`(?i)\b(?:haha\w*|lol|lmao|rofl|just kidding|kidding|jk|joking)\b|😂|🤣|😄|😜|;-?\)|哈哈|开玩笑|` +
	`^\s*(?:suppose|supposing|imagine|what if|let's say|say we|hypothetically|assume|assuming|假如|假设|比方说|比如说)\b|^\s*(?:假如|假设|比方说|比如说|如果说)|` +
	`,\s*(?:he|she|they|it|the \w+|my \w+|\w+)?\s*(?:says|said|claims|wrote|writes)\b[^,]*$|\baccording to\b|\bused to say\b`)

func isAside(s string) bool { return aside().MatchString(simplified(s)) }

// now is what holds for the task at hand alone.
var now = lazily(`(?i)\b(?:for now|this time|just (?:this )?once|this once|for the moment|for the time being|at the moment|in the meantime|temporarily|in this session|right now|until (?:we're|i'm|you're) done|until further notice|` +
	`(?:for|in|on|with) (?:this|that) (?:one|task|pr|pull request|mr|branch|ticket|issue|commit|change|file|function|method|test|run|session|conversation|step)(?: only)?|in the (?:[\w.-]+ ){0,3}(?:function|method|class|handler|component|struct|loop|query)|today only|only today)\b|` +
	`这次|这一次|这回|这一回|这轮|这一轮|就这一?次|[仅只]此一次|[仅只]限(?:这|本)次|暂时|临时|目前先|本次|今天先|现在先|(?:这个|本|此|当前)\s*(?:PR|MR|分支|提交|文件|函数|任务)|` +
	`^(?:以后|今后|往后|下次)(?:再|有空|有时间|有机会|可能|也许|或许|的事|打算|再说|看情况|吧)`)

func aboutNow(what string) bool { return now().MatchString(simplified(what)) }

// passing is what limits a rule, but not a fact, to a while. "Never merge until CI is
// green" lasts; "until the demo is over" does not.
var passing = lazily(`(?i)\b(?:(?:for|in|during) this (?:week|sprint|release|milestone|iteration|demo|refactoring|migration|afternoon|morning)|for today|during the (?:demo|freeze|migration|outage|incident)|` +
	`until (?:the |our )?(?:[\w-]+ ){1,3}(?:is|are|has|have) (?:been )?(?:over|out|back|gone|shipped|released|launched)|until (?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|tomorrow|tonight|next \w+|the end of (?:the|this) \w+|then|\d{4}-\d\d-\d\d))\b|` +
	`\balways\b[^,]*\buntil\b|` +
	`这周内|本周内|这个迭代|本迭代|(?:演示|发布会|活动|冻结期?|假期|评审|迁移|故障)结束(?:之?前|以前)|直到[^，,。]{1,24}为止`)

var (
	// untilFirst is a limit that a sentence begins with.
	untilFirst = lazily(`(?i)^until\b[^,，]{2,80}$|^today$|^直到[^，,]{1,24}$`)
	// around are what may stand around a limit that is a clause of its own.
	beforeLimit = lazily(`(?i)^(?:(?:just|only|ok|okay|so|and|please|well|no|yes|but|here)[\s]+|在|就|仅|只|那|那么|但)*$`)
	afterLimit  = lazily(`(?i)^(?:\s+(?:only|alone|here|though|at least|please))*\s*$|^[里上中内]?(?:的话)?\s*$`)
	clauseEnd   = lazily(`[,;:，；：—–]`)
)

// limited reports whether what stands around a rule or fact, in its sentence, limits it to
// the task at hand: a limit after it, or one before it that is a clause of its own. "Skip
// them this time, but always lint" limits something else.
func limited(sentence, what string, rule bool) bool {
	i := strings.LastIndex(sentence, what)
	if i < 0 {
		return false
	}
	before, after := simplified(sentence[:i]), simplified(sentence[i+len(what):])
	if now().MatchString(after) || rule && (passing().MatchString(after) || passing().MatchString(simplified(what))) {
		return true
	}
	clauses := clauseEnd().Split(before, -1)
	return slices.ContainsFunc(clauses, func(c string) bool { return isLimit(strings.TrimSpace(c)) })
}

// isLimit reports whether a clause says nothing but that something holds for now.
func isLimit(clause string) bool {
	if untilFirst().MatchString(clause) {
		return true
	}
	for _, limit := range []*regexp.Regexp{now(), passing()} {
		if m := limit.FindStringIndex(clause); m != nil && beforeLimit().MatchString(clause[:m[0]]) && afterLimit().MatchString(clause[m[1]:]) {
			return true
		}
	}
	return false
}

// feature is what products call the boxes that one ticks.
var feature = lazily(`^(?:密码|账号|帐号|用户名?|登录(?:状态)?|我|选择|设置|了|没|过)(?:$|[”」"'』]|功能|选项|框|按钮|的|这个|还|吗|没)`)

func isFeature(what string) bool { return feature().MatchString(simplified(what)) }

// pointing says only that something else holds from now on.
var pointing = lazily(`^(?:以后|今后)(?:就|都|也)*(?:这样|这么|照这样|照此|如此)[^，,]{0,4}$|(?i)^(?:from now on|always|going forward),? (?:like|do) (?:this|that)[.!]*$`)

func isPointing(what string) bool { return pointing().MatchString(simplified(what)) }

// Words after always and never with which they order nothing.
var (
	noOrder = lazily(`(?i)^(?:always|never)\s+(?:mind|been|heard|said|thought|knew|seen|had|got|did|was|were|is|are|am|has|have|again|ever|a|an|the|in|at|to|i|you|he|she|it|they|we|thanks|thank|happy|good|nice|there|here|so|too|more|less|better|worse|fun|same|saw|went|came|took|made|found|felt|told|gave|quite|really|going|ready|true|been|once|know|seem|happen|happens)\b`)
	// Forms that tell: "never works", "always failed", "always retrying".
	tells  = lazily(`(?i)^(?:always|never)\s+(\w+(?:s|ed|ing))\b`)
	orders = lazily(`(?i)^(?:\w*(?:ss|us|eed|bed)|bring|ping|ring|string|spring|sting|cling|swing|alias|canvas|bias|\w{1,2}s|shed|wed|bed|ted|always|two|spaces|tabs|rows|types|tests|units)$`)
)

var alwaysNever = lazily(`(?i)\b(?:always|never)\b`)

// isCommand reports whether what begins with always or never orders something.
func isCommand(what string) bool {
	if i := alwaysNever().FindStringIndex(what); i != nil {
		what = what[i[0]:]
	}
	if noOrder().MatchString(what) {
		return false
	}
	m := tells().FindStringSubmatch(what)
	return m == nil || orders().MatchString(m[1])
}

// place are the systems outside a repository where things live, and addresses.
var place = lazily(`(?i)https?://|\b(?:linear|jira|notion|confluence|wiki|grafana|datadog|kibana|slack|sentry|figma|miro|pagerduty|trello|asana|dashboards?|runbooks?|google docs?|sharepoint|bugzilla|github issues)\b|飞书|钉钉|语雀|企业微信|面板|看板|知识库|共享盘|网盘`)

// isPlace reports whether a statement says where something is to be found.
func isPlace(what string) bool { return place().MatchString(what) }

var (
	backEnglish = lazily(`(?i)^(?:forget (?:that|this|about that|what i (?:just )?said)|(?:scratch|strike|ignore|disregard) (?:that|this|what i (?:just )?said)|never ?mind that|i take (?:that|it) back|take that back|` +
		`(?:don'?t|do not|no need to|you needn'?t) (?:remember|save|keep|note|store|write down|memori[sz]e) (?:that|this|it)|i misspoke|that was wrong|i was wrong about that)\s*(?:[,.;:!—–-]|$)`)
	backHan = lazily(`^\s*(?:[^，,。]{0,6}[，,]\s*)?(?:当我没说|我收回|收回刚才|刚才(?:说的|那[句条])?(?:不算|作废|说错|错了)|忘(?:了|掉)(?:它|这个|这条|刚才)|(?:这个|这条|刚才那[句条]|那条)?(?:不用|别|不要|不必)记(?:住|了|下来)?(?:这个|这条|它)?(?:了)?[，,。！!]*$|说错了|我说错)`)
)

// takenBack reports whether a sentence takes back what was said before it, and returns
// what it says beyond that. reach is how many messages back it may mean: the one before,
// or, where it speaks of what was said, a few.
func takenBack(s string) (rest string, back bool, reach int) {
	end := -1
	for _, from := range afterLeadIn(s) {
		if m := backEnglish().FindStringIndex(s[from:]); m != nil {
			end = from + m[1]
			break
		}
	}
	if m := backHan().FindStringIndex(simplified(s)); m != nil && end < 0 {
		end = m[1]
	}
	if end < 0 {
		return s, false, 0
	}
	reach = 1
	if ofSaid().MatchString(simplified(s[:end])) {
		reach = maxReach
	}
	return strings.TrimFunc(s[end:], isPunctOrSpace), true, reach
}

// maxReach is how many messages back "what I said" may have been said.
const maxReach = 3

var ofSaid = lazily(`(?i)\bsaid\b|刚才|我说|没说|收回`)

// politely is how an order for the future is asked as a question.
var politely = lazily(`(?is)^\s*(?:and |so |but |ok,? )?(?:can|could|would|will) you (?:please )?((?:from now on|in (?:the )?future|going forward|next time)\b.+?)[?\s]*$|^\s*(?:can|could|would|will) you please ((?:always|never)\b.+?)[?\s]*$`)

// asOrder turns a question that orders into the order.
func asOrder(s string) string {
	if m := politely().FindStringSubmatch(s); m != nil {
		return m[1] + m[2]
	}
	return s
}

// order are words by which what is to be remembered is a rule for working, not a fact.
var order = lazily(`(?i)\b(?:always|never)\b|一律|不要|禁止|每[^，,。]{1,10}都|都要|都必须`)

// isRule reports whether what is to be remembered says how to work.
func isRule(what string) bool { return order().MatchString(simplified(what)) }

// slip is where somebody corrects themselves within a sentence.
var slip = lazily(`(?i)[\s,，…—–-](?:no,? wait|wait,? no|scratch that|i mean|sorry,? i meant?|correction)\b[\s,，:：…—–-]*|(?:等等|等一下|不对)?[，,…\s]*(?:我?说错了|口误|更正(?:一下)?|应该是说)[，,：:。…\s]*`)

// afterSlip returns what stands after the last slip of a sentence; slipped says that
// there was one with words before it.
func afterSlip(s string) (rest string, slipped bool) {
	all := slip().FindAllStringIndex(simplified(s), -1)
	if len(all) == 0 {
		return s, false
	}
	last := all[len(all)-1]
	return strings.TrimSpace(s[last[1]:]), strings.TrimSpace(s[:last[0]]) != ""
}

// revision is how somebody announces that they think otherwise now.
var revision = lazily(`(?i)^\s*(?:\w+[,.!]?\s+){0,2}(?:change of plans?|correction|actually|instead|no longer|on second thought|update|改主意了|更正|改一下|计划有变|计划变了|计划改了)`)

// announced is a change of plan that needs no other word to be one.
var announced = lazily(`(?is)^\s*(?:\w+[,.!]?\s+){0,2}(?:change of plans?|correction|改主意了|更正(?:一下)?|计划有变|计划变了|计划改了)\s*[:：,，.;—–-]+\s*(?:(?:now|we now|please|it'?s now)\s+|现在|改为|改成|改到|换成)*(.+)$`)

func isRevision(s string) bool { return revision().MatchString(simplified(s)) }
