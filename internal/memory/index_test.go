package memory

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestParseIndexEntry(t *testing.T) {
	for _, tc := range []struct {
		line string
		want *IndexEntry
	}{
		{"- [Testing](feedback_testing.md) — no mocks", &IndexEntry{Title: "Testing", Target: "feedback_testing.md", Hook: "no mocks"}},
		{"* [T](a.md) - hook", &IndexEntry{Title: "T", Target: "a.md", Hook: "hook"}},
		{"+ [T](a.md): hook", &IndexEntry{Title: "T", Target: "a.md", Hook: "hook"}},
		{"  - [T](team/a.md)", &IndexEntry{Title: "T", Target: "team/a.md"}},
		{"-\t[T](a.md) – hook", &IndexEntry{Title: "T", Target: "a.md", Hook: "hook"}},
		{"- [单元测试](feedback_单元测试.md) —— 用真实的数据库", &IndexEntry{Title: "单元测试", Target: "feedback_单元测试.md", Hook: "用真实的数据库"}},
		{"- [T](a.md) — hook (project, 2026-03-05)", &IndexEntry{Title: "T", Target: "a.md", Hook: "hook", Type: "project", Date: "2026-03-05"}},
		{"- [T](a.md) (user)", &IndexEntry{Title: "T", Target: "a.md", Type: "user"}},
		{"- [T](a.md) — hook (see below)", &IndexEntry{Title: "T", Target: "a.md", Hook: "hook (see below)"}},
		{"- [T](<a b.md>) — hook", &IndexEntry{Title: "T", Target: "a b.md", Hook: "hook"}},
		{"- [T](a(1).md) — hook", &IndexEntry{Title: "T", Target: "a(1).md", Hook: "hook"}},
		{"- [a [b] c](a.md)", &IndexEntry{Title: "a [b] c", Target: "a.md"}},
		{"- [T](a.md#part)", &IndexEntry{Title: "T", Target: "a.md#part"}},
		{"- [T](https://example.com/a.md)", nil},
		{"- [T](a.txt)", nil},
		{"- [T]()", nil},
		{"- [T](a.md", nil},
		{"- T (a.md)", nil},
		{"[T](a.md)", nil},
		{"-[T](a.md)", nil},
		{"# [T](a.md)", nil},
		{"", nil},
	} {
		if diff := cmp.Diff(tc.want, parseIndexEntry(tc.line)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.line, diff)
		}
	}
}

func TestIndexEntryKey(t *testing.T) {
	for target, want := range map[string]string{
		"a.md":            "a.md",
		"./a.md":          "a.md",
		"a.md#part":       "a.md",
		"a%20b.md":        "a b.md",
		"cafe\u0301.md":   "café.md",
		"%E6%B5%8B.md":    "测.md",
		"d/../a.md":       "a.md",
		"%2e%2e%2fx.md":   "%2e%2e%2fx.md", // never decoded into a way out
		"bad%ff.md":       "bad%ff.md",
		"team//x/./y.md":  "team/x/y.md",
		"../other/far.md": "../other/far.md",
	} {
		e := IndexEntry{Target: target}
		if got := e.Key(); got != want {
			t.Errorf("key of %q = %q, want %q", target, got, want)
		}
	}
}

const index = "\ufeff---\nname: index\n---\n# Memory\n\n- [A](a.md) — first\n<!-- - [Hidden](hidden.md) -->\n" +
	"<!--\n- [Hidden](hidden2.md)\n-->\n```\n- [Code](code.md)\n<!--\n```\n- [B](b.md) — second <!-- note -->\n" +
	"prose with `<!--` in code\n- [C](./c.md)\n<!-- never closed\n- [D](d.md)"

