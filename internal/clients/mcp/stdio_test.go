package mcp

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// Lines that are messages pass, byte for byte; every other one is answered.
func TestOnlyMessagesPass(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	const parse, invalid = `"code":-32700`, `"code":-32600`
	full := `{"jsonrpc":"2.0","method":"x","params":"` + strings.Repeat("y", MaxLineBytes-43) + "\"}\n"
	for in, want := range map[string]struct {
		passed  string
		answers []string
	}{
		"":                                       {"", nil},
		"\n\r\n \n":                              {"", nil},
		ping:                                     {ping + "\n", nil},
		ping + "\r\n" + ping + "\n":              {ping + "\n" + ping + "\n", nil},
		"garbage\n" + ping + "\n":                {ping + "\n", []string{parse}},
		ping[:20]:                                {"", []string{parse}},
		"\x00\xff\n":                             {"", []string{parse}},
		ping + ping + "\n":                       {"", []string{parse}},
		"42\n\"x\"\nnull\n":                      {"", []string{invalid, invalid, invalid}},
		`{"id":7,"method":"x"}` + "\n":           {"", []string{`"id":7`}},
		`{"id":"a","jsonrpc":"1.0"}`:             {"", []string{`"id":"a"`}},
		`{"jsonrpc":"2.0","id":{"a":1}}`:         {"", []string{`"id":null`}},
		`{"jsonrpc":"2.0","id":7}`:               {"", []string{`"id":7`}},
		`{"jsonrpc":"2.0"}`:                      {"", []string{invalid}},
		"[]\n":                                   {"", []string{invalid}},
		`{"jsonrpc":"2.0","id":7,"result":null}`: {`{"jsonrpc":"2.0","id":7,"result":null}` + "\n", nil},
		`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}`: {`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}` + "\n", nil},
		"[" + ping + ",3," + ping + "]\n":                           {ping + "\n" + ping + "\n", []string{invalid}},
		full:                                                        {full, nil},
		strings.Repeat("x", 3*MaxLineBytes) + "\n" + ping + "\n": {ping + "\n", []string{parse}},
		strings.Repeat("[", 100_000) + "\n" + ping + "\n":        {ping + "\n", []string{parse}},
	} {
		var out bytes.Buffer
		passed, err := io.ReadAll(newMessages(iotest.HalfReader(strings.NewReader(in)), &out))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.passed, string(passed)); diff != "" {
			t.Errorf("%.60q passes (-want +got):\n%.300s", in, diff)
		}
		var answers []string
		if out.Len() > 0 {
			answers = strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		}
		if len(answers) != len(want.answers) {
			t.Errorf("%.60q is answered %q", in, answers)
			continue
		}
		for i, a := range want.answers {
			if !strings.Contains(answers[i], a) || !strings.Contains(answers[i], `"error":`) || len(answers[i]) > 200 {
				t.Errorf("%.60q is answered %q, want %s", in, answers[i], a)
			}
		}
	}
	broken := errors.New("broken")
	if _, err := io.ReadAll(newMessages(iotest.ErrReader(broken), io.Discard)); !errors.Is(err, broken) {
		t.Errorf("a broken input: %v", err)
	}
}

// A line without end takes no more memory than one at the bound.
func TestLineWithoutEndIsBounded(t *testing.T) {
	m := newMessages(io.LimitReader(endless{}, 256<<20), io.Discard)
	if n, err := m.Read(make([]byte, 10)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d, %v", n, err)
	}
	if cap(m.line) > 3*MaxLineBytes {
		t.Errorf("%d bytes are held", cap(m.line))
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
