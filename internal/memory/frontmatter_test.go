package memory

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// known is what callers read most of a Frontmatter.
type known struct {
	Name, Description, Type, NodeType, Session string
	Modified                                   string
	Pinned                                     bool
	Body                                       string
	Keys                                       string
}

func knownOf(fm Frontmatter, body []byte) known {
	k := known{Name: fm.Name, Description: fm.Description, Type: fm.Type, NodeType: fm.NodeType,
		Session: fm.OriginSessionID, Pinned: fm.Pinned, Body: string(body)}
	if !fm.Modified.IsZero() {
		k.Modified = fm.Modified.Format(time.RFC3339Nano)
	}
	var keys []string
	for _, f := range fm.Fields {
		if f.Key != "" {
			keys = append(keys, f.Key)
		}
	}
	k.Keys = strings.Join(keys, " ")
	return k
}

const nested = "---\nname: testing\ndescription: \"Real database: no mocks\"\nmetadata: \n  node_type: memory\n  type: feedback\n" +
	"  originSessionId: 0b7c\n  modified: 2026-03-05T10:11:12.345Z\n  pinned: true\n---\n\nBody\n"

func TestParseFrontmatter(t *testing.T) {
	flat := "---\nname: testing\ndescription: Real database\ntype: feedback\n---\nBody\n"
	flatWant := known{Name: "testing", Description: "Real database", Type: "feedback", Body: "Body\n", Keys: "name description type"}
	nestedWant := known{Name: "testing", Description: "Real database: no mocks", Type: "feedback", NodeType: "memory", Session: "0b7c",
		Modified: "2026-03-05T10:11:12.345Z", Pinned: true, Body: "\nBody\n",
		Keys: "name description metadata metadata.node_type metadata.type metadata.originSessionId metadata.modified metadata.pinned"}
	crlf := func(k known) known { k.Body = strings.ReplaceAll(k.Body, "\n", "\r\n"); return k }
	with := func(k known, f func(*known)) known { f(&k); return k }
	for _, tc := range []struct {
		name, in string
		want     known
	}{
		{"flat", flat, flatWant},
		{"nested, with a blank after metadata:", nested, nestedWant},
		{"byte order mark", "\ufeff" + flat, flatWant},
		{"CRLF", strings.ReplaceAll(flat, "\n", "\r\n"), crlf(flatWant)},
		{"CRLF, nested", strings.ReplaceAll(nested, "\n", "\r\n"), crlf(nestedWant)},
		{"closing fence at the end of the file", "---\ntype: user\n---", known{Type: "user", Keys: "type"}},
		{"blanks after the fences", "--- \ntype: user\n---\t\nBody", known{Type: "user", Body: "Body", Keys: "type"}},
		{"empty", "---\n---\nBody\n", known{Body: "Body\n"}},
		{"none", "Body\n---\n", known{Body: "Body\n---\n"}},
		{"four dashes are no fence", "----\ntype: user\n---\n", known{Body: "----\ntype: user\n---\n"}},
		{"no content", "", known{}},
		{"aliases", "---\ntitle: T\ndate: 2026-03-05\ntype: project\n---\n",
			known{Name: "T", Type: "project", Modified: "2026-03-05T00:00:00Z", Keys: "title date type"}},
		{"name before title", "---\ntitle: T\nname: N\n---\n", known{Name: "N", Keys: "title name"}},
		{"flat type before nested", "---\nmetadata:\n  type: project\ntype: feedback\n---\n",
			known{Type: "feedback", Keys: "metadata metadata.type type"}},
		{"single quotes, quotes doubled", "---\ndescription: 'it''s'\n---\n", known{Description: "it's", Keys: "description"}},
		{"escapes", "---\ndescription: \"a\\tb\"\n---\n", known{Description: "a\tb", Keys: "description"}},
		{"folded text", "---\ndescription: >\n  two\n  lines\n\nname: n\n---\n", known{Name: "n", Description: "two lines\n", Keys: "description name"}},
		{"comment at the end of a value", "---\nname: n # why\n---\n", known{Name: "n", Keys: "name"}},
		{"metadata in flow style", "---\nmetadata: {type: project, pinned: true}\n---\n", known{Type: "project", Pinned: true, Keys: "metadata"}},
		{"quoted keys", "---\n\"type\": user\n---\n", known{Type: "user", Keys: "type"}},
		{"unknown fields and lists", "---\ntags:\n- a\n- b\nname: n\n---\n", known{Name: "n", Keys: "tags name"}},
		{"Chinese", "---\nname: 单元测试\ndescription: 用真实的数据库：不要 mock\n---\n正文\n",
			known{Name: "单元测试", Description: "用真实的数据库：不要 mock", Body: "正文\n", Keys: "name description"}},
		{"comments only", "---\n# nothing\n\n---\nB", known{Body: "B"}},
		{"deeper metadata", "---\nmetadata:\n    a:\n      b: c\n    type: project\n---\n", known{Type: "project", Keys: "metadata metadata.a metadata.type"}},
		{"lone carriage returns and Unicode line ends", "---\na: \"x\ry\u2028z\"\nname: n\n---\n", known{Name: "n", Keys: "a name"}},
		{"a time without zone", "---\nmodified: 2026-03-05 10:00:00\n---\n", with(known{Keys: "modified"}, func(k *known) { k.Modified = "2026-03-05T10:00:00Z" })},
		{"no time at all", "---\nmodified: yesterday\n---\n", known{Keys: "modified"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fm, body, err := ParseFrontmatter([]byte(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, knownOf(fm, body)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkParts(t, []byte(tc.in), fm, body)
		})
	}
}

func TestParseFrontmatterReports(t *testing.T) {
	for _, tc := range []struct {
		name, in, rule string
		line           int
	}{
		{"no closing fence", "---\nname: n\n", RuleFrontmatterUnclosed, 1},
		{"colon in a plain value", "---\nname: n\ndescription: use foo: bar\n---\n", RuleFrontmatterInvalid, 3},
		{"a tab as indent", "---\nmetadata:\n\ttype: user\n---\n", RuleFrontmatterInvalid, 3},
		{"no mapping", "---\njust words\n---\n", RuleFrontmatterInvalid, 2},
		{"a list", "---\n- a\n---\n", RuleFrontmatterInvalid, 2},
		{"a flow mapping", "---\n{type: user}\n---\n", RuleFrontmatterInvalid, 2},
		{"a key twice", "---\ntype: feedback\nname: n\ntype: user\n---\n", RuleFrontmatterInvalid, 4},
		{"a nested key twice", "---\nmetadata:\n  type: a\n  type: b\n---\n", RuleFrontmatterInvalid, 4},
		{"an alias", "---\na: &x user\ntype: *x\n---\n", RuleFrontmatterInvalid, 2},
		{"an alias bomb", "---\na: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n---\n", RuleFrontmatterInvalid, 2},
		{"two documents", "---\nname: n\n... \nb: c\n---\n", RuleFrontmatterInvalid, 2},
		{"deep nesting", "---\na: " + strings.Repeat("[", 12000) + "\n---\n", RuleFrontmatterInvalid, 2},
		{"too long", "---\nname: " + strings.Repeat("n", MaxFrontmatterBytes) + "\n---\n", RuleFrontmatterTooLong, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fm, body, err := ParseFrontmatter([]byte(tc.in))
			var e *Error
			if !errors.As(err, &e) || e.Reason != ReasonInvalidContent || len(e.Violations) != 1 {
				t.Fatalf("error %v, want one violation of %s", err, ReasonInvalidContent)
			}
			if v := e.Violations[0]; v.Rule != tc.rule || v.Line != tc.line {
				t.Errorf("rule %s at line %d, want %s at %d", v.Rule, v.Line, tc.rule, tc.line)
			}
			if fm.Fields != nil {
				t.Errorf("fields of what cannot be parsed: %v", fm.Fields)
			}
			checkParts(t, []byte(tc.in), fm, body)
		})
	}
}

func TestFieldsKeepBytes(t *testing.T) {
	in := "---\n# head\nname: 'n' # why\n\ndescription: |\n  a\n\n  b\n# between\nmetadata: \n  # inside\n  type: project\n  x:\n    - 1\n\nlast: 1\n\n---\n"
	fm, _, err := ParseFrontmatter([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range fm.Fields {
		got = append(got, fmt.Sprintf("%d %s=%q %q", f.Line, f.Key, f.Value, f.Raw))
	}
	want := []string{
		`2 ="" "# head\n"`,
		`3 name="n" "name: 'n' # why\n"`,
		`4 ="" "\n"`,
		`5 description="a\n\nb\n" "description: |\n  a\n\n  b\n"`,
		`9 ="" "# between\n"`,
		`10 metadata="" "metadata: \n  # inside\n"`,
		`12 metadata.type="project" "  type: project\n"`,
		`13 metadata.x="" "  x:\n    - 1\n"`,
		`15 ="" "\n"`,
		`16 last="1" "last: 1\n"`,
		`17 ="" "\n"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// checkParts: the parts of a content, put together, are the content, and every
// offset points at what it names.
func checkParts(t testing.TB, content []byte, fm Frontmatter, body []byte) {
	t.Helper()
	if !fm.Present {
		if !bytes.Equal(body, content) {
			t.Fatalf("body %q of a content without frontmatter", body)
		}
		return
	}
	if !(0 < fm.YAMLStart && fm.YAMLStart <= fm.YAMLEnd && fm.YAMLEnd < fm.BodyStart && fm.BodyStart <= len(content)) {
		t.Fatalf("offsets %d, %d, %d of %d", fm.YAMLStart, fm.YAMLEnd, fm.BodyStart, len(content))
	}
	if !bytes.Equal(content[fm.BodyStart:], body) {
		t.Fatalf("body %q", body)
	}
	if fm.Fields == nil {
		return
	}
	at, line := fm.YAMLStart, 2
	for _, f := range fm.Fields {
		if f.Offset != at || f.Line != line || !bytes.Equal(f.Raw, content[at:at+len(f.Raw)]) || len(f.Raw) == 0 {
			t.Fatalf("field %q: offset %d line %d, want %d and %d; raw %q", f.Key, f.Offset, f.Line, at, line, f.Raw)
		}
		at += len(f.Raw)
		line += bytes.Count(f.Raw, []byte("\n"))
	}
	if at != fm.YAMLEnd {
		t.Fatalf("fields end at %d, the block at %d", at, fm.YAMLEnd)
	}
}

var frontmatterSeeds = []string{
	nested,
	"---\nname: n\n---\n",
	"\ufeff---\r\nname: 'x'\r\n---",
	"---\nmetadata: {type: user}\n---\n",
	"---\nmetadata:\n  a: 1\n  b:\n    c: 2\nz: |\n  t\n\n---\nb",
	"---\ndescription: \"a: b\"\ntitle: 'it''s'\n---\n",
	"---\na: 'x\n  y'\n---\n",
	"---\n? a\n: b\n---\n",
	"---\na: &x [*x]\n---\n",
	"---\nname: a # b\n\n# c\nx:\n- 1\n---\n",
	"---\nmetadata: \n  type: x\n type: y\n---\n",
	"---\nmetadata: plain\n  type: y\n---\n",
}

func FuzzParseFrontmatter(f *testing.F) {
	for _, s := range frontmatterSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		before := bytes.Clone(content)
		fm, body, _ := ParseFrontmatter(content)
		if !bytes.Equal(before, content) {
			t.Fatal("the content was changed")
		}
		checkParts(t, content, fm, body)
	})
}

// FuzzPlainFields holds the fast scanner to the YAML parser: what it claims, YAML
// reads in the same way.
func FuzzPlainFields(f *testing.F) {
	for _, s := range frontmatterSeeds {
		if fm, ok := splitFrontmatter([]byte(s)); ok && fm.Present {
			f.Add([]byte(s)[fm.YAMLStart:fm.YAMLEnd])
		}
	}
	for _, s := range []string{"a: b\n", "a:  \nmetadata:\n  b: c\n", "a: 'b'\n", "a: b:\n", "a: 0x1\nmetadata:\n\n  b: \"c\"\n\nd: e\n", "a: \u2028\n", "a: b\r\n\r\nc: d", "y: n\nnull: x\n", strings.Repeat("F", 1100) + ": b\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, block []byte) {
		fields, plain := scanPlainFields(block, 0)
		if !plain {
			return
		}
		want, _, err := parseYAMLFields(block, 0)
		if err != nil {
			t.Fatalf("%q is plain, but YAML says %v", block, err)
		}
		type pair struct{ Key, Value string }
		pairs := func(fs []Field) (out []pair) {
			for _, f := range fs {
				if f.Key != "" {
					out = append(out, pair{f.Key, f.Value})
				}
			}
			return out
		}
		if diff := cmp.Diff(pairs(want), pairs(fields)); diff != "" {
			t.Fatalf("%q (-yaml +plain):\n%s", block, diff)
		}
	})
}
