//go:build unix

package hooks_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipesHoldNobody: a pipe where a transcript or an index should be holds up no
// session, and a directory is no conversation.
func TestPipesHoldNobody(t *testing.T) {
	e := newEngine(t)
	e.write("feedback_testing.md", howWeTest)
	for _, name := range []string{"talk.jsonl", "MEMORY.md", "pipe.md"} {
		if err := syscall.Mkfifo(filepath.Join(e.dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, transcript := range []string{filepath.Join(e.dir, "talk.jsonl"), e.dir, "/dev/zero"} {
		if got, _ := e.fire("UserPromptSubmit", map[string]any{"prompt": "write unit tests", "transcript_path": transcript}); !strings.Contains(got, "Never a mock.") {
			t.Errorf("%s: %s", transcript, got)
		}
	}
	for _, name := range []string{"pipe.md", "zero.md"} {
		file := filepath.Join(e.dir, "team", name)
		if name == "pipe.md" {
			if err := syscall.Mkfifo(file, 0o600); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Symlink("/dev/zero", file); err != nil {
			t.Fatal(err)
		}
		if _, deny := e.fire("PreToolUse", map[string]any{"tool_name": "Edit", "tool_input": map[string]any{"file_path": file, "old_string": "a", "new_string": "b"}}); deny != "" {
			t.Errorf("%s: %s", name, deny)
		}
	}
	if got, _ := e.fire("SessionStart", map[string]any{"source": "startup"}); !strings.Contains(got, "written first") {
		t.Errorf("a session begins with %s", got)
	}
}