func TestParseIndex(t *testing.T) {
	x := ParseIndex([]byte(index))
	if diff := cmp.Diff(index, string(x.Render())); diff != "" {
		t.Errorf("Render (-want +got):\n%s", diff)
	}
	var keys []string
	for _, e := range x.Entries() {
		keys = append(keys, e.Key())
	}
	if diff := cmp.Diff([]string{"a.md", "b.md", "c.md", "d.md"}, keys); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestGhostsAndMissing(t *testing.T) {
	x := ParseIndex([]byte("- [A](a.md)\n- [B](./sub/b.md)\n- [Gone](gone.md)\n"))
	paths := []Path{"sub/b.md", "new.md", "a.md", "MEMORY.md", "sub/MEMORY.md"}
	if got := x.Ghosts(paths); len(got) != 1 || got[0].Target != "gone.md" {
		t.Errorf("ghosts %v, want gone.md", got)
	}
	if diff := cmp.Diff([]Path{"new.md"}, x.Missing(paths)); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func TestFormatIndexEntry(t *testing.T) {
	for _, e := range []IndexEntry{
		{Title: "T", Target: "a.md"},
		{Title: "T", Target: "a.md", Hook: "hook"},
		{Title: "T", Target: "a b(1).md", Hook: "hook", Type: "project", Date: "2026-03-05"},
		{Title: "T", Target: "a.md", Type: "user"},
		{Title: "单元", Target: "feedback_单元.md", Hook: "用真实的数据库（不要 mock）"},
	} {
		line := FormatIndexEntry(e)
		if got := parseIndexEntry(strings.TrimSuffix(line, "\n")); got == nil || *got != e {
			t.Errorf("%+v is written %q and read %+v", e, line, got)
		}
	}
	if got := FormatIndexEntry(IndexEntry{Title: "a\nb", Target: "a.md", Hook: "c\r\nd"}); got != "- [a b](a.md) — c d\n" {
		t.Errorf("line ends: %q", got)
	}
}

func TestCutIndex(t *testing.T) {
	lines := func(n int, text string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "- [T](f%d.md) — %s\n", i, text)
		}
		return b.String()
	}
	head := "---\nname: x\n---\n"
	comment := "<!--\n" + strings.Repeat("note\n", 300) + "-->\n"
	for _, tc := range []struct {
		name, in string
		lines    int
		cut      int
	}{
		{"within", lines(3, "x"), 3, 0},
		{"exactly the cap", lines(200, "x"), 200, 0},
		{"201 lines", lines(201, "x"), 200, 1},
		{"no line end at the end", strings.TrimSuffix(lines(200, "x"), "\n"), 200, 0},
		{"frontmatter and comments do not count", head + comment + lines(200, "x"), 200, 0},
		{"25 KB first", lines(150, strings.Repeat("y", 230)), 100, 50},
		{"multi-byte text at the border", lines(150, strings.Repeat("记", 77)), 100, 50},
		{"one line too long for all", "- [T](a.md) — " + strings.Repeat("z", 25_000) + "\n- [U](b.md)\n", 0, 2},
		{"empty", "", 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			loaded, cut := CutIndex([]byte(tc.in))
			if countLines(loaded) != tc.lines || cut != tc.cut {
				t.Errorf("loaded %d lines (%d bytes), cut %d entries; want %d and %d", countLines(loaded), len(loaded), cut, tc.lines, tc.cut)
			}
		})
	}
	exact := strings.Repeat(strings.Repeat("a", 249)+"\n", 100)
	if loaded, _ := CutIndex([]byte(exact)); len(loaded) != MaxIndexBytes {
		t.Errorf("an index of exactly %d bytes is cut to %d", MaxIndexBytes, len(loaded))
	}
	if loaded, _ := CutIndex([]byte("b" + exact)); len(loaded) != MaxIndexBytes-249 {
		t.Errorf("one byte more: %d bytes are loaded", len(loaded))
	}
}

