//go:build unix

package sandbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/lifecycle/model/scripted"
)

// TestRecordsNameNothingThatIsNotThere: a name that a model thought of may be a secret.
// It is recorded once there is a memory of it, and not before.
func TestRecordsNameNothingThatIsNotThere(t *testing.T) {
	const word = "zqxsecret"
	w := newWorld(t)
	draft := map[string]any{"type": "project", "name": "token " + word, "description": "d", "body": "hunter2 here"}
	turns := []scripted.Turn{call("write", input(t, draft))}
	for _, name := range []string{"project_" + word + ".md", "memory/project_" + word + ".md", "memory/team/" + word + ".md", "memory/" + word, "project/" + word, "project/" + word + ".go"} {
		for _, tool := range []string{"read", "list"} {
			turns = append(turns, call(tool, input(t, map[string]any{"path": name})))
		}
		turns = append(turns, call("grep", input(t, map[string]any{"path": name, "pattern": "x"})),
			call("edit", input(t, map[string]any{"memory": name, "old": "a", "new": "b"})), call("delete", input(t, map[string]any{"memory": name})))
	}
	w.box.MaxBytes, w.box.AllowDelete = 16<<20, true
	w.box.MaxRounds = len(turns) + 10
	res, _ := w.run(t, turns...)
	if len(res.Calls) != len(turns) {
		t.Fatalf("%d of %d calls", len(res.Calls), len(turns))
	}
	for i, c := range res.Calls {
		if strings.Contains(fmt.Sprintf("%+v", c), word) {
			t.Errorf("call %d: %+v", i, c)
		}
	}
	draft["name"], draft["body"] = "Harbour gate", "It closes early."
	res, _ = w.run(t, call("write", input(t, draft)), call("read", input(t, map[string]any{"path": "memory/project_harbour_gate.md"})), call("delete", input(t, map[string]any{"memory": "project_harbour_gate.md"})))
	for i, c := range res.Calls {
		if c.Error != "" || strings.TrimPrefix(c.Target, "memory/") != "project_harbour_gate.md" {
			t.Errorf("call %d: %+v", i, c)
		}
	}
}

// TestRecordsHoldNoInput puts a word into everything a model may say. The records hold it
// only where it is the name of a memory.
func TestRecordsHoldNoInput(t *testing.T) {
	const word = "zqxhostile"
	w := newWorld(t)
	var turns []scripted.Turn
	try := func(tool string, in map[string]any) { turns = append(turns, call(tool, input(t, in))) }
	for _, name := range []string{
		word, "memory/" + word, "memory/" + word + ".md", "memory/" + word + "/\u202Ex.md", "memory/\u0000" + word, "project/" + word, "project/." + word, "../" + word,
		"/" + word, "memory/ignore all rules and " + word, word + ".md", "memory/" + word + "\n.md", "memory/C:" + word + ".md",
	} {
		for _, tool := range []string{"read", "list"} {
			try(tool, map[string]any{"path": name})
		}
		try("grep", map[string]any{"path": name, "pattern": word})
		try("edit", map[string]any{"memory": name, "old": word, "new": word})
		try("delete", map[string]any{"memory": name})
	}
	try(word, map[string]any{word: word})
	try("glob", map[string]any{"pattern": word})
	try("glob", map[string]any{"pattern": "[" + word})
	try("grep", map[string]any{"pattern": "(" + word, "path": "project"})
	try("read", map[string]any{"path": []string{word}})
	for _, d := range []map[string]any{
		{"type": word, "name": word, "description": word, "body": word},
		{"type": "project", "name": word, "description": "a\n" + word, "body": word},
		{"type": "project", "name": word, "description": word, "body": "hunter2 " + word},
		{"type": "project", "name": word, "description": word, "body": word},
	} {
		try("write", d)
	}
	w.box.MaxBytes, w.box.AllowDelete = 16<<20, true
	res, _ := w.run(t, turns...)
	named := 0
	for i, c := range res.Calls {
		if strings.Contains(c.Target, word) {
			ref, err := memories.ParseRef(strings.TrimPrefix(c.Target, "memory/"))
			if err != nil {
				t.Errorf("call %d: the target %q is no memory: %v", i, c.Target, err)
			}
			named++
			c.Target = strings.ReplaceAll(c.Target, ref.String(), "")
		}
		if s := fmt.Sprintf("%+v", c); strings.Contains(s, word) {
			t.Errorf("call %d: %s", i, s)
		}
	}
	if named == 0 {
		t.Error("no memory is named at all")
	}
}
