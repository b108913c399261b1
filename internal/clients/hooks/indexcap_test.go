package hooks_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestWhoWritesPastACapIsTold: a client that writes or edits an index, its own or a shared
// one, hears at once what of it is not loaded; of other files, and of an index within its
// caps, it hears nothing.
func TestWhoWritesPastACapIsTold(t *testing.T) {
	e := newEngine(t)
	other := filepath.Join(t.TempDir(), "notes")
	if err := os.MkdirAll(other, 0o755); err != nil {
		t.Fatal(err)
	}
	e.shared = []string{other}
	var big, long strings.Builder
	for i := range 300 {
		fmt.Fprintf(&big, "- [Memory %d](project_%d.md) — %s\n", i, i, strings.Repeat("x", 70))
	}
	for i := range 9 {
		fmt.Fprintf(&long, "- [Memory %d](project_%d.md) — %s\n", i, i, strings.Repeat("x", 200))
	}
	for name, test := range map[string]struct {
		file, text string
		input      map[string]any // beside the file
		want       []string       // in the context; none = nothing is said
	}{
		"the team's":     {filepath.Join(e.dir, "team", "MEMORY.md"), big.String(), map[string]any{"content": "x"}, []string{"only 200 lines", "100 entries are not seen"}},
		"an edit":        {filepath.Join(e.dir, "team", "MEMORY.md"), big.String(), map[string]any{"old_string": "a", "new_string": "b"}, []string{"100 entries are not seen"}},
		"the personal":   {filepath.Join(e.dir, "MEMORY.md"), big.String(), map[string]any{"content": "x"}, []string{"100 entries are not seen"}},
		"of a link":      {filepath.Join(other, "MEMORY.md"), big.String(), map[string]any{"content": "x"}, []string{"100 entries are not seen"}},
		"long lines":     {filepath.Join(e.dir, "MEMORY.md"), long.String(), map[string]any{"content": "x"}, []string{"over 150 characters: line 1, 2, 3, 4, 5, and 4 more"}},
		"within":         {filepath.Join(e.dir, "MEMORY.md"), "- [A](a.md) — b\n", map[string]any{"content": "x"}, nil},
		"only read":      {filepath.Join(e.dir, "MEMORY.md"), big.String(), map[string]any{}, nil},
		"another memory": {filepath.Join(e.dir, "project_x.md"), big.String(), map[string]any{"content": "x"}, nil},
		"elsewhere":      {filepath.Join(t.TempDir(), "MEMORY.md"), big.String(), map[string]any{"content": "x"}, nil},
		"below":          {filepath.Join(e.dir, "agents", "MEMORY.md"), big.String(), map[string]any{"content": "x"}, nil},
	} {
		if err := os.MkdirAll(filepath.Dir(test.file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(test.file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		test.input["file_path"] = test.file
		told, _ := e.fire("PostToolUse", map[string]any{"tool_name": "Write", "tool_input": test.input})
		if test.want == nil && told != "" || utf8.RuneCountInString(told) > 1000 {
			t.Errorf("%s: told %q", name, told)
		}
		for _, want := range test.want {
			if !strings.Contains(told, want) {
				t.Errorf("%s: told %q, want %q in it", name, told, want)
			}
		}
	}
}
