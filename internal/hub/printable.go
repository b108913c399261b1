package hub

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable returns text as a terminal shows it and does nothing else: what would move
// the cursor, colour, hide or reorder stands there escaped, as in Go. Names, reasons and
// subjects of credentials come from anybody.
func printable(text string) string {
	plain := func(r rune) bool { return unicode.IsGraphic(r) && r != utf8.RuneError }
	if strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case plain(r) || r == utf8.RuneError:
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
		i += size
	}
	return b.String()
}
