package inject

import "unicode/utf16"

// Chars counts a text in UTF-16 units: clients are mostly written in languages that
// count so, where a character beyond the basic plane, as an emoji is, counts two. What
// fits into a bound so fits too where characters are counted.
func Chars(s string) int {
	n := 0
	for _, r := range s {
		n += unitsOf(r)
	}
	return n
}

// CutChars returns the longest beginning of a text that has at most n Chars, and ends
// between characters.
func CutChars(s string, n int) string {
	for i, r := range s {
		if n -= unitsOf(r); n < 0 {
			return s[:i]
		}
	}
	return s
}

func unitsOf(r rune) int {
	return max(utf16.RuneLen(r), 1) // a half of a pair counts as what stands for it
}
