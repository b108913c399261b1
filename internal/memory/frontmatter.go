package memory

import (
	"bytes"
	"strings"
	"time"
)

// MaxFrontmatterBytes bounds what is parsed as frontmatter. Real ones have a few
// hundred bytes; more is reported as unparseable, so that no text can buy much work.
const MaxFrontmatterBytes = 16 << 10

// The rules of frontmatter, as a Violation names them.
const (
	// RuleFrontmatterUnclosed: an opening fence without a closing one.
	RuleFrontmatterUnclosed = "frontmatter-unclosed"
	// RuleFrontmatterInvalid: the text between the fences is no YAML mapping, has a
	// key twice, or uses anchors and aliases.
	RuleFrontmatterInvalid = "frontmatter-invalid"
	// RuleFrontmatterTooLong: over MaxFrontmatterBytes.
	RuleFrontmatterTooLong = "frontmatter-too-long"
)

// Field is a piece of the text between the fences. Together, in order, the Raws are
// that text, byte by byte.
type Field struct {
	// Key is "name" for a field of the top level, "metadata.type" for one below
	// metadata, and "" for comments and blank lines between fields. The header line
	// of a block "metadata:" is a field of its own, without its children. Below
	// any other key nothing is split.
	Key string
	// Raw is the whole lines of the field, nested ones and line ends included. It
	// shares the content's memory.
	Raw []byte
	// Value is the scalar's text, unquoted; "" for a list or a mapping.
	Value string
	// Offset is where Raw begins in the content; Line is its first line, from 1.
	Offset, Line int
}

// Frontmatter is the YAML head of a memory (SPEC 2.1), in either generation. The
// zero Frontmatter is that of a file without one.
type Frontmatter struct {
	Present bool // there is an opening fence and a closing one

	Name        string // name, else title
	Description string
	Type        string // type, else metadata.type; as written, perhaps outside the set
	NodeType    string // metadata.node_type
	// OriginSessionID is metadata.originSessionId.
	OriginSessionID string
	// Modified is metadata.modified, else modified, else date; zero when missing or
	// not a time. A time without zone is taken as UTC.
	Modified time.Time
	Pinned   bool // metadata.pinned, else pinned

	// Fields are the pieces of the text between the fences, unknown fields too.
	Fields []Field

	// YAMLStart and YAMLEnd are the byte range between the fences; the body begins
	// at BodyStart. content[:YAMLStart] is a byte order mark if any and the opening
	// fence, content[YAMLEnd:BodyStart] the closing fence.
	YAMLStart, YAMLEnd, BodyStart int
}

// Field returns the field with this key.
func (f *Frontmatter) Field(key string) (Field, bool) {
	for _, field := range f.Fields {
		if field.Key == key && key != "" {
			return field, true
		}
	}
	return Field{}, false
}

// ParseFrontmatter reads the head of content and returns the body after it. It
// tolerates a byte order mark, CRLF, blanks after a fence or a colon, and a closing
// fence at the end of the file. A content that does not begin with a fence has no
// frontmatter and is all body.
//
// What cannot be parsed is an ErrInvalidContent whose violation gives the line, and
// no path, since none is known here; the
// Frontmatter then has its offsets, and no fields. Without a closing fence the whole
// content is body. Nothing is ever rewritten: the results point into content.
func ParseFrontmatter(content []byte) (fm Frontmatter, body []byte, err error) {
	fm, found := splitFrontmatter(content)
	if !found {
		return Frontmatter{}, content, nil
	}
	if !fm.Present {
		return Frontmatter{}, content, frontmatterError(RuleFrontmatterUnclosed, 1,
			"the frontmatter has no closing fence; write --- alone on a line after it")
	}
	body = content[fm.BodyStart:]
	block := content[fm.YAMLStart:fm.YAMLEnd]
	if len(block) > MaxFrontmatterBytes {
		return fm, body, frontmatterError(RuleFrontmatterTooLong, 1, "the frontmatter is too long; move text below it")
	}
	fields, plain := scanPlainFields(block, fm.YAMLStart)
	var flow map[string]string
	if !plain {
		if fields, flow, err = parseYAMLFields(block, fm.YAMLStart); err != nil {
			return fm, body, err
		}
	}
	fm.Fields = fields
	fm.readKnown(flow)
	return fm, body, nil
}

func frontmatterError(rule string, line int, msg string) error {
	return &Error{
		Reason:     ReasonInvalidContent,
		Message:    "frontmatter",
		Violations: []Violation{{Line: line, Rule: rule, Message: msg}},
	}
}

// splitFrontmatter finds the fences. found says that there is an opening one.
func splitFrontmatter(content []byte) (fm Frontmatter, found bool) {
	rest := bytes.TrimPrefix(content, []byte("\ufeff"))
	first, n := cutLine(rest)
	if !isFence(first) {
		return Frontmatter{}, false
	}
	at := len(content) - len(rest) + n
	fm.YAMLStart = at
	for at < len(content) {
		line, n := cutLine(content[at:])
		if isFence(line) {
			fm.Present, fm.YAMLEnd, fm.BodyStart = true, at, at+n
			return fm, true
		}
		at += n
	}
	return fm, true
}

// cutLine returns the first line of b without its end, and how many bytes it takes
// with it.
func cutLine(b []byte) (line []byte, n int) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return b, len(b)
	}
	line = b[:i]
	if i > 0 && b[i-1] == '\r' {
		line = b[:i-1]
	}
	return line, i + 1
}

func isFence(line []byte) bool {
	return len(line) >= 3 && line[0] == '-' && line[1] == '-' && line[2] == '-' &&
		len(bytes.TrimRight(line[3:], " \t\r")) == 0
}

// readKnown fills the named fields. The flat generation wins over the nested one
// where a file has both, as ruling 13.9 orders them; for what clients rewrite on
// save the nested one is the living value.
func (f *Frontmatter) readKnown(flow map[string]string) {
	first := func(keys ...string) string {
		for _, k := range keys {
			if field, ok := f.Field(k); ok && field.Value != "" {
				return field.Value
			}
			if v := flow[k]; v != "" {
				return v
			}
		}
		return ""
	}
	f.Name = first("name", "title")
	f.Description = first("description")
	f.Type = first("type", "metadata.type")
	f.NodeType = first("metadata.node_type", "node_type")
	f.OriginSessionID = first("metadata.originSessionId", "originSessionId")
	f.Modified = parseTime(first(timeKeys()...))
	f.Pinned = strings.EqualFold(first("metadata.pinned", "pinned"), "true")
}

// parseTime reads the ways in which people and clients write a time.
func parseTime(s string) time.Time {
	if s == "" {
		return time.Time{} // failing to parse costs more than all the rest of a small head
	}
	for _, layout := range timeLayouts() {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
