package agent

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strings"
	"testing"
	"testing/iotest"

	"io"
)

// hostile holds what terminals act upon: commands in both codings, a title, a return, a
// bidi override, an invisible space, bytes that are no text.
const hostile = "a\x1b[2J\x1b]0;t\x07\u009b31m\rb\u202ec\u200bd\x9be\u007f\n"

// calm is hostile as a terminal may have it.
const calm = "a·[2J·]0;t··31m·b·c·d·e·\n"

// A teammate's text of a conflict moves no cursor.
func TestConflictTextsArePrintedVisibly(t *testing.T) {
	var out bytes.Buffer
	c := &command{App: App{Stdout: &out}}
	var texts conflictTexts
	texts.ID, texts.Path, texts.HubRevision = "1", "x\x1b.md", 2
	texts.Ours, texts.Theirs = "a\x1b[2J\r\nb", "a\x1b]0;t\x07\u009b\nb\n"
	texts.print(c, "ours")
	if got := out.String(); strings.ContainsAny(got, "\x1b\x07\r\u009b") || !strings.Contains(got, "a·[2J\nb\n") {
		t.Errorf("printed: %q", got)
	}
}

// Words that are written with joiners stay as they are; a joiner alone hides nothing.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		hostile: calm,
		"می\u200cخواهم 👩\u200d💻 日本": "می\u200cخواهم 👩\u200d💻 日本",
		"a\u200db\u200c":    "a·b·",
		"م\u200c\u200cم":    "م\u200c·م",
		"tab\tand\nline":    "tab\tand\nline",
		"\ufeffmark \ufffd": "·mark ·",
	} {
		if got := visibleText(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := visible("a\nb\tc"); got != "a·b·c" {
		t.Errorf("one line: %q", got)
	}
}

// However the bytes come, the terminal is shown the same.
func TestVisibleWriter(t *testing.T) {
	text := hostile + "日本 👩\u200d💻\r\nend\r"
	want := calm + "日本 👩\u200d💻\nend·"
	for name, r := range map[string]io.Reader{
		"at once":      strings.NewReader(text),
		"byte by byte": iotest.OneByteReader(strings.NewReader(text)),
		"in halves":    iotest.HalfReader(strings.NewReader(text)),
	} {
		var out bytes.Buffer
		w := &visibleWriter{to: &out}
		if _, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		flush(w)
		got := out.String()
		if name != "at once" {
			got = strings.ReplaceAll(got, "👩·💻", "👩\u200d💻") // a joiner that came without its word
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	var out bytes.Buffer
	w := &visibleWriter{to: &out}
	_, _ = w.Write([]byte("cut \xe6\x97"))
	flush(w)
	flush(w)
	if out.String() != "cut ··" {
		t.Errorf("an unfinished end: %q", out.String())
	}
}

// JSON means what it meant, and moves no cursor.
func TestJSONIsPrintedVisibly(t *testing.T) {
	in := map[string]string{"text": strings.ToValidUTF8(hostile, "") + "\U000e0041 日本 می\u200cخواهم"}
	var out bytes.Buffer
	if err := printJSON(&out, in); err != nil {
		t.Fatal(err)
	}
	if got := visibleText(out.String()); got != out.String() {
		t.Errorf("printed: %q", out.String())
	}
	var back map[string]string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back["text"] != in["text"] {
		t.Errorf("read back: %q, %v; want %q", back["text"], err, in["text"])
	}
}

// Nothing goes past the stream that Main looks after.
func TestOnlyMainKnowsStandardOutput(t *testing.T) {
	set := token.NewFileSet()
	pkgs, err := parser.ParseDir(set, ".", func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0) //nolint:staticcheck // names alone
	if err != nil {
		t.Fatal(err)
	}
	uses := 0
	for _, pkg := range pkgs {
		ast.Inspect(pkg, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "os" && (sel.Sel.Name == "Stdout" || sel.Sel.Name == "Stderr") {
				t.Errorf("%s: os.%s; use the command's", set.Position(n.Pos()), sel.Sel.Name)
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "c" && sel.Sel.Name == "stdout" {
				uses++ // the editor's
			}
			return true
		})
	}
	if uses != 1 {
		t.Errorf("%d uses of the stream as it came; an editor has one", uses)
	}
}
