package memory

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
)

// This file reads the head of a memory more loosely than ParseFrontmatter does: a
// person who writes `Type: [user]`, or a fence that no parser takes for one, means a
// private memory all the same. Only the privacy rule reads it; types are never taken
// from it. What counts as a private word, however it is spelled, is in
// privateword.go.

const (
	// minUnclosedHead is how many lines below an opening fence without a closing one
	// are read whatever they look like; after them the head goes on as long as its
	// lines look like one.
	minUnclosedHead = 60
	// maxTypeLines bounds the lines that the value of one type takes.
	maxTypeLines = 20
	// maxFenceBytes bounds a line that is taken for a fence.
	maxFenceBytes = 64
)

// headLine is a line of the head.
type headLine struct {
	text   string // folded by foldHead, without blanks around it
	indent int    // bytes of white space before the text
	at     int    // offset in the content
}

// headUserType returns the line of the head that makes the memory a private one in
// any spelling; 0 when there is none. With kind, a field "kind" counts as the type:
// the memory names none of the four.
func headUserType(content []byte, fm Frontmatter, kind bool) int {
	end := fm.BodyStart
	if !fm.Present || fm.YAMLEnd == fm.YAMLStart || mayBePrivate(content[:fm.YAMLEnd]) {
		var lines []headLine
		if lines, end = looseHead(content); len(lines) > 0 {
			if at := (head{lines, privateAnchors(lines), kind}).privateLine(); at >= 0 {
				return lineAt(content, at)
			}
		}
	}
	for {
		lines, next := secondHead(content, end)
		if next == 0 {
			return 0
		}
		if at := (head{lines, privateAnchors(lines), kind}).privateLine(); at >= 0 {
			return lineAt(content, at)
		}
		end = next
	}
}

// head is what is read of one block at the top of a memory.
type head struct {
	lines   []headLine
	anchors map[string]bool // those that stand for a private word
	kind    bool            // "kind" counts as the type
}

// privateLine returns where the line begins that gives a private type, -1 when there
// is none.
func (h head) privateLine() int {
	for i := 0; i < len(h.lines); i++ {
		if h.namesPrivate(i) {
			return h.lines[i].at
		}
		// What a block scalar says is text.
		if _, value, ok := cutPair(h.lines[i].text); ok && isBlockScalar(value) {
			for under := h.lines[i].indent; i+1 < len(h.lines) && (h.lines[i+1].text == "" || h.lines[i+1].indent > under); {
				i++
			}
		}
	}
	return -1
}

// secondHead reads a further block between fences that stands right behind the one
// that ends at an offset: a person who pastes a memory below a head leaves two. It
// returns the offset behind the block; 0 when there is none, or anything in it is no
// field, since then it is text between two rules.
func secondHead(content []byte, at int) (lines []headLine, end int) {
	if at == 0 || at >= len(content) {
		return nil, 0
	}
	at += skipBeforeHead(content[at:])
	if at >= len(content) {
		return nil, 0
	}
	raw, next := nextHeadLine(content, at)
	if len(raw) > maxFenceBytes {
		return nil, 0
	}
	first := foldLine(raw, at)
	fence := openingFence(first.text)
	if fence == 0 || strings.Trim(first.text, string(rune(fence))) != "" {
		return nil, 0
	}
	limit := next + MaxFrontmatterBytes
	for at = next; at < len(content) && at < limit; at = next {
		raw, next = nextHeadLine(content, at)
		line := foldLine(raw, at)
		if len(raw) <= maxFenceBytes && closesHead(line, fence, false) {
			return lines, next
		}
		if line.text != "" && !looksLikeField(line) {
			return nil, 0
		}
		lines = append(lines, line)
	}
	return nil, 0
}

// nextHeadLine returns the line of content at an offset and where the next one
// begins. A carriage return alone ends a line too.
func nextHeadLine(content []byte, at int) (raw []byte, next int) {
	i := bytes.IndexAny(content[at:], "\r\n")
	if i < 0 {
		return content[at:], len(content)
	}
	next = at + i + 1
	if content[at+i] == '\r' && next < len(content) && content[next] == '\n' {
		next++
	}
	return content[at : at+i], next
}

func foldLine(raw []byte, at int) headLine {
	text := foldHead(raw)
	trimmed := strings.TrimLeftFunc(text, unicode.IsSpace)
	return headLine{text: strings.TrimRightFunc(trimmed, unicode.IsSpace), indent: len(text) - len(trimmed), at: at}
}

