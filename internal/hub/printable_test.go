package hub

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/memory"
)

// TestPrintable shows what a terminal would obey, and leaves alone what people write.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		`plain "x" \y, 名前, é, 👍`: `plain "x" \y, 名前, é, 👍`,
		"a\x1b[31mb":             `a\x1b[31mb`,
		"two\nrows\tcolumns\r":   `two\nrows\tcolumns\r`,
		"\u202eright to left":    `\u202eright to left`,
		"zero\u200bwidth\u2028":  `zero\u200bwidth\u2028`,
		"cut\xffoff":             `cut\xffoff`,
		"\U000e0041":             `\U000e0041`,
	} {
		if got := printable(text); got != want {
			t.Errorf("printable(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestTableShowsAnything prints what a list may get from a hub that took it in before.
func TestTableShowsAnything(t *testing.T) {
	var out bytes.Buffer
	e := &env{stdout: &out}
	err := e.table("ID\tNAME", func(row func(...any)) { row(1, "a\nb\tc\x1b[2J") })
	if want := "ID  NAME\n1   a\\nb\\tc\\x1b[2J\n"; err != nil || out.String() != want {
		t.Errorf("printed %q (%v), want %q", out.String(), err, want)
	}
}

// TestLeftOut names what an export of a newer hub has no place for.
func TestLeftOut(t *testing.T) {
	if got := leftOut([]memory.Unfit{{Path: "gone.md2", Deleted: true}}); got != "" {
		t.Errorf("of a deleted one: %s", got)
	}
	many := make([]memory.Unfit, 12)
	for i := range many {
		many[i].Path = fmt.Sprint("../", i)
	}
	got := leftOut(many)
	if !strings.Contains(got, `"../0", "../1"`) || !strings.HasSuffix(got, `"../9" and 2 more`) {
		t.Error(got)
	}
}
