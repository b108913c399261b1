package secretscan

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The automaton finds what searching for each word finds, in texts of every length:
// also across the middle, where its two lanes meet.
func TestAutomatonFinds(t *testing.T) {
	words := []string{"a", "ab", "bab", "abba", "secret", "cre", "密码", "token", "ken_"}
	a := newAutomaton(words)
	pieces := rapid.SampledFrom(append([]string{"b", "x ", "SECRET", "Tok", "\n", "密", "sec", "ret"}, words...))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 5, 60, 120, 200}).Draw(t, "length") // slices drawn without it stay short
		s := strings.Join(rapid.SliceOfN(pieces, n, n).Draw(t, "pieces"), "")
		var want []found
		lower := strings.ToLower(s)
		for end := 1; end <= len(s); end++ {
			for n, w := range words {
				if strings.HasSuffix(lower[:end], w) {
					want = append(want, found{uint16(n), int32(end)})
				}
			}
		}
		got := a.find(nil, s)
		if !slices.IsSortedFunc(got, func(x, y found) int { return int(x.end - y.end) }) {
			t.Fatalf("%q: ends are not ascending: %v", s, got)
		}
		order := func(x, y found) int {
			if x.end != y.end {
				return int(x.end - y.end)
			}
			return int(x.word) - int(y.word)
		}
		slices.SortFunc(got, order)
		if !slices.Equal(got, want) {
			t.Fatalf("%q: got %v, want %v", s, got, want)
		}
	})
}