func TestStripIndex(t *testing.T) {
	want := "# Memory\n\n- [A](a.md) — first\n```\n- [Code](code.md)\n<!--\n```\n- [B](b.md) — second \n" +
		"prose with `<!--` in code\n- [C](./c.md)\n<!-- never closed\n- [D](d.md)"
	if diff := cmp.Diff(want, string(StripIndex([]byte(index)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCommentInCodeSpanHidesNothing(t *testing.T) {
	in := "write `<!--` first\n- [A](a.md)\nthen -->\n"
	if got := string(StripIndex([]byte(in))); got != in {
		t.Errorf("stripped to %q", got)
	}
	if got := ParseIndex([]byte(in)).Entries(); len(got) != 1 {
		t.Errorf("entries %v, want a.md", got)
	}
}

func TestIndexWarnings(t *testing.T) {
	long := "---\nname: x\n---\n- [T](a.md) — " + strings.Repeat("记", 140) + "\n" // 154 characters
	var got []string
	for _, v := range IndexWarnings("MEMORY.md", []byte(long+strings.Repeat("- [T](a.md)\n", 200))) {
		got = append(got, fmt.Sprintf("%d %s", v.Line, v.Rule))
	}
	if diff := cmp.Diff([]string{"4 " + RuleIndexLineLong, "0 " + RuleIndexOverCap}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := IndexWarnings("MEMORY.md", []byte("- [T](a.md) — "+strings.Repeat("记", 136)+"\n")); got != nil {
		t.Errorf("150 characters of three bytes: %v", got)
	}
}

func indexSeeds(f *testing.F) {
	for _, s := range []string{index, "- [T](a.md) — x\r\n- [U](b.md)", "<!--\n-->\n", "<!-- a --> - [T](a.md) <!-- b -->\n", "```\n<!--\n", "-->", "---\n---\n", "\ufeff- [T](a.md)\n", "a\n<!--", "x <!-- y\nz --> - [T](a.md)\n"} {
		f.Add([]byte(s))
	}
	f.Add(bytes.Repeat([]byte("- [记](记.md)\n"), 250))
	f.Add([]byte(strings.Repeat("- [a](a.md) — "+strings.Repeat("记", 60)+"\n", 150)))
}

func FuzzParseIndex(f *testing.F) {
	indexSeeds(f)
	f.Fuzz(func(t *testing.T, content []byte) {
		x := ParseIndex(content)
		if !bytes.Equal(x.Render(), content) {
			t.Fatalf("%q renders as %q", content, x.Render())
		}
		for _, l := range x.Lines {
			if len(l.Raw) == 0 || bytes.Count(l.Raw, []byte("\n")) > 1 {
				t.Fatalf("line %q of %q", l.Raw, content)
			}
		}
	})
}

func FuzzCutIndex(f *testing.F) {
	indexSeeds(f)
	f.Fuzz(func(t *testing.T, content []byte) {
		before := bytes.Clone(content)
		stripped := StripIndex(content)
		loaded, cut := CutIndex(content)
		if !bytes.Equal(before, content) {
			t.Fatal("the content was changed")
		}
		if len(loaded) > MaxIndexBytes || countLines(loaded) > MaxIndexLines {
			t.Fatalf("%d bytes, %d lines", len(loaded), countLines(loaded))
		}
		if !bytes.HasPrefix(stripped, loaded) {
			t.Fatalf("loaded %q is no prefix of %q", loaded, stripped)
		}
		if len(loaded) < len(stripped) && len(loaded) > 0 && loaded[len(loaded)-1] != '\n' {
			t.Fatalf("cut within a line: %q", loaded)
		}
		if utf8.Valid(content) && !utf8.Valid(loaded) {
			t.Fatalf("cut within a character: %q", loaded)
		}
		if cut < 0 || cut > 0 && len(loaded) == len(stripped) {
			t.Fatalf("%d entries cut of %d bytes, %d loaded", cut, len(stripped), len(loaded))
		}
		IndexWarnings("MEMORY.md", content)
	})
}
