package secretscan

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxDecodeDepth is how many encodings may lie over each other (SPEC 5).
	maxDecodeDepth = 2
	// minBase64 is the shortest run tried as base64, in characters: twelve bytes of text.
	minBase64 = 16
	// minHex is the shortest run tried as hex, in digits: eight bytes of text.
	minHex = 16
)

// decode returns the lines of v that hold encoded text, each with the line before it, with that text decoded in place;
// or nil if there is none.
func decode(v *variant) *variant {
	s := v.s
	b := &builder{parent: v}
	copied := 0 // offset up to which s is in b, or was left out
	found := false
	parts := encodedParts{s: s, percent: -1, slash: -1}
	for i := 0; i < len(s); {
		from, to, text := parts.next(i)
		if from < 0 {
			break
		}
		if !found || strings.IndexByte(s[copied:from], '\n') >= 0 {
			// A new line: end the one before, start with the line above this one, where a name may stand.
			if found {
				end := copied + strings.IndexByte(s[copied:], '\n')
				b.keep(copied, end)
				b.put("\n", end, end)
				copied = end + 1
			}
			start := strings.LastIndexByte(s[copied:from], '\n') + 1 + copied
			if start > copied {
				start = strings.LastIndexByte(s[copied:start-1], '\n') + 1 + copied
			}
			copied = start
		}
		found = true
		b.keep(copied, from)
		b.put(text, from, to)
		copied, i = to, to
	}
	if !found {
		return nil
	}
	end := strings.IndexByte(s[copied:], '\n')
	if end < 0 {
		end = len(s) - copied
	}
	b.keep(copied, copied+end)
	return b.variant()
}

// encodedParts walks through the encoded parts of s.
type encodedParts struct {
	s string
	// Where the next '%' and '\\' stand, as far as is known: looked for again only once they are behind.
	percent, slash int
}

// minRun is the shortest run of base64 characters that run looks at.
const minRun = min(minHex, minBase64)

// next finds the next encoded part of s at or after i, and what it says. A run of base64 characters is taken to begin
// at i at the earliest.
func (e *encodedParts) next(i int) (from, to int, text string) {
	s := e.s
	escape := e.escape(i)
	for i < len(s) {
		// A run that is long enough and begins before end holds the character there. In prose hardly any other
		// character need be looked at.
		end := i + minRun - 1
		start := min(end+1, len(s))
		if end < len(s) && isBase64(s[end]) {
			for start = end; start > i && isBase64(s[start-1]); {
				start--
			}
		}
		if escape < start {
			if from, to, text, ok := escapes(s, escape); ok {
				return from, to, text
			}
			escape = e.escape(escape + 1)
			continue
		}
		if start > end || end >= len(s) {
			i = start
			continue
		}
		for end++; end < len(s) && isBase64(s[end]); {
			end++
		}
		if from, to, text, ok := run(s, start, end); ok {
			return from, to, text
		}
		i = end
	}
	return -1, -1, ""
}

// escape finds what may begin an escape at or after i; len(s) if nothing does.
func (e *encodedParts) escape(i int) int {
	seek := func(at *int, c byte) {
		if *at >= i {
			return
		}
		if *at = strings.IndexByte(e.s[i:], c); *at < 0 {
			*at = len(e.s)
		} else {
			*at += i
		}
	}
	seek(&e.percent, '%')
	seek(&e.slash, '\\')
	return min(e.percent, e.slash)
}

// run tries s[from:to], a maximal run of base64 characters, as hex and as base64.
func run(s string, from, to int) (int, int, string, bool) {
	for from < to && s[from] == '_' { // emphasis
		from++
	}
	body := s[from:to]
	if len(body) < minHex {
		return 0, 0, "", false
	}
	digits := strings.TrimPrefix(body, "0x")
	if len(digits)%2 == 0 && isHex(digits) {
		if raw, err := hex.DecodeString(digits); err == nil {
			if text, ok := readable(raw); ok {
				return from, to, text, true
			}
		}
		return 0, 0, "", false
	}
	if text, ok := decodeBase64(body); ok {
		for to < len(s) && s[to] == '=' {
			to++
		}
		return from, to, text, true
	}
	// "name/dGhl…": the run took a prefix along. Only the last part can be told apart.
	if cut := strings.LastIndexAny(body, "/-_"); cut > 0 && len(body)-cut-1 >= minBase64 {
		if text, ok := decodeBase64(body[cut+1:]); ok {
			for to < len(s) && s[to] == '=' {
				to++
			}
			return from + cut + 1, to, text, true
		}
	}
	return 0, 0, "", false
}

