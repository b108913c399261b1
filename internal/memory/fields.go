package memory

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// metadataKey is the one key whose children are fields of their own.
const metadataKey = "metadata"

// parseYAMLFields splits a block by what the YAML parser says of it.
// flow holds the scalars of a metadata mapping in flow style, {type: x}, which is
// one field and has no lines of its own.
func parseYAMLFields(block []byte, offset int) (fields []Field, flow map[string]string, err error) {
	b := newLineBlock(block, offset)
	var doc yaml.Node
	if err := decodeYAML(block, &doc); err != nil {
		return nil, nil, frontmatterError(RuleFrontmatterInvalid, b.lineOf(yamlErrorLine(err)),
			"the frontmatter is not valid YAML; quote values that hold a colon or other marks")
	}
	if len(doc.Content) == 0 {
		return b.appendRun(nil, "", "", 0, b.len()), nil, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0 {
		return nil, nil, frontmatterError(RuleFrontmatterInvalid, b.lineOf(root.Line), "the frontmatter is not a list of 'key: value' lines; write one key a line")
	}
	if bad := unsupportedNode(&doc); bad != nil {
		return nil, nil, frontmatterError(RuleFrontmatterInvalid, b.lineOf(bad.Line), "the frontmatter has a key twice, or uses an anchor or alias; write plain values")
	}
	fields, err = b.splitMapping(root, "", 0, b.len())
	return fields, flowMetadata(root), err
}

// flowMetadata returns the scalars of `metadata: {…}` by their full keys.
func flowMetadata(root *yaml.Node) map[string]string {
	flow := make(map[string]string)
	for i := 0; i+1 < len(root.Content); i += 2 {
		m := root.Content[i+1]
		if root.Content[i].Value != metadataKey || m.Kind != yaml.MappingNode {
			continue
		}
		for j := 0; j+1 < len(m.Content); j += 2 {
			if m.Content[j+1].Kind == yaml.ScalarNode {
				flow[metadataKey+"."+m.Content[j].Value] = m.Content[j+1].Value
			}
		}
	}
	return flow
}

// decodeYAML parses one document. The parser is guarded by MaxFrontmatterBytes; it
// resolves no alias, since nodes are all that is asked for. A panic in it would be a
// defect of the library that one text of a user must not turn into an outage.
func decodeYAML(block []byte, doc *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(block))
	if err := dec.Decode(doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil // blanks and comments only
		}
		return err
	}
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	return nil
}

// unsupportedNode returns the first node that makes a reading ambiguous: an alias,
// an anchor, or a key that a mapping has twice.
func unsupportedNode(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return n
	}
	if n.Kind == yaml.MappingNode {
		seen := make(map[string]bool, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind == yaml.ScalarNode {
				if seen[k.Value] {
					return k
				}
				seen[k.Value] = true
			}
		}
	}
	for _, c := range n.Content {
		if bad := unsupportedNode(c); bad != nil {
			return bad
		}
	}
	return nil
}

// yamlLine finds the line in the library's message, which has no other place for it.
var yamlLine = regexp.MustCompile(`line (\d+)`)

// yamlErrorLine returns the line of the block that the parser stumbled over, or 1.
func yamlErrorLine(err error) int {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 {
			return n
		}
	}
	return 1
}

// lineBlock is the text between the fences, seen as lines. YAML also ends a line at a
// lone carriage return and at three characters of Unicode, and its parser counts them;
// for everyone else, and in the line numbers reported, a line ends in a newline.
type lineBlock struct {
	text   []byte
	starts []int // where each of YAML's lines begins, and the text's end
	offset int   // of the text in the content
}

func newLineBlock(text []byte, offset int) *lineBlock {
	b := &lineBlock{text: text, starts: []int{0}, offset: offset}
	for at := 0; at < len(text); {
		at += yamlLineLength(text[at:])
		b.starts = append(b.starts, at)
	}
	return b
}

// yamlLineLength returns the bytes of the first line, its end included.
func yamlLineLength(text []byte) int {
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; rest[0] {
		case '\n':
			return i + 1
		case '\r':
			if len(rest) > 1 && rest[1] == '\n' {
				return i + 2
			}
			return i + 1
		case 0xc2:
			if bytes.HasPrefix(rest, []byte("\u0085")) {
				return i + len("\u0085")
			}
		case 0xe2:
			if bytes.HasPrefix(rest, []byte("\u2028")) || bytes.HasPrefix(rest, []byte("\u2029")) {
				return i + len("\u2028")
			}
		}
	}
	return len(text)
}

// lineOf returns the line of the content, from 1, at which a line of YAML's count
// begins.
func (b *lineBlock) lineOf(yamlLine int) int {
	i := min(max(yamlLine-1, 0), len(b.starts)-1)
	return 2 + bytes.Count(b.text[:b.starts[i]], []byte("\n"))
}

func (b *lineBlock) len() int { return len(b.starts) - 1 }

// splitMapping cuts the lines from..to (exclusive) where the keys of m stand.
func (b *lineBlock) splitMapping(m *yaml.Node, prefix string, from, to int) ([]Field, error) {
	var fields []Field
	at := from
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		start, end := key.Line-1, to
		if i+2 < len(m.Content) {
			end = m.Content[i+2].Line - 1
		}
		if key.Kind != yaml.ScalarNode || start < at || end <= start || end > to {
			return nil, frontmatterError(RuleFrontmatterInvalid, b.lineOf(key.Line), "the frontmatter has several keys on one line, or a key that is no word; write one key a line")
		}
		fields = b.appendRun(fields, "", "", at, start)
		stop := b.trimBlankTail(start+1, end)
		name := prefix + key.Value
		text := ""
		if value.Kind == yaml.ScalarNode {
			text = value.Value
		}
		if name == metadataKey && isBlockMapping(value) && value.Content[0].Line > key.Line {
			first := value.Content[0].Line - 1
			fields = b.appendRun(fields, name, "", start, first)
			children, err := b.splitMapping(value, metadataKey+".", first, stop)
			if err != nil {
				return nil, err
			}
			fields = append(fields, children...)
		} else {
			fields = b.appendRun(fields, name, text, start, stop)
		}
		at = stop
	}
	return b.appendRun(fields, "", "", at, to), nil
}

func isBlockMapping(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0 && len(n.Content) > 0
}

// trimBlankTail returns where the field whose second line is from ends when the
// blank lines and comments before the next field, at to, are left out.
func (b *lineBlock) trimBlankTail(from, to int) int {
	for to > from {
		t := bytes.TrimSpace(b.text[b.starts[to-1]:b.starts[to]])
		if len(t) > 0 && t[0] != '#' {
			break
		}
		to--
	}
	return to
}

// appendRun adds the lines from..to (exclusive) as one field, if there are any.
func (b *lineBlock) appendRun(fields []Field, key, value string, from, to int) []Field {
	if from >= to {
		return fields
	}
	start, end := b.starts[from], b.starts[to]
	return append(fields, Field{Key: key, Raw: b.text[start:end:end], Value: value, Offset: b.offset + start, Line: b.lineOf(from + 1)})
}
