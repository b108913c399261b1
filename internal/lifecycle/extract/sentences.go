package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	// bullet begins an item of a list.
	bullet = lazily(`^\s*(?:[-*•]|\d{1,2}[.)、．]|[（(]?[一二三四五六七八九十]{1,2}[）)、])\s*`)
	// mailHead begins a mail that was pasted.
	mailHead = lazily(`(?i)^\s*(?:from|sent|subject|date|to|cc|发件人|收件人|主题|日期)\s*[:：]\s*\S`)
	// setting is a line of a configuration; one alone may be a person's.
	setting = lazily(`^\s*[\w.-]{2,30}\s*[:=]\s*\S`)
	// introduces is a line after which comes a text that is not the person's own.
	introduces = lazily(`(?i)(?:\b(?:this|these|following|below|here'?s|here is|text|docs?|document|e?mail|message|logs?|output|error|stack ?trace|spec|rfc|page|article|snippet|says?|said|wrote|summari[sz]e|translate|explain)\b|这段|这封|这样|下面|如下|日志|报错|原文|翻译|总结|文档|邮件|输出).*[:：]\s*$`)
)

// sentences cuts what a person wrote themselves at the ends of sentences and lines. Code,
// logs, quotes and texts they pasted are left out. A line that begins a list with a
// trigger is one sentence with its items.
func sentences(text string) []string {
	lines := ownLines(text)
	var out []string
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if strings.HasSuffix(line, "?") || strings.HasSuffix(line, "？") {
			for i+1 < len(lines) && bullet().MatchString(lines[i+1]) {
				i++ // what a question is about
			}
		}
		if strings.HasSuffix(line, ":") || strings.HasSuffix(line, "：") {
			end := i + 1
			for end < len(lines) && bullet().MatchString(lines[end]) {
				end++
			}
			if end > i+1 {
				out = append(out, list(line, lines[i+1:end])...)
				i = end - 1
			}
			continue // without a list it says nothing by itself
		}
		out = append(out, cut(line)...)
	}
	return withReasons(out)
}

// list returns a list as one sentence if its last words before it are a trigger's, else
// its items.
func list(head string, items []string) []string {
	before := cut(head)
	last := before[len(before)-1]
	if isLimit(simplified(strings.TrimRight(last, ":： "))) {
		return before[:len(before)-1] // "for this PR:" limits all its items
	}
	whole := last
	for _, item := range items {
		whole += "\n" + strings.TrimSpace(item)
	}
	if _, _, ok := triggered(whole); ok {
		return append(before[:len(before)-1], whole)
	}
	out := before
	for _, item := range items {
		out = append(out, cut(bullet().ReplaceAllString(item, ""))...)
	}
	return out
}

// ownLines returns the lines of a message that the person wrote, not pasted.
func ownLines(text string) []string {
	var out []string
	fence := false
	if rest, ok := strings.CutPrefix(text, "# "); ok && !strings.Contains(rest, "\n") {
		text = rest // by a hash some clients take memories
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"):
			fence = !fence
		case fence || trimmed == "" || strings.HasPrefix(trimmed, ">"):
		case (strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")) && !bullet().MatchString(line):
		case mailHead().MatchString(line):
			return out
		case setting().MatchString(line) && (i > 0 && setting().MatchString(lines[i-1]) || i+1 < len(lines) && setting().MatchString(lines[i+1])):
		default:
			out = append(out, line)
			if introduces().MatchString(line) {
				if _, _, ok := triggered(trimmed + " x x x"); !ok {
					return out
				}
			}
		}
	}
	return out
}

// maxAbbreviation is how many bytes the longest one has with its stop and what stands
// before it: how much of a sentence is looked at, at each of its stops.
const maxAbbreviation = 12

// abbreviations end in a full stop that ends no sentence.
var abbreviations = lazily(`(?i)\b(?:etc|e\.g|i\.e|vs|approx|resp|incl|no|nr|mr|mrs|dr|st|fig|cf|al)\.$`)

// cut cuts a line at the ends of its sentences.
func cut(line string) []string {
	var out []string
	start := 0
	for i, r := range line {
		if i < start {
			continue
		}
		end := i + utf8.RuneLen(r)
		ends := strings.ContainsRune("。！？", r)
		if strings.ContainsRune(".!?", r) {
			next, _ := utf8.DecodeRuneInString(line[end:])
			// v1.2 and foo.go go on.
			ends = end == len(line) || next == ' ' && (r != '.' || !abbreviations().MatchString(line[max(start, end-maxAbbreviation):end]))
		}
		if ends {
			out = append(out, strings.TrimSpace(line[start:end]))
			start = end
		}
	}
	if rest := strings.TrimSpace(line[start:]); rest != "" || len(out) == 0 {
		out = append(out, rest)
	}
	return out
}

// reason begins a sentence that says why the one before holds.
var reason = lazily(`(?i)^(?:because|since|otherwise|the reason|why:|reason:|that'?s because|this is because|因为|否则|不然|原因)`)

// withReasons joins a sentence with the reason that follows it.
func withReasons(in []string) []string {
	var out []string
	for _, s := range in {
		if n := len(out); n > 0 && reason().MatchString(s) {
			out[n-1] += " " + s
			continue
		}
		out = append(out, s)
	}
	return out
}

// traditional are characters of the triggers as they are written in the traditional
// script, and the simplified ones; both take three bytes.
var traditional = strings.NewReplacer(
	"記", "记", "後", "后", "從", "从", "現", "现", "開", "开", "遠", "远", "總", "总", "務", "务", "別", "别", "請", "请", "說", "说", "這", "这",
	"個", "个", "嗎", "吗", "們", "们", "錄", "录", "謹", "谨", "煩", "烦", "幫", "帮", "備", "备", "絕", "绝", "對", "对", "許", "许", "嚴", "严",
	"規", "规", "約", "约", "則", "则", "範", "范", "團", "团", "隊", "队", "來", "来", "過", "过", "錯", "错", "歡", "欢", "習", "习", "慣", "惯",
	"負", "负", "責", "责", "剛", "刚", "沒", "没", "為", "为", "還", "还", "話", "话", "寫", "写",
)

// simplified returns s with these characters simplified; its length stays.
func simplified(s string) string { return traditional.Replace(s) }

func isPunctOrSpace(r rune) bool { return unicode.IsPunct(r) || unicode.IsSpace(r) }
