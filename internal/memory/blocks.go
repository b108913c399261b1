package memory

import "bytes"

var (
	commentOpen  = []byte("<!--")
	commentClose = []byte("-->")
)

// lineState says what a line of Markdown is part of.
type lineState uint8

const (
	inText    lineState = iota
	inCode              // a fenced code block, its fences included
	inComment           // begins within an HTML comment, or holds nothing else
)

// blockScanner walks through a Markdown text line by line and knows which lines are
// text. Call start, then next (or strip) with each line after the returned offset.
type blockScanner struct {
	rest    []byte // what has not been walked through
	closes  int    // bytes from the last "-->" to the end; -1 when there is none
	fence   byte   // '`' or '~' within a fenced block
	length  int    // of the opening fence
	comment bool
}

// start returns where the text begins: after a byte order mark and frontmatter.
func (s *blockScanner) start(content []byte) int {
	*s = blockScanner{}
	at := len(content) - len(bytes.TrimPrefix(content, []byte("\ufeff")))
	if fm, ok := splitFrontmatter(content); ok && fm.Present {
		at = fm.BodyStart
	}
	s.rest, s.closes = content[at:], -1
	if i := bytes.LastIndex(s.rest, commentClose); i >= 0 {
		s.closes = len(s.rest) - i
	}
	return at
}

// next says what the line is part of and moves on.
func (s *blockScanner) next(line []byte) lineState {
	fenced := s.fence != 0
	kept, commented := s.strip(line)
	switch {
	case fenced || s.fence != 0:
		return inCode
	case commented && len(bytes.TrimSpace(kept)) == 0:
		return inComment
	}
	return inText
}

// strip returns the line without the HTML comments in it and whether there were any,
// and moves on.
func (s *blockScanner) strip(line []byte) (kept []byte, commented bool) {
	_, n := cutLine(s.rest)
	s.rest = s.rest[n:]
	if !s.comment {
		if s.step(line) {
			return line, false
		}
		if !bytes.Contains(line, commentOpen) {
			return line, false
		}
	}
	for {
		if s.comment {
			commented = true
			i := bytes.Index(line, commentClose)
			if i < 0 {
				return kept, commented
			}
			line, s.comment = line[i+len(commentClose):], false
		}
		i := bytes.Index(line, commentOpen)
		if i < 0 || bytes.Count(line[:i], []byte("`"))%2 == 1 || !s.closed(line[i+len(commentOpen):]) {
			return append(kept, line...), commented
		}
		kept = append(kept, line[:i]...)
		line, s.comment = line[i+len(commentOpen):], true
	}
}

// closed reports whether a comment that opened on this line, whose end is tail, ends
// somewhere. It costs the same for every line, however many comments stay open.
func (s *blockScanner) closed(tail []byte) bool {
	return s.closes >= 0 && s.closes <= len(s.rest) || bytes.Contains(tail, commentClose)
}

// step follows fences and reports whether the line belongs to a fenced block.
func (s *blockScanner) step(line []byte) bool {
	indent := len(line) - len(bytes.TrimLeft(line, " "))
	t := bytes.TrimRight(line[indent:], " \t\r")
	run := 0
	if len(t) > 0 && (t[0] == '`' || t[0] == '~') {
		for run < len(t) && t[run] == t[0] {
			run++
		}
	}
	isFence := indent <= 3 && run >= 3
	if s.fence != 0 {
		if isFence && t[0] == s.fence && run >= s.length && run == len(t) {
			s.fence = 0
		}
		return true
	}
	// An opening fence of backticks has none in its info string.
	if isFence && !(t[0] == '`' && bytes.IndexByte(t[run:], '`') >= 0) {
		s.fence, s.length = t[0], run
		return true
	}
	return false
}
