package extract

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// typedSlowly is what Typed says, in the words of its meaning: while there is a tag, the
// first one goes with all that it encloses.
func typedSlowly(text string) string {
	for {
		open, end := -1, -1
		for i := range len(text) {
			if text[i] != '<' {
				continue
			}
			name, _, ok := strings.Cut(text[i+1:], ">")
			word, _, _ := strings.Cut(name, " ")
			if ok && strings.Contains(word, "-") && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz-") == "" {
				open, end = i, len(text)
				if _, after, closed := strings.Cut(text[i+1+len(name)+1:], "</"+word+">"); closed {
					end = len(text) - len(after)
				}
				break
			}
		}
		if open < 0 {
			return strings.TrimSpace(text)
		}
		text = text[:open] + text[end:]
	}
}

func TestTypedMeansTheSame(t *testing.T) {
	pieces := []string{"<", ">", "</", "a-b", "-", "a", " ", "\n", "<a-b>", "</a-b>", "<c-d e='f'>", "</c-d>", "text", "é", "<A-b>", "<b>"}
	r := rand.New(rand.NewPCG(1, 2))
	tags := 0
	for range 50_000 {
		var b strings.Builder
		for range r.IntN(14) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		got, want := Typed(b.String()), typedSlowly(b.String())
		if got != want {
			t.Fatalf("%q becomes %q, want %q", b.String(), got, want)
		}
		if want != strings.TrimSpace(b.String()) {
			tags++
		}
	}
	if tags < 5_000 {
		t.Errorf("only %d of the texts had tags", tags)
	}
}

// TestTypedLooksAtATextAFewTimes: whatever a text is made of, four times of it are four
// times the work.
func TestTypedLooksAtATextAFewTimes(t *testing.T) {
	for name, piece := range map[string]string{
		"brackets": "<", "open tags": "<a-b ", "tags": "<a-b>", "closed tags": "<a-b>x</a-b>", "closing tags": "</a-b>", "other tags": "<b>", "names": "a-b", "brackets and names": "<a",
		"a bracket at each end": "<a-b c", "blanks": "< ",
	} {
		for _, end := range []string{"", ">", "</a-b>"} {
			work := func(n int) int {
				text := strings.Repeat(piece, n/len(piece)) + end
				_, looked := typedOf(text)
				if looked > 30*len(text) {
					t.Errorf("%s%s: %d bytes are looked at for %d", name, end, looked, len(text))
				}
				return looked
			}
			if small, large := work(64<<10), work(256<<10); large > 5*small {
				t.Errorf("%s%s: four times of it are %d times the work", name, end, large/small)
			}
		}
	}
	// Tags that their removal makes again and again end, too.
	nested := "x"
	for range 40 {
		nested = "<a<c-d></c-d>-b>" + nested + "</a<c-d></c-d>-b>"
	}
	if _, looked := typedOf(strings.Repeat("<a", 10_000) + nested); looked > 30*(20_000+len(nested)) {
		t.Errorf("%d bytes are looked at", looked)
	}
}
