package extract

import (
	"bytes"
	"os"
	"strings"
)

func isName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// variables are what is known of those of a script.
type variables struct {
	values map[string]string
	left   *int // bytes that they may add yet
}

// expand puts what is known of variables, and the home directory, into a word. One that
// would grow past its bound is left as it is written: x=$x$x, said often enough, fills any
// memory, and it need never have been run to stand in a conversation.
func (v variables) expand(word string) string {
	out := word
	if rest, ok := strings.CutPrefix(word, "~"); ok && (rest == "" || rest[0] == '/') && v.values["HOME"] != "" {
		out = v.values["HOME"] + rest
	}
	room, grown := min(maxGrown, *v.left), len(out)-len(word)
	out = os.Expand(out, func(name string) string {
		value, ok := v.values[name]
		if !ok {
			value = "$" + name
		}
		if grown += len(value); grown > room {
			return ""
		}
		return value
	})
	if grown > room {
		return word
	}
	*v.left -= grown
	return out
}

// simple is one command of a script.
type simple struct {
	words []string
	to    []string // files that its output goes to
	body  string   // what stands below it, for it to read (<<EOF)
}

// commandsOf takes a script apart, well enough to see what is run on what. What is
// commanded inside of $(…) and of backticks counts as commands, too.
func commandsOf(script string) (out []simple) {
	var c simple
	var word bytes.Buffer
	quoted, redirect := false, false
	input := false    // what comes next is a file, or a text, that is read
	var here []string // words that end what is to be read
	hereOf := 0
	endWord := func() {
		if word.Len() == 0 && !quoted {
			return
		}
		switch {
		case redirect:
			c.to = append(c.to, word.String())
		case !input:
			c.words = append(c.words, word.String())
		}
		word.Reset()
		quoted, redirect, input = false, false, false
	}
	endCommand := func() {
		endWord()
		redirect, input = false, false
		if len(c.words)+len(c.to) > 0 {
			out = append(out, c)
		}
		c = simple{}
	}
	for i := 0; i < len(script); i++ {
		switch ch := script[i]; ch {
		case '\\':
			if i++; i < len(script) && script[i] != '\n' {
				word.WriteByte(script[i])
			}
		case '\'', '"':
			quoted = true
			for i++; i < len(script) && script[i] != ch; i++ {
				if ch == '"' && script[i] == '\\' && i+1 < len(script) {
					i++
				}
				word.WriteByte(script[i])
			}
		case ' ', '\t', '\r':
			endWord()
		case '#':
			if word.Len() > 0 || quoted {
				word.WriteByte(ch)
				continue
			}
			for i+1 < len(script) && script[i+1] != '\n' {
				i++
			}
		case '>':
			if n := word.String(); n == "1" || n == "2" {
				word.Reset() // the number of what is redirected
			}
			endWord()
			for i+1 < len(script) && (script[i+1] == '>' || script[i+1] == '|') {
				i++
			}
			redirect = true
		case '<':
			endWord()
			input = true
			switch {
			case strings.HasPrefix(script[i:], "<<<"): // the word itself is read
				i += 2
			case strings.HasPrefix(script[i:], "<<"):
				if end := firstWord(strings.TrimLeft(strings.TrimPrefix(script[i+2:], "-"), " \t")); end != "" {
					here, hereOf = append(here, strings.Trim(end, `'"\`)), len(out)
				}
				i++
				if i+1 < len(script) && script[i+1] == '-' {
					i++
				}
			}
		case '\n':
			endCommand()
			for _, end := range here {
				body, after := upTo(script[i+1:], end)
				i = len(script) - len(after) - 1
				if hereOf < len(out) {
					out[hereOf].body += body
				}
			}
			here = nil
		case ';', '|', '(', ')', '`':
			endCommand()
		case '&':
			switch {
			case (redirect || input) && word.Len() == 0: // 2>&1, <&3: no file
				for i+1 < len(script) && (script[i+1] >= '0' && script[i+1] <= '9' || script[i+1] == '-') {
					i++
				}
				redirect, input = false, false
			case i+1 < len(script) && script[i+1] == '>': // &> is a redirection
			default:
				endCommand()
			}
		default:
			word.WriteByte(ch)
		}
	}
	endCommand()
	return out
}

func firstWord(s string) string {
	if i := strings.IndexAny(s, " \t\r\n;|&<>)"); i >= 0 {
		s = s[:i]
	}
	return s
}

// upTo returns the lines before the one that is end, and what stands behind that.
func upTo(text, end string) (body, after string) {
	at := 0
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == end {
			return text[:at], text[at+len(line):]
		}
		at += len(line)
	}
	return text, ""
}
