package recall

import "strings"

// textbook knows a question that a book answers, and hardly a memory: what a thing is, how
// it works, what sets two apart, an exercise, how something is done in a language. Long
// prompts are about the work at hand, whatever they mention.
func textbook(prompt string) bool {
	prose, _ := splitPrompt(prompt)
	asked := strings.ToLower(strings.Join(prose, " "))
	if len(asked) > maxTextbook {
		return false
	}
	for line := range strings.SplitSeq(strings.TrimSpace(textbookWords), "\n") {
		for w := range strings.SplitSeq(line, ", ") {
			if isUnspaced(w) && strings.Contains(asked, w) || !isUnspaced(w) && containsWord(asked, w) {
				return true
			}
		}
	}
	for line := range strings.SplitSeq(strings.TrimSpace(textbookFrames), "\n") {
		begin, end, _ := strings.Cut(line, " … ")
		_, rest, found := strings.Cut(" "+asked, " "+begin+" ")
		if !found {
			continue
		}
		if end != "LANGUAGE" {
			if containsWord(rest, end) {
				return true
			}
			continue
		}
		if i := strings.LastIndex(rest, " in "); i >= 0 {
			for _, l := range strings.Fields(languages) {
				if containsWord(rest[i:], l) {
					return true
				}
			}
		}
	}
	return false
}

// maxTextbook is the longest such question, in bytes.
const maxTextbook = 200

// textbookWords are what a question of a textbook holds, or is about.
const textbookWords = `
what is a, what is an, what's a, what's an, what are the differences, what is the difference, what's the difference, difference between, differences between, what is the syntax
explain what a, explain what an, explain how a, explain how an, explain what this, time complexity, big o, joke
regex, regexp, regular expression, fibonacci, quicksort, quick sort, bubble sort, merge sort, binary tree, binary search, binary heap, linked list, palindrome, prime number
什么是, 什么意思, 什么区别, 的区别, 原理是什么, 怎么理解, 正则表达式, 时间复杂度, 斐波那契, 二叉树, 红黑树, 快速排序, 冒泡排序, 链表, 回文, 质数, 素数, 笑话, 翻译成
`

// textbookFrames are how such a question begins and, after anything, goes on.
const textbookFrames = `
what does … mean
what do … mean
how does a … work
how does an … work
how do … work
translate … to
translate … into
how do i … LANGUAGE
how can i … LANGUAGE
how to … LANGUAGE
write … LANGUAGE
implement … LANGUAGE
`

const languages = "go golang python java javascript typescript rust ruby c c++ bash css"
