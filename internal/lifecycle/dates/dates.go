// Package dates turns relative dates of a text into absolute ones, in English and
// Chinese: "yesterday" means nothing a week later. It is pure and deterministic.
package dates

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// day is how a day is written.
const day = "2006-01-02"

// Absolute returns text with the relative dates that are beyond doubt replaced by
// absolute ones, as of at; a zero at changes nothing. Code, fenced or between backticks,
// is left alone, and so is a weekday without last, this or next, which may be any.
func Absolute(text string, at time.Time) string {
	if at.IsZero() || text == "" {
		return text
	}
	var b strings.Builder
	fence := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fence = !fence
			b.WriteString(line)
			continue
		}
		if fence {
			b.WriteString(line)
			continue
		}
		parts := strings.Split(line, "`")
		for i := range parts {
			if i%2 == 0 || i == len(parts)-1 && len(parts)%2 == 0 {
				parts[i] = known.line(parts[i], at)
			}
		}
		b.WriteString(strings.Join(parts, "`"))
	}
	return b.String()
}

// rule replaces what a pattern matches; "" leaves the match as it is.
type rule struct {
	pattern *regexp.Regexp
	to      func(m []string, at time.Time) string
}

type rules []rule

func (rs rules) line(s string, at time.Time) string {
	for _, r := range rs {
		s = r.pattern.ReplaceAllStringFunc(s, func(match string) string {
			if to := r.to(r.pattern.FindStringSubmatch(match), at); to != "" {
				return to
			}
			return match
		})
	}
	return s
}

const (
	englishDays  = `monday|tuesday|wednesday|thursday|friday|saturday|sunday`
	englishCount = `a|an|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,3}`
	chineseCount = `[一二两三四五六七八九十]{1,3}|\d{1,3}`
	unit         = `day|week|month|year`
)

// known are the relative dates that are beyond doubt.
var known = newRules() //nolint:gochecknoglobals // compiled once, never changed

func newRules() rules {
	re := regexp.MustCompile
	plus := func(n int) func([]string, time.Time) string {
		return func(_ []string, at time.Time) string { return at.AddDate(0, 0, n).Format(day) }
	}
	return rules{
		{re(`(?i)\bthe day after tomorrow\b`), plus(2)},
		{re(`(?i)\bthe day before yesterday\b`), plus(-2)},
		{re(`(?i)\byesterday\b`), plus(-1)},
		{re(`(?i)\btomorrow\b`), plus(1)},
		{re(`(?i)\b(?:today|tonight|this (?:morning|afternoon|evening))\b`), plus(0)},
		{re(`(?i)\b(last|this|next|coming) (` + englishDays + `)\b`), func(m []string, at time.Time) string {
			return weekday(at, english(m[2]), side(m[1])).Format(day)
		}},
		{re(`(?i)\b(last|this|next) (week|month|year)\b`), func(m []string, at time.Time) string {
			return period(at, strings.ToLower(m[2]), side(m[1]))
		}},
		{re(`(?i)\bin (` + englishCount + `) (` + unit + `)s?\b`), func(m []string, at time.Time) string {
			return "on " + shift(at, count(m[1]), m[2])
		}},
		{re(`(?i)\b(` + englishCount + `) (` + unit + `)s? (ago|from now)\b`), func(m []string, at time.Time) string {
			n := count(m[1])
			if strings.EqualFold(m[3], "ago") {
				n = -n
			}
			return "on " + shift(at, n, m[2])
		}},
		{re(`大后天`), plus(3)}, {re(`大前天`), plus(-3)}, {re(`后天`), plus(2)}, {re(`前天`), plus(-2)},
		{re(`昨天|昨日|昨晚`), plus(-1)}, {re(`明天|明日|明晚`), plus(1)}, {re(`今天|今日|今晚`), plus(0)},
		{re(`(上|这|本|下)个?(?:周|星期|礼拜)([一二三四五六日天末])`), func(m []string, at time.Time) string {
			if m[2] == "末" {
				return ""
			}
			return weekOf(at, side(m[1])).AddDate(0, 0, strings.Index("一二三四五六日天", m[2])/len("一")%7-dayFix(m[2])).Format(day)
		}},
		{re(`(上|这|本|下)个?(周|星期|月)(末|底|初)?`), func(m []string, at time.Time) string {
			if m[3] != "" {
				return ""
			}
			kind := "week"
			if m[2] == "月" {
				kind = "month"
			}
			return chinesePeriod(at, kind, side(m[1]))
		}},
		{re(`(` + chineseCount + `)个?(天|日|周|星期|月|年)(之?后|以后|之?前|以前)`), func(m []string, at time.Time) string {
			n := chinese(m[1])
			if n == 0 {
				return ""
			}
			if strings.Contains(m[3], "前") {
				n = -n
			}
			kind := map[string]string{"天": "day", "日": "day", "周": "week", "星期": "week", "月": "month", "年": "year"}[m[2]]
			return shift(at, n, kind)
		}},
	}
}

