//go:build unix

package sandbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/lifecycle/model/scripted"
)

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
