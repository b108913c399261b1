package extract

import (
	"strings"

	"github.com/memsvc/memsvc/internal/lifecycle/transcript"
)

// maxJoins bounds how often what tags leave behind is read anew: it may be a tag again. A
// text that goes on so is made of tags, and nobody typed it.
const maxJoins = 8

// Typed returns what a person typed of a user message: what clients and we put around
// it, in tags with a meaning, is left out. Its work grows with the text alone, since what a
// person pasted may be many megabytes long.
func Typed(text string) string {
	typed, _ := typedOf(text)
	return typed
}

// typedOf counts the bytes that were looked at, too.
func typedOf(text string) (typed string, looked int) {
	if strings.Contains(text, transcript.Marker) {
		return "", len(text)
	}
	looked = len(text)
	for range maxJoins {
		s := untagger{text: text}
		next := s.without()
		looked += s.looked
		if next == text {
			return strings.TrimSpace(text), looked
		}
		text = next
	}
	return "", looked
}

// untagger reads a text once, from its beginning to its end.
type untagger struct {
	text   string
	looked int // bytes that searches went over
}

// without returns the text without its tags and what they enclose.
func (u *untagger) without() string {
	var out strings.Builder
	last := strings.LastIndexByte(u.text, '>') // no tag goes on behind it
	u.looked += len(u.text)
	at := 0
	for {
		open := u.find(at, "<")
		if open < 0 || open > last {
			out.WriteString(u.text[at:])
			return out.String()
		}
		word := u.tagWord(open + 1)
		if word == "" {
			out.WriteString(u.text[at : open+1])
			at = open + 1
			continue
		}
		out.WriteString(u.text[at:open])
		end := u.find(open, ">")
		if at = u.find(end+1, "</"+word+">"); at < 0 {
			return out.String() // what is never closed goes to the end
		}
		at += len("</" + word + ">")
	}
}

// find returns where sub stands from a place on, or -1.
func (u *untagger) find(from int, sub string) int {
	i := strings.Index(u.text[from:], sub)
	if i < 0 {
		u.looked += len(u.text) - from
		return -1
	}
	u.looked += i + len(sub)
	return from + i
}

// tagWord returns the name of a tag of clients, a word with a dash in it, that begins at a
// place, or "".
func (u *untagger) tagWord(from int) string {
	end := from
	for end < len(u.text) && (u.text[end] == '-' || u.text[end] >= 'a' && u.text[end] <= 'z') {
		end++
	}
	u.looked += end - from
	word := u.text[from:end]
	if end == len(u.text) || u.text[end] != '>' && u.text[end] != ' ' || !strings.Contains(word, "-") {
		return ""
	}
	return word
}
