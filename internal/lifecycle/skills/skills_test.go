package skills_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/lifecycle/skills"
)

func TestSkills(t *testing.T) {
	top := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("home/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: how we ship\nwhen_to_use: before a release\n---\n# Steps\n")
	write("repo/.claude/skills/deploy/SKILL.md", "---\ndescription: the project's own\n---\n")
	write("repo/.claude/skills/review/SKILL.md", "\ufeff---\r\ndescription: >-\r\n  reads a change\r\n  as a stranger\r\ndisable-model-invocation: true\r\n---\r\ntext\r\n")
	write("repo/.claude/skills/broken/SKILL.md", "---\nname: [x\n---\n")
	write("repo/.claude/skills/README.md", "no skill")
	write("repo/.claude/skills/empty/notes.md", "no skill")
	write("home/plugins/cache/market/tools/1.0/.claude-plugin/plugin.json", `{"name":"tools","version":"1.0"}`)
	write("home/plugins/cache/market/tools/1.0/skills/lint/SKILL.md", "no head, only text")
	o := skills.Options{Config: filepath.Join(top, "home"), Top: filepath.Join(top, "repo"), Dir: filepath.Join(top, "repo")}
	list, skipped, err := skills.List(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Name, Description string
		Origin            skills.Origin
		Hidden            bool
	}
	var got []row
	for _, s := range list {
		got = append(got, row{s.Name, s.Description, s.Origin, s.Hidden})
	}
	want := []row{
		{"deploy", "how we ship before a release", skills.User, false},
		{"review", "reads a change as a stranger", skills.Project, true},
		{"tools:lint", "", skills.Plugin, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(skipped) != 1 || !strings.Contains(skipped[0].Error(), "broken") {
		t.Errorf("skipped: %v", skipped)
	}
	if _, text, err := skills.Text(list, "deploy"); err != nil || !strings.HasSuffix(string(text), "# Steps\n") {
		t.Errorf("text: %q, %v", text, err)
	}
	if _, _, err := skills.Text(list, "../../etc/passwd"); !errors.Is(err, skills.ErrUnknown) {
		t.Errorf("an unknown name: %v", err)
	}
	if list, _, err := skills.List(t.Context(), skills.Options{Config: filepath.Join(top, "none"), Dir: "/"}); err != nil || len(list) != 0 {
		t.Errorf("nowhere: %v, %v", list, err)
	}
}

// TestListsAreShort: a description of any length and script takes about as many tokens in a
// list as it may, and ends with a whole word and a mark if it was cut.
func TestListsAreShort(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"how we ship":                     "how we ship",
		"发布前跑完整的回归测试。":                    "发布前跑完整的回归测试。",
		strings.Repeat("words and ", 600): strings.Repeat("words and ", 39) + "words…",
		strings.Repeat("规", 1000):         strings.Repeat("规", 99) + "…",
		strings.Repeat("x", 1000):         strings.Repeat("x", 396) + "…",
	} {
		if got := (skills.Skill{Description: text}).Listed(); got != want {
			t.Errorf("of %d characters: %q", len([]rune(text)), got)
		}
	}
}
