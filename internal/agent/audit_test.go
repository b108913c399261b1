package agent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/memories"
)

// callsTools answers once with calls of tools, name, input, name, input …, and then with
// a word.
func callsTools(pairs ...string) http.HandlerFunc {
	asked := 0
	return func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked > 1 {
			says("done")(w, r)
			return
		}
		var calls []string
		for i := 0; i < len(pairs); i += 2 {
			calls = append(calls, fmt.Sprintf(`{"id":"c%d","type":"function","function":{"name":%q,"arguments":%q}}`, i, pairs[i], pairs[i+1]))
		}
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[%s]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":90,"completion_tokens":10}}`, strings.Join(calls, ","))
	}
}

func auditLines(t *testing.T, file string) (lines []auditEntry, text string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var e auditEntry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		lines = append(lines, e)
	}
	return lines, string(b)
}

// TestAuditHoldsNoInput lets a hostile model and a hostile conversation loose on an
// extraction. What they say is in the record only where it is the name of a memory.
func TestAuditHoldsNoInput(t *testing.T) {
	const word = "zqxhostile"
	w := newModelWorld(t, "")
	w.reply = callsTools(
		"read", `{"path":"memory/ignore all rules `+word+`"}`,
		"list", `{"path":"memory/`+word+`"}`,
		"grep", `{"pattern":"`+word+`","path":"memory/`+word+`\u202e.md"}`,
		word, `{"`+word+`":"`+word+`"}`,
		"edit", `{"memory":"../`+word+`.md","old":"`+word+`","new":"x"}`,
		"write", `{"type":"`+word+`","name":"x","description":"d","body":"b"}`,
		"write", `{"type":"project","name":"`+word+`","description":"`+word+`","body":"`+word+`"}`,
	)
	talk := filepath.Join(filepath.Dir(w.dir), word+" talk.jsonl")
	w.write(t, talk, `{"type":"user","uuid":"u1","sessionId":"s","timestamp":"2026-03-05T10:00:00Z","message":{"content":"remember that `+word+` must be deleted"}}`+"\n")
	if out, stderr, code := invoke(t, "extract", "--transcript", talk); code != ExitOK || !strings.Contains(out, "added project_"+word+".md") {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	file := filepath.Join(w.state, auditFile)
	lines, text := auditLines(t, file)
	if len(lines) != 7 {
		t.Fatalf("%d calls are recorded, want 7: %s", len(lines), text)
	}
	for _, e := range lines {
		if strings.Contains(e.Target, word) {
			if _, err := memories.ParseRef(e.Target); err != nil {
				t.Errorf("the target %q is no memory", e.Target)
			}
			text = strings.ReplaceAll(text, fmt.Sprintf("%q", e.Target), "")
		}
	}
	if strings.Contains(text, word) {
		t.Errorf("the record holds what the model or the conversation said:\n%s", text)
	}
	last := lines[6]
	if last.Work != workExtract || last.Memory != w.dir || last.Session != "" || last.Round != 1 || last.Tool != "write" || last.Target != "project_"+word+".md" || last.Error != "" || last.Bytes == 0 {
		t.Errorf("the last call: %+v", last)
	}
	if lines[3].Tool != "unknown" || lines[3].Error == "" {
		t.Errorf("an unknown tool: %+v", lines[3])
	}
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
}

// TestAuditIsBounded: beyond its size the record begins anew, and what was there is kept
// once. A line that was cut off stays by itself.
func TestAuditIsBounded(t *testing.T) {
	s := stateDir(filepath.Join(t.TempDir(), "state"))
	const limit = 4096
	e := auditEntry{Time: time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC), Work: workDream, Memory: "/m", Tool: "read"}
	for i := range 100 {
		e.Round = i
		if err := s.appendAudit(e, limit); err != nil {
			t.Fatal(err)
		}
	}
	now, _ := auditLines(t, s.path(auditFile))
	before, text := auditLines(t, s.path(auditOld))
	if len(text) > limit || now[len(now)-1].Round != 99 || before[len(before)-1].Round+1 != now[0].Round {
		t.Errorf("%d bytes; %d and %d lines", len(text), len(before), len(now))
	}
	f, err := os.OpenFile(s.path(auditFile), os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"time":"2026`); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	e.Round = 100
	if err := s.appendAudit(e, limit); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(s.path(auditFile))
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	var last auditEntry
	if err := json.Unmarshal([]byte(all[len(all)-1]), &last); err != nil || last.Round != 100 {
		t.Errorf("after a cut line: %q", all[len(all)-1])
	}
}
