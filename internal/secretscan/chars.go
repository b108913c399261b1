package secretscan

// Sets of ASCII characters, one bit a character (first those below 64, then the others): the innermost loops of a scan
// ask for nothing else. TestCharacterSets spells them out.
const (
	alnumLo, alnumHi       uint64 = 0x03ff000000000000, 0x07fffffe07fffffe // letters and digits
	base64Lo, base64Hi     uint64 = 0x03ffa80000000000, 0x07fffffe87fffffe // both base64 alphabets
	tokenLo, tokenHi       uint64 = 0x27ffe82000000000, 0x47fffffe87ffffff // what a token is made of
	assignedLo, assignedHi uint64 = 0x27ffe82000000000, 0x07fffffe87fffffe // what a value is made of in gitleaks's assignments
)

func in(lo, hi uint64, c byte) bool {
	if c < 64 {
		return lo>>c&1 != 0
	}
	return c < 128 && hi>>(c-64)&1 != 0
}

func isAlnum(c byte) bool    { return in(alnumLo, alnumHi, c) }
func isBase64(c byte) bool   { return in(base64Lo, base64Hi, c) }
func isToken(c byte) bool    { return in(tokenLo, tokenHi, c) }
func isAssigned(c byte) bool { return in(assignedLo, assignedHi, c) }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return s != ""
}
