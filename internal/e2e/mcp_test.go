package e2e

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// TestToolServerSurvivesGarbage: what is no message ends nothing; the real program says
// so and serves what follows.
func TestToolServerSurvivesGarbage(t *testing.T) {
	cmd := programCommand("memsync-agent", "mcp", "--state-dir", t.TempDir())
	cmd.Dir = t.TempDir()
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	_, err = io.WriteString(in, strings.Join([]string{
		"Starting up…", `{"half":`, strings.Repeat("x", 6<<20), `{"id":3,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "[]", `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`, "",
	}, "\n"))
	must(t, err)
	type answer struct {
		ID     any
		Code   int
		Result bool
	}
	got := map[answer]int{}
	last := answer{5.0, 0, true}
	for dec := json.NewDecoder(out); got[last] == 0; {
		var msg struct {
			ID     any             `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  struct {
				Code int `json:"code"`
			} `json:"error"`
		}
		if err := dec.Decode(&msg); err != nil {
			t.Fatalf("after %v: %v", got, err)
		}
		got[answer{msg.ID, msg.Error.Code, len(msg.Result) > 0}]++
	}
	must(t, in.Close()) // the server ends with its input
	must(t, cmd.Wait())
	for want, n := range map[answer]int{{nil, -32700, false}: 3, {3.0, -32600, false}: 1, {nil, -32600, false}: 1, {4.0, 0, true}: 1} {
		if got[want] != n {
			t.Errorf("%+v: %d times, want %d; all: %v", want, got[want], n, got)
		}
	}
}
