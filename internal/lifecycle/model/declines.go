package model

import "strings"

// Declines reports whether a text begins with the words in which models decline. Such a
// text is an answer to nobody's question, and no memory.
func Declines(text string) bool {
	low := strings.ToLower(strings.TrimSpace(strings.ReplaceAll(text, "’", "'")))
	for _, p := range []string{"i can't", "i cannot", "i'm sorry", "i am sorry", "sorry, i", "i'm unable", "i am unable", "i won't", "as an ai", "抱歉", "对不起", "我无法", "我不能"} {
		if strings.HasPrefix(low, p) {
			return true
		}
	}
	return false
}
