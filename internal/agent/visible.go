package agent

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
)

// visible returns s as it may be printed on a terminal: what moves the cursor, colours or
// hides is a dot. Names and descriptions come from anybody.
func visible(s string) string { return shown(s, "") }

// visibleText is visible for texts of several lines.
func visibleText(s string) string { return shown(s, "\n\t") }

func shown(s, but string) string {
	var before rune
	return strings.Map(func(r rune) rune {
		was := before
		before = r
		if acts(r, was) && !strings.ContainsRune(but, r) {
			return '·'
		}
		return r
	}, s)
}

// acts reports whether a terminal does something with r, after was, other than showing it.
// Bytes that are no text come as utf8.RuneError: to some terminals 0x9b begins a command.
func acts(r, was rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	if (r == nonJoiner || r == joiner) && was > unicode.MaxASCII && unicode.IsGraphic(was) {
		return false // words of several scripts, and emoji, are written with them
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError
}

// screen returns where a command writes its results. Texts are anybody's, and a terminal
// does what they say, so it gets them visibly. A file or another program gets the bytes.
func screen(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && (isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd())) {
		return &visibleWriter{to: w}
	}
	return w
}

// visibleWriter shows what is written to it visibly, with \r\n as \n.
type visibleWriter struct {
	to   io.Writer
	rest []byte // the end of what was written, which the next bytes may complete
}

// Write takes all of p, unless the terminal fails.
func (w *visibleWriter) Write(p []byte) (int, error) {
	all := append(w.rest, p...)
	end := len(all)
	for i := max(0, end-utf8.UTFMax); i < end; i++ {
		if b := all[i]; b == '\r' && i == end-1 || utf8.RuneStart(b) && !utf8.FullRune(all[i:]) {
			end = i
		}
	}
	w.rest = append([]byte(nil), all[end:]...)
	return len(p), w.show(all[:end])
}

// Flush shows what never was completed.
func (w *visibleWriter) Flush() error {
	rest := w.rest
	w.rest = nil
	return w.show(rest)
}

func (w *visibleWriter) show(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	_, err := io.WriteString(w.to, visibleText(strings.ReplaceAll(string(text), "\r\n", "\n")))
	return err
}

// flush ends what goes to a screen.
func flush(w io.Writer) {
	if s, ok := w.(*visibleWriter); ok {
		_ = s.Flush() // nobody is left to be told
	}
}

// escaped returns JSON that means the same and makes a terminal do nothing: what the
// encoder leaves as it is, but a terminal acts upon, is written as an escape.
func escaped(json []byte) []byte {
	out := make([]byte, 0, len(json))
	before := rune(0)
	for len(json) > 0 {
		r, n := utf8.DecodeRune(json)
		if r != '\n' && acts(r, before) && r != utf8.RuneError {
			for _, u := range utf16.AppendRune(nil, r) {
				out = fmt.Appendf(out, `\u%04x`, u)
			}
		} else {
			out = append(out, json[:n]...)
		}
		json, before = json[n:], r
	}
	return out
}
