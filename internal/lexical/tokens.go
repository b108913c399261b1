package lexical

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxTermBytes bounds one term. Longer runs without a space (base64, minified code)
// are nothing that anyone searches for; they are left out.
const maxTermBytes = 64

// Token is a term and the bytes of the text that it stands for.
type Token struct {
	Term       string // normalised: NFKC, lower case, stemmed
	Start, End int    // byte offsets in the text
	// Single marks the one-character terms of a script without spaces that stand
	// beside the two-character ones. A document holds both, so that a query of one
	// character finds something; a longer query uses the pairs alone.
	Single bool
}

// Tokens yields the terms of text in order. Words of spaced scripts are normalised
// and stemmed, and English stop words are left out; an identifier such as
// parseIndexLine yields its parts and itself. A run of Han, Hiragana, Katakana or
// Hangul yields each character (Single) and each pair of neighbours.
func Tokens(text string) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		for at := 0; at < len(text); {
			r, n := utf8.DecodeRuneInString(text[at:])
			kind := kindOf(r)
			if kind == other || kind == mark {
				at += n
				continue
			}
			end, camel := runEnd(text, at+n, kind, r)
			if kind == unspaced && !yieldPairs(text[at:end], at, yield) ||
				kind == word && !yieldWord(text[at:end], at, camel, yield) {
				return
			}
			at = end
		}
	}
}

type kind uint8

const (
	other    kind = iota
	mark          // belongs to the run before it
	word          // of a script with spaces
	unspaced      // Chinese, Japanese, Korean
)

func kindOf(r rune) kind {
	switch {
	case r < utf8.RuneSelf:
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return word
		}
		return other
	case 0x4E00 <= r && r <= 0x9FFF, 0x3041 <= r && r <= 0x3096, 0x30A1 <= r && r <= 0x30FA, 0xAC00 <= r && r <= 0xD7A3:
		return unspaced // nearly all of it, without a look into tables
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul), r == 'ー', r == 'ｰ':
		return unspaced
	case r == 'ﾞ', r == 'ﾟ', unicode.Is(unicode.M, r):
		return mark
	case unicode.In(r, unicode.L, unicode.N):
		return word
	}
	return other
}

// runEnd returns where the run of one kind ends that goes on at text[at:], and
// whether a capital follows a small letter in it.
func runEnd(text string, at int, k kind, last rune) (end int, camel bool) {
	for at < len(text) {
		r, n := utf8.DecodeRuneInString(text[at:])
		if next := kindOf(r); next != k && next != mark {
			break
		}
		camel = camel || 'A' <= r && r <= 'Z' && 'a' <= last && last <= 'z'
		last = r
		at += n
	}
	return at, camel
}

// yieldWord yields a word, and the parts of a camel-case one before it.
func yieldWord(w string, start int, camel bool, yield func(Token) bool) bool {
	if len(w) > maxTermBytes {
		return true
	}
	if camel {
		from := 0
		for i := 1; i <= len(w); i++ {
			if i < len(w) && !(isUpper(w[i]) && !isUpper(w[i-1])) {
				continue
			}
			if term := wordTerm(w[from:i]); term != "" && !yield(Token{Term: term, Start: start + from, End: start + i}) {
				return false
			}
			from = i
		}
	}
	term := wordTerm(w)
	return term == "" || yield(Token{Term: term, Start: start, End: start + len(w)})
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// wordTerm normalises and stems a word; "" for a stop word.
func wordTerm(w string) string {
	ascii := true
	for i := 0; i < len(w); i++ {
		if w[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if !ascii {
		w = norm.NFKC.String(w)
	}
	w = strings.ToLower(w)
	if isStopWord(w) {
		return ""
	}
	return stem(w)
}

// yieldPairs yields the characters and the pairs of a run.
func yieldPairs(run string, start int, yield func(Token) bool) bool {
	if len(run) > maxTermBytes && utf8.RuneCountInString(run) > maxRun {
		// Prose has punctuation; what has none for so long is cut into pieces.
		cut := 0
		for range maxRun {
			_, n := utf8.DecodeRuneInString(run[cut:])
			cut += n
		}
		return yieldPairs(run[:cut], start, yield) && yieldPairs(run[cut:], start+cut, yield)
	}
	end := start + len(run)
	form := run
	if !norm.NFKC.IsNormalString(run) {
		form = norm.NFKC.String(run)
	}
	// at maps an offset in the normalised run to the text; a run that changed under
	// normalisation is taken as a whole.
	at := func(i int) int {
		if form == run {
			return start + i
		}
		return start
	}
	to := func(i int) int {
		if form == run {
			return start + i
		}
		return end
	}
	prev := -1
	for i, r := range form {
		size := utf8.RuneLen(r)
		if prev >= 0 && !yield(Token{Term: form[prev : i+size], Start: at(prev), End: to(i + size)}) {
			return false
		}
		if !yield(Token{Term: form[i : i+size], Start: at(i), End: to(i + size), Single: true}) {
			return false
		}
		prev = i
	}
	return true
}

// maxRun is the length in characters at which a run of an unspaced script is cut.
const maxRun = 4096
