package install

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// parseTOML reads a TOML file; its error names the line and repeats nothing.
func parseTOML(text []byte) (map[string]any, error) {
	out := map[string]any{}
	err := toml.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &out)
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		line, column := bad.Position()
		return nil, fmt.Errorf("line %d, column %d: not valid TOML; correct it first", line, column)
	}
	if err != nil {
		return nil, errors.New("not valid TOML; correct it first")
	}
	return out, nil
}

// tables returns where the lines of a table, and of those below it, begin and end.
// Comments and empty lines above the next table belong to that one.
func tables(text []byte, path ...string) (spans [][2]int, err error) {
	var p unstable.Parser
	p.Reset(text)
	open := -1
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable {
			continue
		}
		at, keys := -1, []string{}
		for it := e.Key(); it.Next(); {
			if at < 0 {
				at = bytes.LastIndexByte(text[:it.Node().Raw.Offset], '\n') + 1
			}
			keys = append(keys, string(it.Node().Data))
		}
		within := len(keys) >= len(path) && reflect.DeepEqual(keys[:len(path)], path)
		switch {
		case within && open < 0:
			open = at
		case !within && open >= 0:
			spans = append(spans, [2]int{open, backOverComments(text, open, at)})
			open = -1
		}
	}
	if open >= 0 {
		spans = append(spans, [2]int{open, backOverComments(text, open, len(text))})
	}
	return spans, p.Error()
}

// backOverComments returns where the empty lines and comments that end at to begin.
func backOverComments(text []byte, from, to int) int {
	for to > from {
		start := bytes.LastIndexByte(text[:to-1], '\n') + 1
		line := bytes.TrimSpace(text[start:to])
		if start < from || len(line) > 0 && line[0] != '#' {
			break
		}
		to = start
	}
	return to
}

// editTOML sets [mcp_servers.NAME] to a command, or takes it away.
func editTOML(text []byte, name string, c Command, args []string, remove bool) ([]byte, error) {
	before, err := parseTOML(text)
	if err != nil {
		return nil, err
	}
	servers, _ := before["mcp_servers"].(map[string]any)
	have, exists := servers[name].(map[string]any)
	argv := append([]string{c.Exe}, args...)
	if exists {
		command, _ := have["command"].(string)
		now := []string{command}
		list, _ := have["args"].([]any)
		for _, a := range list {
			s, _ := a.(string)
			now = append(now, s)
		}
		switch {
		case !ours(now, "mcp"):
			if remove {
				return text, nil
			}
			return nil, fmt.Errorf("mcp_servers.%s is another program's; rename that one first", name)
		case !remove && reflect.DeepEqual(now, argv):
			return text, nil
		}
	}
	if !exists && remove {
		return text, nil
	}
	nl := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		nl = "\r\n"
	}
	out := bytes.Clone(text)
	spans, err := tables(text, "mcp_servers", name)
	if err != nil {
		return nil, err
	}
	at := -1
	for i := len(spans) - 1; i >= 0; i-- {
		at = spans[i][0]
		end := spans[i][1]
		if remove { // the empty line that was put before it
			for at > 0 && bytes.HasSuffix(out[:at], []byte(nl+nl)) {
				at -= len(nl)
			}
		}
		out = append(out[:at:at], out[end:]...)
	}
	if !remove {
		block := "[mcp_servers." + name + "]" + nl + "command = " + basic(argv[0]) + nl + "args = ["
		for i, a := range argv[1:] {
			if i > 0 {
				block += ", "
			}
			block += basic(a)
		}
		block += "]" + nl
		if at < 0 {
			if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
				out = append(out, nl...)
			}
			if at = len(out); at > 0 {
				block = nl + block
			}
		}
		out = append(out[:at:at], append([]byte(block), out[at:]...)...)
	}
	// Whatever the file's form, nothing but our table may be another one now.
	after, err := parseTOML(out)
	if err != nil || !reflect.DeepEqual(without(before, name), without(after, name)) {
		return nil, fmt.Errorf("mcp_servers is written in a form that cannot be added to; set mcp_servers.%s by hand", name)
	}
	return out, nil
}

// without returns a configuration without one server.
func without(cfg map[string]any, name string) map[string]any {
	out := map[string]any{}
	for k, v := range cfg {
		out[k] = v
	}
	servers, ok := cfg["mcp_servers"].(map[string]any)
	if !ok {
		return out
	}
	rest := map[string]any{}
	for k, v := range servers {
		if k != name {
			rest[k] = v
		}
	}
	if delete(out, "mcp_servers"); len(rest) > 0 {
		out["mcp_servers"] = rest
	}
	return out
}

// basic quotes a string for TOML.
func basic(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '\'' }) {
		return "'" + s + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			b.WriteString(`\u` + strings.Repeat("0", 4-len(strconv.FormatInt(int64(r), 16))) + strconv.FormatInt(int64(r), 16))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