// looseHead returns the lines of the head of content: those between the fences, or
// those at the top that look like fields. end is the offset behind it; 0 when there is
// none, or its closing fence is missing.
func looseHead(content []byte) (lines []headLine, end int) {
	at := skipBeforeHead(content)
	raw, next := nextHeadLine(content, at)
	first := foldLine(raw, at)
	fence := byte(0)
	if len(raw) <= maxFenceBytes || bytes.HasPrefix(raw, []byte("--- ")) {
		fence = openingFence(first.text)
	}
	if fence == 0 {
		for at < len(content) {
			raw, next := nextHeadLine(content, at)
			line := foldLine(raw, at)
			if !looksLikeField(line) {
				break
			}
			lines = append(lines, line)
			at = next
		}
		if len(lines) == 0 {
			at = 0
		}
		return lines, at
	}
	exact := first.text == "---" && first.indent == 0
	if rest := strings.TrimLeft(first.text, "-+"); rest != "" { // "--- {type: user}"
		lines = append(lines, headLine{text: strings.TrimSpace(rest), at: at})
	}
	closed, below := false, false // below: a closing fence is known to follow
	for at = next; at < len(content) && !closed; {
		raw, next := nextHeadLine(content, at)
		line := foldLine(raw, at)
		if len(raw) <= maxFenceBytes && closesHead(line, fence, exact) {
			closed = slices.ContainsFunc(lines, func(l headLine) bool { return l.text != "" })
			if !closed && exact { // "---" twice: the second one opens
				lines = lines[:0]
			}
		} else if len(lines) >= minUnclosedHead && !below && !looksLikeField(line) {
			if below = closesBelow(content, next, fence, exact); !below {
				break
			}
			lines = append(lines, line)
		} else {
			lines = append(lines, line)
		}
		at = next
	}
	if !closed {
		at = 0
	}
	return lines, at
}

// skipBeforeHead returns where the head begins: after byte order marks, blank lines,
// comments and directives.
func skipBeforeHead(content []byte) int {
	for at := 0; at < len(content); {
		if rest := content[at:]; bytes.HasPrefix(rest, []byte("<!--")) {
			end := bytes.Index(rest, []byte("-->"))
			if end < 0 {
				return at
			}
			at += end + len("-->")
			continue
		}
		raw, next := nextHeadLine(content, at)
		line := foldLine(raw, at)
		switch {
		case line.text == "", line.text[0] == '%':
			at = next
		case strings.HasPrefix(line.text, "<!--") && bytes.Index(raw, []byte("<!--")) > 0:
			at += bytes.Index(raw, []byte("<!--"))
		default:
			return at
		}
	}
	return len(content)
}

// openingFence returns the character of the fence that a folded line is, 0 if it is
// none: three or more of it, and perhaps YAML after a blank.
func openingFence(text string) byte {
	if text == "" || text[0] != '-' && text[0] != '+' {
		return 0
	}
	rest := strings.TrimLeft(text, text[:1])
	if len(text)-len(rest) < 3 || rest != "" && (text[0] == '+' || rest[0] != ' ') {
		return 0
	}
	return text[0]
}

// closesHead reports whether a line closes a head. One that opens as ParseFrontmatter
// has it closes only as ParseFrontmatter has it, so that nothing it reads is left out.
func closesHead(line headLine, fence byte, exact bool) bool {
	if exact {
		return line.text == "---" && line.indent == 0
	}
	return len(line.text) >= 3 && strings.Trim(line.text, string(rune(fence))) == ""
}

func closesBelow(content []byte, at int, fence byte, exact bool) bool {
	for at < len(content) {
		raw, next := nextHeadLine(content, at)
		if len(raw) <= maxFenceBytes && closesHead(foldLine(raw, at), fence, exact) {
			return true
		}
		at = next
	}
	return false
}

// looksLikeField reports a line that may belong to a head: a field, what is nested
// below one, a comment.
func looksLikeField(line headLine) bool {
	if line.text == "" {
		return false
	}
	if _, _, ok := cutPair(line.text); ok {
		return true
	}
	return line.indent > 0 || strings.HasPrefix(line.text, "- ") || line.text[0] == '{' || line.text[0] == '}' || line.text[0] == ']'
}

// maxKey bounds the words before a colon that are taken for a key, in bytes.
const maxKey = 48

