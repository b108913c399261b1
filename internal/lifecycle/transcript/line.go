package transcript

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// Kind says what a line of a transcript is.
type Kind uint8

// The kinds that mean something here; every other line is Other.
const (
	Other Kind = iota
	User
	Assistant
	System
	Attachment // what hooks and the client add to the context
	Summary
)

// Line is one line of a transcript.
type Line struct {
	Kind       Kind
	UUID       string
	ParentUUID string
	SessionID  string
	Time       time.Time // zero if the line has none
	CWD        string
	Branch     string // git's, "" if there is none
	Sidechain  bool   // of a sub-agent
	Meta       bool   // made by the client, not typed by a person
	Message    bool   // it has a message of its own, as what is said has
	Compaction bool   // everything before this line has left the context
	Blocks     []Block
}

// BlockKind says what a piece of a message is.
type BlockKind uint8

// The kinds of pieces.
const (
	Text BlockKind = iota + 1
	ToolUse
	ToolResult
	Thinking
)

// Block is a piece of a message.
type Block struct {
	Kind  BlockKind
	Text  string          // of Text, Thinking and ToolResult
	Tool  string          // the tool's name, of ToolUse
	ID    string          // of the tool's call: ToolUse and ToolResult share it
	Input json.RawMessage // of ToolUse
	Error bool            // of ToolResult: the call failed
}

// raw is a line as clients write it.
type raw struct {
	Type             string          `json:"type"`
	Subtype          string          `json:"subtype"`
	UUID             string          `json:"uuid"`
	ParentUUID       *string         `json:"parentUuid"`
	SessionID        string          `json:"sessionId"`
	Timestamp        string          `json:"timestamp"`
	CWD              string          `json:"cwd"`
	GitBranch        string          `json:"gitBranch"`
	IsSidechain      bool            `json:"isSidechain"`
	IsMeta           bool            `json:"isMeta"`
	IsCompactSummary bool            `json:"isCompactSummary"`
	Message          json.RawMessage `json:"message"`
	Content          json.RawMessage `json:"content"`
	Attachment       json.RawMessage `json:"attachment"`
	Summary          string          `json:"summary"`
}

// Parse reads one line. ok is false for what is no JSON object: an empty line, one that
// is half written, noise.
func Parse(text []byte) (line Line, ok bool) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' {
		return Line{}, false
	}
	var r raw
	if err := json.Unmarshal(text, &r); err != nil {
		return lenient(text)
	}
	return r.line(), true
}

// lenient reads a line in which a field has another shape than expected: the fields
// that can be read count.
func lenient(text []byte) (Line, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return Line{}, false
	}
	var r raw
	for name, to := range map[string]any{
		"type": &r.Type, "subtype": &r.Subtype, "uuid": &r.UUID, "parentUuid": &r.ParentUUID, "sessionId": &r.SessionID,
		"timestamp": &r.Timestamp, "cwd": &r.CWD, "gitBranch": &r.GitBranch, "isSidechain": &r.IsSidechain, "isMeta": &r.IsMeta,
		"isCompactSummary": &r.IsCompactSummary, "summary": &r.Summary,
	} {
		_ = json.Unmarshal(fields[name], to) // another shape says nothing
	}
	r.Message, r.Content, r.Attachment = fields["message"], fields["content"], fields["attachment"]
	return r.line(), true
}

func (r *raw) line() Line {
	l := Line{
		UUID: r.UUID, SessionID: r.SessionID, CWD: r.CWD, Branch: r.GitBranch, Sidechain: r.IsSidechain, Meta: r.IsMeta, Message: len(r.Message) > 0,
	}
	if r.ParentUUID != nil {
		l.ParentUUID = *r.ParentUUID
	}
	if t, err := time.Parse(time.RFC3339Nano, r.Timestamp); err == nil {
		l.Time = t.UTC()
	}
	switch r.Type {
	case "user":
		l.Kind = User
	case "assistant":
		l.Kind = Assistant
	case "system":
		l.Kind = System
	case "attachment":
		l.Kind = Attachment
	case "summary":
		l.Kind = Summary
		l.Blocks = []Block{{Kind: Text, Text: r.Summary}}
	}
	l.Compaction = r.Type == "compact_boundary" || r.Subtype == "compact_boundary"
	if r.IsCompactSummary {
		l.Meta = true
	}
	switch {
	case len(r.Message) > 0:
		var m struct {
			Content json.RawMessage `json:"content"`
		}
		_ = json.Unmarshal(r.Message, &m) // another shape has no content for us
		l.Blocks = blocks(m.Content)
	case len(r.Attachment) > 0:
		l.Blocks = texts(r.Attachment)
	case len(r.Content) > 0 && l.Kind != Other:
		l.Blocks = blocks(r.Content)
	}
	return l
}

// blocks reads a message's content: a text, or a list of pieces.
func blocks(content json.RawMessage) []Block {
	var text string
	if json.Unmarshal(content, &text) == nil {
		if text == "" {
			return nil
		}
		return []Block{{Kind: Text, Text: text}}
	}
	var pieces []struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Name      string          `json:"name"`
		ID        string          `json:"id"`
		ToolUseID string          `json:"tool_use_id"`
		Input     json.RawMessage `json:"input"`
		Content   json.RawMessage `json:"content"`
		IsError   bool            `json:"is_error"`
	}
	if json.Unmarshal(content, &pieces) != nil {
		return nil
	}
	var out []Block
	for _, p := range pieces {
		switch p.Type {
		case "text":
			out = append(out, Block{Kind: Text, Text: p.Text})
		case "thinking":
			out = append(out, Block{Kind: Thinking, Text: p.Thinking})
		case "tool_use":
			out = append(out, Block{Kind: ToolUse, Tool: p.Name, ID: p.ID, Input: p.Input})
		case "tool_result":
			var b strings.Builder
			for _, inner := range blocks(p.Content) {
				b.WriteString(inner.Text)
			}
			out = append(out, Block{Kind: ToolResult, Text: b.String(), ID: p.ToolUseID, Error: p.IsError})
		}
	}
	return out
}

// texts returns every text inside a JSON value, in order: the shape of attachments is
// nobody's promise.
func texts(value json.RawMessage) []Block {
	var out []Block
	dec := json.NewDecoder(bytes.NewReader(value))
	type level struct {
		object bool
		key    bool // the next text is a key
	}
	var stack []level
	for {
		tok, err := dec.Token()
		if err != nil {
			return out
		}
		top := len(stack) - 1
		switch t := tok.(type) {
		case json.Delim:
			switch t {
			case '{', '[':
				if top >= 0 {
					stack[top].key = stack[top].object
				}
				stack = append(stack, level{object: t == '{', key: t == '{'})
			default:
				stack = stack[:top]
			}
			continue
		case string:
			if top >= 0 && stack[top].object && stack[top].key {
				stack[top].key = false
				continue
			}
			if t != "" {
				out = append(out, Block{Kind: Text, Text: t})
			}
		}
		if top >= 0 {
			stack[top].key = stack[top].object
		}
	}
}