// dayFix: 日 and 天 are both the seventh day, at the seventh and eighth place.
func dayFix(d string) int {
	if d == "天" {
		return -6
	}
	return 0
}

func side(word string) int {
	switch strings.ToLower(word) {
	case "last", "上":
		return -1
	case "next", "下":
		return 1
	}
	return 0
}

func english(name string) time.Weekday {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.EqualFold(d.String(), name) {
			return d
		}
	}
	return time.Sunday
}

// weekday returns the day that "last Tuesday" (before at), "this Tuesday" (of at's week,
// from Monday on) or "next Tuesday" (after at) means.
func weekday(at time.Time, d time.Weekday, side int) time.Time {
	switch side {
	case -1:
		back := (int(at.Weekday())-int(d)+6)%7 + 1
		return at.AddDate(0, 0, -back)
	case 1:
		ahead := (int(d)-int(at.Weekday())+6)%7 + 1
		return at.AddDate(0, 0, ahead)
	}
	return weekOf(at, 0).AddDate(0, 0, (int(d)+6)%7)
}

// weekOf returns the Monday of the week that lies side weeks from at.
func weekOf(at time.Time, side int) time.Time {
	return at.AddDate(0, 0, -(int(at.Weekday())+6)%7+7*side)
}

func period(at time.Time, kind string, side int) string {
	switch kind {
	case "week":
		return "the week of " + weekOf(at, side).Format(day)
	case "month":
		return firstOf(at).AddDate(0, side, 0).Format("January 2006")
	}
	return strconv.Itoa(at.Year() + side)
}

func chinesePeriod(at time.Time, kind string, side int) string {
	if kind == "week" {
		return weekOf(at, side).Format(day) + " 那一周"
	}
	t := firstOf(at).AddDate(0, side, 0)
	return fmt.Sprintf("%d年%d月", t.Year(), t.Month())
}

func firstOf(at time.Time) time.Time {
	return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, at.Location())
}

func shift(at time.Time, n int, kind string) string {
	switch strings.ToLower(kind) {
	case "week":
		return at.AddDate(0, 0, 7*n).Format(day)
	case "month":
		return at.AddDate(0, n, 0).Format(day)
	case "year":
		return at.AddDate(n, 0, 0).Format(day)
	}
	return at.AddDate(0, 0, n).Format(day)
}

func count(word string) int {
	switch w := strings.ToLower(word); w {
	case "a", "an":
		return 1
	default:
		for i, name := range []string{"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"} {
			if w == name {
				return i + 1
			}
		}
		n, _ := strconv.Atoi(w) // three digits at most
		return n
	}
}

// chinese reads the numbers up to ninety-nine; 0 is none of them.
func chinese(word string) int {
	if n, err := strconv.Atoi(word); err == nil {
		return n
	}
	digit := map[rune]int{'一': 1, '二': 2, '两': 2, '三': 3, '四': 4, '五': 5, '六': 6, '七': 7, '八': 8, '九': 9}
	n, last := 0, 0
	for i, r := range []rune(word) {
		switch d, ok := digit[r]; {
		case ok && last != 0:
			return 0 // two digits beside one another are no number
		case ok:
			last = d
		case r == '十' && i == 0:
			n = 10
		case r == '十' && n == 0:
			n, last = 10*last, 0
		default:
			return 0
		}
	}
	return n + last
}