// cutPair splits "key: value" or "key = value". The key comes without list marks,
// quotes and emphasis.
func cutPair(text string) (key, value string, ok bool) {
	i := strings.IndexAny(text, ":=")
	if i <= 0 || i > maxKey {
		return "", "", false
	}
	key = strings.Trim(text[:i], " \t-?*_`\"'{[(")
	if at := strings.LastIndexByte(key, ' '); at >= 0 && (key[0] == '!' || key[0] == '&') {
		key = strings.Trim(key[at+1:], "\"'") // a tag or an anchor before it
	}
	if key == "" || strings.Count(key, " ") > 2 {
		return "", "", false
	}
	return key, strings.TrimSpace(text[i+1:]), true
}

// isTypeKey reports whether a key is the type, alone or as the last part of a path.
func (h head) isTypeKey(key string) bool {
	switch strings.TrimSpace(key[strings.LastIndexByte(key, '.')+1:]) {
	case "type", "types", "memory_type", "memory-type", "memory type", "memorytype":
		return true
	case "kind", "memory_kind", "memory-kind", "memorykind":
		return h.kind
	}
	return false
}

func isBlockScalar(value string) bool {
	return value != "" && (value[0] == '|' || value[0] == '>') && strings.Trim(value[1:], "+-0123456789") == ""
}

// namesPrivate reports whether a type is given in line i, and holds a private word.
func (h head) namesPrivate(i int) bool {
	lines := h.lines
	text := lines[i].text
	key, value, ok := cutPair(text)
	if !ok {
		if k, found := strings.CutPrefix(text, "? "); found && h.isTypeKey(strings.Trim(k, " \"'")) && i+1 < len(lines) {
			v, _ := strings.CutPrefix(lines[i+1].text, ":")
			return holdsPrivate(h.anchors, strings.TrimSpace(v))
		}
		return strings.HasPrefix(text, "{") && h.flowNamesPrivate(text[1:])
	}
	if text[0] == '{' && h.flowNamesPrivate(text[1:]) {
		return true
	}
	if !h.isTypeKey(key) {
		return strings.HasPrefix(value, "{") && h.flowNamesPrivate(value[1:])
	}
	if holdsPrivate(h.anchors, value) {
		return true
	}
	if value != "" && !isBlockScalar(value) && strings.IndexByte("[{&!#", value[0]) < 0 {
		return false
	}
	flow := strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{")
	for j := i + 1; j < len(lines) && j <= i+maxTypeLines; j++ {
		next := lines[j]
		if next.text == "" {
			continue
		}
		if !flow && next.indent <= lines[i].indent && next.text[0] != '-' {
			return false
		}
		if holdsPrivate(h.anchors, strings.TrimLeft(next.text, "- ")) {
			return true
		}
		if flow && strings.ContainsAny(next.text, "]}") {
			return false
		}
	}
	return false
}

// flowNamesPrivate looks for a type in the rest of a flow mapping.
func (h head) flowNamesPrivate(rest string) bool {
	for part := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r == ',' || r == '{' || r == '}' }) {
		if key, value, ok := cutPair(strings.TrimSpace(part)); ok && h.isTypeKey(key) && holdsPrivate(h.anchors, value) {
			return true
		}
	}
	return false
}

// holdsPrivate reports whether a value is a private word, or a list or mapping with
// one. An alias stands for what its anchor names.
func holdsPrivate(anchors map[string]bool, value string) bool {
	if at := strings.Index(value, " #"); at >= 0 {
		value = value[:at]
	}
	split := func(r rune) bool { return strings.ContainsRune(",;|/[]{}():", r) }
	for item := range strings.FieldsFuncSeq(value, split) {
		item = strings.TrimSpace(item)
		for item != "" && (item[0] == '!' || item[0] == '&') {
			_, rest, found := strings.Cut(item, " ")
			if !found {
				break
			}
			item = strings.TrimSpace(rest)
		}
		if item = strings.Trim(item, " \t\"'`*_,-"); isPrivateWord(item) {
			return true
		}
	}
	name, alias := strings.CutPrefix(strings.Trim(value, "[] "), "*")
	return alias && anchors[name]
}

// privateAnchors returns the names of the anchors that stand for a private word.
func privateAnchors(lines []headLine) map[string]bool {
	var anchors map[string]bool
	for _, l := range lines {
		_, rest, found := strings.Cut(l.text, "&")
		if name, value, _ := strings.Cut(rest, " "); found && holdsPrivate(nil, value) {
			if anchors == nil {
				anchors = map[string]bool{}
			}
			anchors[name] = true
		}
	}
	return anchors
}
