package model

import (
	"regexp"
	"strings"
)

// declines are the words in which models decline: an apology, or that they cannot do what
// was asked. What a person cannot do, such as to see red, is another matter.
var declines = regexp.MustCompile(`^(?:(?:i'?m|i am) (?:very |really |so )?sorry|sorry, (?:but )?i\b|i apologi[sz]e|as an ai\b|` +
	`(?:i (?:can'?t|cannot|can not|won'?t|will not|must decline|have to decline)|(?:i'?m|i am) (?:unable|not able|not allowed) to)\b[^.]{0,40}?\b(?:help|assist|comply|provide|do (?:that|this|so)|extract|fulfil\w*|continue|creat\w+|writ\w+|process|answer|identify|find|complete|decline|engage|support|discuss|share|generate)\b|` +
	`抱歉|对不起|很遗憾，?我|(?:我|作为(?:一个)?(?:ai|人工智能|语言模型)[^，。]{0,10}，?我)(?:无法|不能|没办法)[^。]{0,12}(?:完成|提供|帮|协助|满足|继续|回答|处理|提取|执行|生成|写|做))`)

// Declines reports whether a text begins with the words in which models decline. Such a
// text is an answer to nobody's question, and no memory.
func Declines(text string) bool {
	return declines.MatchString(strings.ToLower(strings.TrimSpace(strings.ReplaceAll(text, "’", "'"))))
}
