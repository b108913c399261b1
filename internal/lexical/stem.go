package lexical

import "strings"

// isStopWord reports whether w, in lower case, is an English word that says nothing
// about what a text is about.
func isStopWord(w string) bool {
	switch w {
	case "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at",
		"be", "because", "been", "before", "being", "but", "by",
		"can", "could", "did", "do", "does", "doing", "for", "from",
		"had", "has", "have", "he", "her", "here", "him", "his", "how",
		"i", "if", "in", "into", "is", "it", "its", "just", "let", "like",
		"may", "me", "might", "more", "most", "my", "no", "nor", "not", "now",
		"of", "on", "only", "or", "other", "our", "out", "over", "please",
		"s", "same", "she", "should", "so", "some", "such", "t",
		"than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "too",
		"up", "us", "very", "was", "we", "were", "what", "when", "where", "which", "while", "who", "why", "will", "with", "would",
		"you", "your":
		return true
	}
	return false
}

// stem cuts English endings off, lightly: it joins the forms of one word (test,
// tests, tested, testing; cache, caching; retry, retries) and leaves words of other
// kinds apart. Only words of small ASCII letters are touched. A stem is a key, not a
// word: it need not be one.
func stem(w string) string {
	if len(w) < 4 || strings.IndexFunc(w, func(r rune) bool { return r < 'a' || r > 'z' }) >= 0 {
		return w
	}
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "xes"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "shes"):
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		w = w[:len(w)-1]
	}
	switch {
	case strings.HasSuffix(w, "ied") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "ing") && hasVowel(w[:len(w)-3]) && len(w) > 5:
		w = undouble(w[:len(w)-3])
	case strings.HasSuffix(w, "eed"):
	case strings.HasSuffix(w, "ed") && hasVowel(w[:len(w)-2]) && len(w) > 4:
		w = undouble(w[:len(w)-2])
	}
	if len(w) > 3 && w[len(w)-1] == 'e' {
		w = w[:len(w)-1]
	}
	return w
}

func hasVowel(s string) bool { return strings.ContainsAny(s, "aeiouy") }

// undouble takes back the doubled consonant of running and stopped, but not of
// passing, calling and buzzing.
func undouble(s string) string {
	n := len(s)
	if n > 3 && s[n-1] == s[n-2] && !strings.ContainsRune("aeioulsz", rune(s[n-1])) {
		return s[:n-1]
	}
	return s
}
