package secretscan

import (
	"testing"

	"pgregory.net/rapid"
)

// plainNext is encodedParts.next without its leaps: one character after the other.
func plainNext(s string, i int) (from, to int, text string) {
	for i < len(s) {
		c := s[i]
		switch {
		case c == '%' || c == '\\':
			if from, to, text, ok := escapes(s, i); ok {
				return from, to, text
			}
			i++
		case isBase64(c):
			end := i + 1
			for end < len(s) && isBase64(s[end]) {
				end++
			}
			if from, to, text, ok := run(s, i, end); ok {
				return from, to, text
			}
			i = end
		default:
			i++
		}
	}
	return -1, -1, ""
}

// Leaping over prose finds what walking through it finds.
func TestEncodedPartsLeaps(t *testing.T) {
	pieces := rapid.SampledFrom([]string{
		"a", "word ", "\n", "%", "%41", `\x41`, `\`, "\\u0041", "=", "_", "/", "-", " ", "字",
		"c2VjcmV0IHRleHQgaGVyZQ", "c2VjcmV0IHRleHQgaGVyZQ==", "aGVsbG8gd29ybGQhISE", "68656c6c6f20776f726c64",
		"name/dGhlIHNlY3JldCB0ZXh0", "aGVsbG8gd29ybGQh", "68656c6c6f207776", "abcdefghijklmno", "abcdefghijklmnop", "0x68656c6c6f20776f",
	})
	rapid.Check(t, func(t *rapid.T) {
		var s string
		n := rapid.SampledFrom([]int{0, 1, 3, 10, 40}).Draw(t, "length") // slices drawn without it stay short
		for _, p := range rapid.SliceOfN(pieces, n, n).Draw(t, "pieces") {
			s += p
		}
		parts := encodedParts{s: s, percent: -1, slash: -1}
		for i := 0; i < len(s); {
			from, to, text := plainNext(s, i)
			gotFrom, gotTo, gotText := parts.next(i)
			if gotFrom != from || gotTo != to || gotText != text {
				t.Fatalf("%q from %d: got %d %d %q, want %d %d %q", s, i, gotFrom, gotTo, gotText, from, to, text)
			}
			if from < 0 {
				break
			}
			i = to
		}
	})
}