func decodeBase64(body string) (string, bool) {
	body = strings.TrimRight(body, "_")
	if len(body) < minBase64 || len(body)%4 == 1 {
		return "", false
	}
	// The first four characters decide most cases.
	enc := base64.RawStdEncoding
	if strings.ContainsAny(body, "-_") {
		enc = base64.RawURLEncoding
	}
	var head [3]byte
	if _, err := enc.Decode(head[:], []byte(body[:4])); err != nil {
		return "", false
	}
	if head[0] < ' ' && !isSpace(head[0]) {
		return "", false
	}
	raw, err := enc.DecodeString(body)
	if err != nil {
		return "", false
	}
	return readable(raw)
}

// escapes decodes a stretch that holds "%41", "\x41" or "\u0041", from the first escape on to the last of the run.
func escapes(s string, i int) (from, to int, text string, ok bool) {
	var out []byte
	count := 0
	from = i
	for i < len(s) && !isSpace(s[i]) {
		n, width := escape(s[i:])
		if width == 0 {
			if count == 0 {
				return 0, 0, "", false
			}
			out = append(out, s[i])
			i++
			continue
		}
		out = utf8AppendByteOrRune(out, n, width)
		i += width
		count++
		to = i
	}
	if count == 0 {
		return 0, 0, "", false
	}
	out = out[:len(out)-(i-to)]
	// One odd escape must not hide the others.
	return from, to, strings.Map(func(r rune) rune {
		if r < ' ' && !isSpace(byte(r)) || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(string(out), "?")), true
}

// escape reads one escape at the start of s: its value and its width in bytes, 0 if there is none.
func escape(s string) (value rune, width int) {
	digits := func(from, n int) (rune, int) {
		if len(s) < from+n {
			return 0, 0
		}
		v, err := strconv.ParseUint(s[from:from+n], 16, 32)
		if err != nil || s[from] == '+' {
			return 0, 0
		}
		return rune(v), from + n
	}
	switch {
	case s[0] == '%':
		if variable(s[1:]) {
			return 0, 0
		}
		return digits(1, 2)
	case strings.HasPrefix(s, `\x`):
		return digits(2, 2)
	case strings.HasPrefix(s, `\u`):
		return digits(2, 4)
	}
	return 0, 0
}

// variable reports whether what follows a "%" is the rest of "%NAME%", as Windows writes a variable of its environment.
// The name begins with a letter: an escape that does so is no ASCII character, and its next one has a "%" of its own.
func variable(s string) bool {
	n := 0
	for n < len(s) && n < 64 && (s[n] >= 'A' && s[n] <= 'Z' || s[n] == '_' || isDigit(s[n])) {
		n++
	}
	return n >= 3 && n < len(s) && s[n] == '%' && !isDigit(s[0])
}

// utf8AppendByteOrRune appends a byte escape as a byte, a "\u" escape (six wide) as a character.
func utf8AppendByteOrRune(dst []byte, v rune, width int) []byte {
	if width == 6 {
		return utf8.AppendRune(dst, v)
	}
	return append(dst, byte(v))
}

// readable reports whether decoded bytes are text, and gives it; UTF-16 of ASCII, as PowerShell encodes commands, counts.
func readable(raw []byte) (string, bool) {
	if len(raw) >= 8 && len(raw)%2 == 0 && raw[1] == 0 {
		half := make([]byte, 0, len(raw)/2)
		for i := 0; i < len(raw); i += 2 {
			if raw[i+1] != 0 {
				return "", false
			}
			half = append(half, raw[i])
		}
		raw = half
	}
	for i := 0; i < len(raw); {
		if c := raw[i]; c < utf8.RuneSelf {
			if c < ' ' && !isSpace(c) || c == 0x7f {
				return "", false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError || !unicode.IsGraphic(r) && !invisible(r) {
			return "", false
		}
		i += n
	}
	return string(raw), len(raw) > 0
}
