package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// MaxLineBytes bounds a message on standard input. A tool that writes a memory needs
// less than a tenth of it.
const MaxLineBytes = 4 << 20

// messages yields the lines of a client that are messages, and answers every other line
// with an error: the SDK ends the connection at the first one it cannot read. One line is
// in memory at a time, and of a longer one than MaxLineBytes a part.
type messages struct {
	in   *bufio.Reader
	out  io.Writer
	line []byte // the one under way, reused
	rest []byte // of what was let pass
	err  error
}

func newMessages(in io.Reader, out io.Writer) *messages {
	return &messages{in: bufio.NewReaderSize(in, 64<<10), out: out}
}

// Read returns bytes of lines that are messages.
func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		if m.err != nil {
			return 0, m.err
		}
		m.next()
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// Close has nothing to close: who gave the input does.
func (m *messages) Close() error { return nil }

// next takes one line; rest holds what of it may pass.
func (m *messages) next() {
	m.line = m.line[:0]
	long := false
	for {
		part, err := m.in.ReadSlice('\n')
		if long = long || len(m.line)+len(part) > MaxLineBytes; !long {
			m.line = append(m.line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			m.err = err // a last line without its end counts all the same
			break
		}
	}
	if long {
		m.refuse(nil, jsonrpc.CodeParseError, fmt.Sprintf("the line has more than %d bytes", MaxLineBytes))
		return
	}
	line := bytes.TrimSpace(m.line)
	switch {
	case len(line) == 0:
	case !json.Valid(line):
		m.refuse(nil, jsonrpc.CodeParseError, "the line is no JSON")
	case line[0] == '[':
		// A batch, which an old version of the protocol allowed, comes as what is in it.
		var batch []json.RawMessage
		if json.Unmarshal(line, &batch) != nil || len(batch) == 0 {
			m.refuse(nil, jsonrpc.CodeInvalidRequest, "the batch is empty")
			return
		}
		var passed []byte
		for _, one := range batch {
			if m.passes(one) {
				passed = append(append(passed, one...), '\n')
			}
		}
		m.rest = passed
	case m.passes(line):
		m.rest = append(line, '\n') // in place of the line end, or of nothing
	}
}

// passes reports whether the SDK will take a message, and answers it if not.
func (m *messages) passes(text []byte) bool {
	var named struct {
		ID     json.RawMessage `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal(text, &named) // another shape has no id
	// The SDK takes an id alone for an answer, and an answer to nothing is dropped.
	msg, err := jsonrpc.DecodeMessage(text)
	if _, answer := msg.(*jsonrpc.Response); err == nil && (!answer || named.Result != nil || named.Error != nil) {
		return true
	}
	if len(named.ID) > 0 && (named.ID[0] == '{' || named.ID[0] == '[') {
		named.ID = nil
	}
	m.refuse(named.ID, jsonrpc.CodeInvalidRequest, "the line is no message of JSON-RPC 2.0")
	return false
}

// refuse answers a line. Who does not listen is not told.
func (m *messages) refuse(id json.RawMessage, code int, why string) {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": why}})
	if err == nil {
		_, _ = m.out.Write(append(text, '\n'))
	}
}

// whole lets one write at a time through: the SDK and messages answer on one stream, each
// with whole lines.
type whole struct {
	mu  sync.Mutex // guards out
	out io.Writer
}

func (w *whole) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

// Close has nothing to close: who gave the output does.
func (w *whole) Close() error { return nil }
