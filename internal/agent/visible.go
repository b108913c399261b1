package agent

import (
	"strings"
	"unicode"
)

// visible returns s as it may be printed on a terminal: what moves the cursor, colours or
// hides is a dot. Names and descriptions come from anybody.
func visible(s string) string { return shown(s, "") }

// visibleText is visible for texts of several lines.
func visibleText(s string) string { return shown(s, "\n\t") }

func shown(s, but string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(but, r) {
			return r
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar {
			return '·'
		}
		return r
	}, s)
}
