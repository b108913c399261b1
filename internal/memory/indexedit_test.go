package memory_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/memsvc/memsvc/internal/memory"
)

func TestIndexSetAndDrop(t *testing.T) {
	e := memory.IndexEntry{Title: "New", Target: "new.md", Hook: "why"}
	for name, test := range map[string]struct{ in, want string }{
		"empty":                {"", "- [New](new.md) — why\n"},
		"after the last entry": {"# Index\n\n- [A](a.md)\n\nprose\n", "# Index\n\n- [A](a.md)\n- [New](new.md) — why\n\nprose\n"},
		"no entry yet":         {"# Index\n", "# Index\n- [New](new.md) — why\n"},
		"no line end":          {"- [A](a.md)", "- [A](a.md)\n- [New](new.md) — why\n"},
		"replaced in place":    {"- [Old](./new.md)\n- [A](a.md)\n", "- [New](new.md) — why\n- [A](a.md)\n"},
		"twice":                {"- [Old](new.md)\n- [A](a.md)\n- [Older](new.md#x)\n", "- [New](new.md) — why\n- [A](a.md)\n"},
		"Windows":              {"- [A](a.md)\r\n", "- [A](a.md)\r\n- [New](new.md) — why\r\n"},
		"already so":           {"- [New](new.md) — why\n", "- [New](new.md) — why\n"},
	} {
		x := memory.ParseIndex([]byte(test.in))
		changed := x.Set(e)
		if got := string(x.Render()); got != test.want || changed != (test.in != test.want) {
			t.Errorf("%s: got %q, changed %v; want %q", name, got, changed, test.want)
		}
		x.Drop("new.md")
		if strings.Contains(string(x.Render()), "new.md") {
			t.Errorf("%s: still there after Drop: %q", name, x.Render())
		}
	}
}

// TestIndexSetKeepsTheRest: whatever the index holds, Set and Drop change the lines of
// their target alone, and a second Set changes nothing.
func TestIndexSetKeepsTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"- [A](a.md) — x\n", "- [B](b.md)\n", "prose\n", "\n", "```\n", "<!-- c\n", "-->\n", "- [N](n.md)\n"})
		text := strings.Join(rapid.SliceOfN(line, 0, 12).Draw(t, "lines"), "")
		e := memory.IndexEntry{Title: "Title", Target: "n.md", Hook: "hook"}
		x := memory.ParseIndex([]byte(text))
		x.Set(e)
		again := memory.ParseIndex(x.Render())
		// An index that ends inside code or a comment cannot show its last entry;
		// what Set puts after the last entry then is not found again, and stays one line.
		if strings.Count(text, "```")%2 == 0 && !strings.Contains(text, "<!--") {
			if again.Set(e) {
				t.Fatalf("a second Set changed %q", x.Render())
			}
		}
		x.Drop("n.md")
		want := memory.ParseIndex([]byte(text))
		want.Drop("n.md")
		if string(x.Render()) != string(want.Render()) {
			t.Fatalf("got %q, want %q", x.Render(), want.Render())
		}
	})
}

func TestEntryForKeepsToALine(t *testing.T) {
	for _, description := range []string{"short", strings.Repeat("word ", 80), strings.Repeat("结算规则说明", 60), ""} {
		e := memory.EntryFor("project_x.md", memory.Frontmatter{Name: "名字 name", Description: description})
		line := strings.TrimSuffix(memory.FormatIndexEntry(e), "\n")
		if n := utf8.RuneCountInString(line); n > memory.MaxIndexLineChars {
			t.Errorf("%d characters: %s", n, line)
		}
		if got := memory.ParseIndex([]byte(line)).Entries(); len(got) != 1 || got[0].Key() != "project_x.md" {
			t.Errorf("%q is not read back: %+v", line, got)
		}
	}
}

// TestEntryThatRepeatsItsTitle: where a line is too long, its hook goes on where the title
// ends, instead of losing its end.
func TestEntryThatRepeatsItsTitle(t *testing.T) {
	title := "the nightly export of the billing service"
	fact := title + " writes to the bucket in Frankfurt at 02:30."
	e := memory.EntryFor("project_the_nightly_export_of_the_billing_service.md", memory.Frontmatter{Name: title, Description: fact})
	if e.Hook != "…writes to the bucket in Frankfurt at 02:30." {
		t.Errorf("hook %q", e.Hook)
	}
	if e := memory.EntryFor("a.md", memory.Frontmatter{Name: "short", Description: "short and good"}); e.Hook != "short and good" {
		t.Errorf("hook %q", e.Hook)
	}
}
