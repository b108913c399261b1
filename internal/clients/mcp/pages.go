package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/memsvc/memsvc/internal/memory"
)

// The bounds of one answer. Clients cut what is longer than some 25,000 tokens, or ask a
// person first; a byte is a third of a token or less, and an answer holds its text twice,
// as the protocol wants it.
const (
	maxPageBytes = 32 << 10
	maxListItems = 200 // unless fewer are asked for
	maxAbout     = 300 // characters of a name or a description in a list
)

// page returns what of a text begins at offset and fits into size bytes, up to a line's end
// if one is near, and where the rest begins; 0 = there is none.
func page(text []byte, offset, size int) (part []byte, next int, err error) {
	if offset < 0 || offset > 0 && offset >= len(text) {
		return nil, 0, fmt.Errorf("offset: the text has %d bytes; begin at 0, or where 'next' of the answer before says", len(text))
	}
	for offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset++
	}
	rest := text[offset:]
	if len(rest) <= size {
		return rest, 0, nil
	}
	rest = rest[:size]
	if i := bytes.LastIndexByte(rest, '\n'); i > size/2 {
		rest = rest[:i+1]
	} else if i := startOf(rest, size-1); i > 0 { // else it is no text
		rest = rest[:i]
	}
	return rest, offset + len(rest), nil
}

// errNotSeen is a part of a text asked for by who saw the parts before it of another one.
var errNotSeen = errors.New("seen: the memory was changed since you read what comes before, or that is of another answer than 'offset'; read it again from offset 0")

// seen names the first offset bytes of a text as part of all of it.
func seen(text []byte, offset int) string {
	return fmt.Sprintf("%d-%.16s", offset, memory.ETagOf(text))
}

// window returns the size bytes of a text from offset on; both ends are moved to the next
// character's beginning, so that windows beside each other make up the text.
func window(text string, offset, size int) string {
	at := func(i int) int {
		for i < len(text) && !utf8.RuneStart(text[i]) {
			i++
		}
		return min(i, len(text))
	}
	return text[at(offset):at(offset+size)]
}

// startOf returns where the character begins that the byte at i belongs to.
func startOf(text []byte, i int) int {
	for i > 0 && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}

// short cuts a text to n characters on one line.
func short(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// few returns the first n of a list, and in words how many are left out.
func few(list []string, n int) []string {
	if len(list) <= n {
		return list
	}
	return append(list[:n:n], fmt.Sprintf("and %d more", len(list)-n))
}
