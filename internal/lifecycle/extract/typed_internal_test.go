package extract

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// typedSlowly is what Typed says, in the words of its meaning: the tags go with all that
// they enclose, from the first to the last, and again where what is left holds tags.
func typedSlowly(text string) string {
	for range maxJoins {
		next := withoutTags(text)
		if next == text {
			return strings.TrimSpace(text)
		}
		text = next
	}
	return ""
}

func withoutTags(text string) string {
	for i := range len(text) {
		if text[i] != '<' {
			continue
		}
		name, rest, ok := strings.Cut(text[i+1:], ">")
		word, _, _ := strings.Cut(name, " ")
		if !ok || !strings.Contains(word, "-") || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz-") != "" {
			continue
		}
		if _, after, closed := strings.Cut(rest, "</"+word+">"); closed {
			return text[:i] + withoutTags(after)
		} else if ours(word) {
			return text[:i]
		}
	}
	return text
}

// TestAWordInBracketsIsTyped: only what clients are known for needs no end.
func TestAWordInBracketsIsTyped(t *testing.T) {
	for text, want := range map[string]string{
		"use git log <commit-ish> for it. Remember that releases are cut from main.": "",
		"git checkout <branch-name>\nFrom now on always rebase.":                     "",
		"Wrap it in <app-root> and </app-root-x>. Always lint.":                      "",
		"</b-c> stands before <b-c>. Always lint.":                                   "",
		"Always lint. <system-reminder>Never lint.":                                  "Always lint.",
		"Always lint. <user-prompt-submit-hook>Never lint.":                          "Always lint.",
		"Always <x-y a='b'>never</x-y> lint.":                                        "Always  lint.",
		"<bash-input>ls</bash-input><bash-stdout>Never lint.":                        "",
	} {
		if want == "" && !strings.HasPrefix(text, "<bash") {
			want = text
		}
		if got := Typed(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestTypedMeansTheSame(t *testing.T) {
	pieces := []string{"<", ">", "</", "a-b", "-", "a", " ", "\n", "<a-b>", "</a-b>", "<c-d e='f'>", "</c-d>", "<bash-input>", "</bash-input>", "bash-input", "text", "é", "<A-b>", "<b>"}
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
		"a bracket at each end": "<a-b c", "blanks": "< ", "tags of clients": "<bash-input>", "closed within": "<a-b </a-b>",
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
