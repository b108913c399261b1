package extract

import (
	"strings"

	"github.com/memsvc/memsvc/internal/lifecycle/transcript"
)

// maxJoins bounds how often what tags leave behind is read anew: it may be a tag again. A
// text that goes on so is made of tags, and nobody typed it.
const maxJoins = 8

// Typed returns what a person typed of a user message: what clients and we put around
// it, in tags with a meaning, is left out. A word with a dash in brackets that nothing
// closes, such as a placeholder, is what the person typed; of a tag that clients are known
// for, all to the end is theirs. Its work grows with the text alone, since what a
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
	closed map[string]int // where the last closing tag of a word begins
	end    int            // where the last bracket that was looked for closes
	looked int            // bytes that searches went over
}

// ours reports whether a tag is one that clients put around what they say themselves.
func ours(word string) bool {
	switch word {
	case "system-reminder", "task-notification", "environment-context", "environment-details", "user-instructions", "turn-aborted", "persisted-output", "new-diagnostics":
		return true
	}
	for _, begin := range []string{"memsvc-", "command-", "local-command-", "bash-"} {
		if rest, ok := strings.CutPrefix(word, begin); ok {
			switch rest {
			case "memory", "data", "name", "message", "args", "contents", "stdout", "stderr", "caveat", "input":
				return true
			}
		}
	}
	return strings.HasSuffix(word, "-hook")
}

// closings finds the closing tags.
func (u *untagger) closings() {
	u.closed = map[string]int{}
	for at := 0; ; {
		i := u.find(at, "</")
		if i < 0 {
			return
		}
		at = i + 2
		if word := u.tagWord(at); word != "" && u.text[at+len(word)] == '>' {
			u.closed[word] = i
		}
	}
}

// without returns the text without its tags and what they enclose.
func (u *untagger) without() string {
	var out strings.Builder
	last := strings.LastIndexByte(u.text, '>') // no tag goes on behind it
	u.looked += len(u.text)
	u.closings()
	at := 0
	for {
		open := u.find(at, "<")
		if open < 0 || open > last {
			out.WriteString(u.text[at:])
			return out.String()
		}
		word := u.tagWord(open + 1)
		last, closed := u.closed[word]
		if closed = closed && last > open; closed {
			if u.end <= open { // else no other bracket closes before that
				u.end = u.find(open, ">")
			}
			closed = last > u.end
		}
		switch {
		case word == "" || !closed && !ours(word):
			out.WriteString(u.text[at : open+1])
			at = open + 1
		case !closed:
			out.WriteString(u.text[at:open])
			return out.String() // to the end
		default:
			out.WriteString(u.text[at:open])
			at = u.find(u.end+1, "</"+word+">") + len("</"+word+">")
		}
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
