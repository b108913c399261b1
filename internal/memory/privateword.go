package memory

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// privateWords returns the words that, given as a memory's type, say that it is about
// a person: the type itself, its plural, and what people call it instead.
func privateWords() []string { return []string{string(TypeUser), "users", "personal", "private"} }

// isPrivateWord reports whether a folded text is one of them.
func isPrivateWord(folded string) bool {
	return slices.Contains(privateWords(), folded)
}

// isPrivateType reports whether a type as written makes a memory a private one.
func isPrivateType(s string) bool {
	return s != "" && isPrivateWord(strings.TrimSpace(foldHead([]byte(s))))
}

// mayBePrivate reports whether a private word stands in a head once it is folded:
// a look that costs little, and is enough for nearly every memory.
func mayBePrivate(head []byte) bool {
	ascii := true
	for i, c := range head {
		switch {
		case c >= 0x80:
			ascii = false
		case c|0x20 == 'u' || c|0x20 == 'p':
			for _, w := range privateWords() {
				if i+len(w) <= len(head) && strings.EqualFold(string(head[i:i+len(w)]), w) {
					return true
				}
			}
		}
	}
	if ascii {
		return false
	}
	folded := foldHead(head)
	return slices.ContainsFunc(privateWords(), func(w string) bool { return strings.Contains(folded, w) })
}

// nameIsUser reports a file name that says user: "user_…" and "user-…" in any case,
// or "user.md".
func nameIsUser(path Path) bool {
	base := foldHead([]byte(path.Base()))
	for _, end := range [...]string{"_", "-", ".md"} {
		if rest, ok := strings.CutPrefix(base, string(TypeUser)+end); ok && (end != ".md" || rest == "") {
			return true
		}
	}
	return false
}

// foldHead returns b as it looks: in compatibility form and lower case, letters of
// other scripts that look like Latin ones written as these, without accents and
// without the characters that nobody sees.
func foldHead(b []byte) string {
	ascii := true
	for _, c := range b {
		if c >= 0x80 {
			ascii = false
			break
		}
	}
	if ascii {
		return strings.ToLower(string(b))
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.In(r, unicode.Cf, unicode.Mn, unicode.Variation_Selector), r == '\u115f', r == '\u1160', r == '\u3164':
			return -1
		}
		return latin(r)
	}, norm.NFKD.String(string(b)))
}

// latin returns the small Latin letter that r looks like, of those in the words that
// the privacy rule compares ("user", "personal", "private", "memory", "type", "kind");
// other characters come back in lower case. The choice follows Unicode's list of
// confusable characters (UTS 39).
func latin(r rune) rune {
	if r < 0x80 {
		return unicode.ToLower(r)
	}
	// Capitals whose small letter looks like another one.
	switch r {
	case 'Υ', 'У', 'Ү', 'Ⲩ':
		return 'y'
	case 'Ν', 'Ⲛ':
		return 'n'
	case 'Ѵ':
		return 'v'
	case 'Ի':
		return 'r'
	}
	low := unicode.ToLower(r)
	switch low {
	case 'а', 'α', 'ɑ', 'ᴀ', 'ⲁ', 'ꭺ':
		return 'a'
	case 'ԁ', 'ժ', 'ᴅ', 'ꭰ':
		return 'd'
	case 'е', 'є', 'ε', 'ҽ', 'ᴇ', 'ꬲ', 'ⲉ', '℮', 'ꭼ':
		return 'e'
	case 'і', 'ι', 'ı', 'ɩ', 'ɪ', 'ⲓ', 'ꭵ':
		return 'i'
	case 'к', 'κ', 'ᴋ', 'ⲕ':
		return 'k'
	case 'ӏ', 'ⅼ', 'ʟ':
		return 'l'
	case 'м', 'ᴍ', 'ⲙ':
		return 'm'
	case 'п', 'ո', 'ռ', 'ɴ', 'η':
		return 'n'
	case 'о', 'ο', 'օ', 'ᴏ', 'ⲟ', 'σ':
		return 'o'
	case 'р', 'ρ', 'ᴘ', 'ⲣ', 'ꮲ':
		return 'p'
	case 'г', 'ᴦ', 'ʀ', 'ɾ', 'ꭇ', 'ꭈ', 'ⲅ', 'ꮁ':
		return 'r'
	case 'ѕ', 'ꜱ', 'ƽ', 'ꮪ':
		return 's'
	case 'т', 'τ', 'ᴛ', 'ⲧ':
		return 't'
	case 'υ', 'ս', 'ʋ', 'ᴜ', 'ц', 'ꭎ', 'ꭒ':
		return 'u'
	case 'ν', 'ѵ', 'ᴠ', 'ⱱ':
		return 'v'
	case 'у', 'ү', 'ұ', 'γ', 'ʏ', 'ყ':
		return 'y'
	}
	return low
}
