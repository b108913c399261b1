package inject

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// folded is a character as a reader may take it, and where in the text it comes from.
type folded struct {
	r       rune
	at, end int // bytes of the text
}

// foldText returns a text in the form in which it is judged: compatible forms and
// accents taken apart, what cannot be seen left out, lower case, and one sign for each
// kind of dash, bracket, slash, colon and bar.
func foldText(s string) []folded {
	out := make([]folded, 0, len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r < utf8.RuneSelf {
			if r == '\n' || r == '\t' || !unicode.IsControl(r) {
				out = append(out, folded{unicode.ToLower(r), i, i + n})
			}
		} else {
			for _, d := range norm.NFKD.String(s[i : i+n]) {
				if d = foldRune(d); d >= 0 {
					out = append(out, folded{d, i, i + n})
				}
			}
		}
		i += n
	}
	return out
}

// foldRune folds one character that is taken apart already; -1 = it cannot be seen.
func foldRune(r rune) rune {
	if i := strings.IndexRune(lookAlikes, r); i >= 0 && r != utf8.RuneError {
		return rune(plain[utf8.RuneCountInString(lookAlikes[:i])])
	}
	switch {
	case r == '\n' || r == '\t':
		return r
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Cc, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return -1
	case unicode.Is(unicode.Pd, r):
		return '-'
	case unicode.Is(unicode.Pc, r):
		return '_'
	}
	return unicode.ToLower(r)
}

// lookAlikes are signs that pass for the ones of plain at the same places, and that no
// normal form makes the same. The letters are those of the words that matter.
const (
	lookAlikes = "‹〈⟨❬❮❰˂ᐸ⧼⟪" + "›〉⟩❭❯❱˃ᐳ⧽⟫" + "⁄∕⧸╱" + "⧵∖╲" + "꞉∶ː" + "∣ǀ│❘" + "−˗⁃" +
		"аАеЕоОрРсСуУхХіІѕЅһҺмМтТНнԁЈјВΑΕΗΙΜΟΡΤΥαερουνıⲓ"
	plain = "<<<<<<<<<<" + ">>>>>>>>>>" + "////" + `\\\` + ":::" + "||||" + "---" +
		"aaeeooppccyyxxiisshhmmtthhdjjbaehimoptyaepouvii"
)

func word(f []folded) string {
	var b strings.Builder
	for _, r := range f {
		b.WriteRune(r.r)
	}
	return b.String()
}
