package memory

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestDefinitionsGolden pins the wording that prompts, --help and docs show.
func TestDefinitionsGolden(t *testing.T) {
	var b strings.Builder
	for _, typ := range AllTypes() {
		d := typ.Definition()
		fmt.Fprintf(&b, "%s (%s)\nholds: %s\nsave: %s\nuse: %s\nscope: %s\n", d.Type, d.DefaultScope, d.Holds, d.SaveWhen, d.Use, d.ScopeNote)
		for _, e := range d.Examples {
			fmt.Fprintf(&b, "  person: %s\n  saves: %s\n", e.Person, e.Saves)
		}
		b.WriteString("\n")
	}
	const golden = "testdata/types.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("run with -update if the change is meant (-want +got):\n%s", diff)
	}
}

// TestTypesPage holds the page about memory files against the definitions.
func TestTypesPage(t *testing.T) {
	const page, begin, end = "../../docs/memory-files.md", "<!-- types: written by go test ./internal/memory -update -->\n", "<!-- /types -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	is, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no part between %q and %q", page, begin, end)
	}
	var b strings.Builder
	b.WriteString("\n| type | holds | saved when | how it is used | private or shared |\n|---|---|---|---|---|\n")
	for _, typ := range AllTypes() {
		d := typ.Definition()
		where := map[Scope]string{ScopePrivate: "private", ScopeTeam: "shared"}[d.DefaultScope]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s. %s |\n", d.Type, d.Holds, d.SaveWhen, d.Use, where, d.ScopeNote)
	}
	b.WriteString("\n")
	for _, typ := range AllTypes() {
		for _, e := range typ.Definition().Examples {
			fmt.Fprintf(&b, "- `%s`: of “%s” is saved “%s”\n", typ, e.Person, e.Saves)
		}
	}
	b.WriteString("\n")
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+b.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(b.String(), is); diff != "" {
		t.Errorf("%s: run with -update if the change is meant (-want +got):\n%s", page, diff)
	}
}

func TestDefinitionsAreWhole(t *testing.T) {
	for _, typ := range AllTypes() {
		d := typ.Definition()
		if d.Type != typ || d.Holds == "" || d.SaveWhen == "" || d.Use == "" || d.ScopeNote == "" || len(d.Examples) < 2 {
			t.Errorf("%s: %+v", typ, d)
		}
	}
	if TypeUser.Definition().DefaultScope != ScopePrivate || TypeFeedback.Definition().DefaultScope != ScopePrivate {
		t.Error("user and feedback are private unless said otherwise")
	}
	if diff := cmp.Diff(TypeDefinition{}, Type("note").Definition()); diff != "" {
		t.Errorf("a type outside the set has a definition:\n%s", diff)
	}
	TypeUser.Definition().Examples[0].Saves = "changed"
	if TypeUser.Definition().Examples[0].Saves == "changed" {
		t.Error("a caller can change the definition for others")
	}
}

func TestParseType(t *testing.T) {
	for _, s := range []string{"user", "feedback", "project", "reference"} {
		if got, ok := ParseType(s); !ok || string(got) != s {
			t.Errorf("ParseType(%q) = %q, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "User", "users", " user", "note"} {
		if got, ok := ParseType(s); ok {
			t.Errorf("ParseType(%q) = %q", s, got)
		}
	}
	if got := TypeNames(); got != "user, feedback, project, reference" {
		t.Errorf("TypeNames = %q", got)
	}
}

func TestTypeOf(t *testing.T) {
	for _, tc := range []struct {
		path Path
		typ  string
		want Type
		ok   bool
	}{
		{"a.md", "project", TypeProject, true},
		{"user_a.md", "project", TypeProject, true},
		{"user_a.md", "", TypeUser, true},
		{"d/reference_x.md", "", TypeReference, true},
		{"user_d/a.md", "", "", false}, // the file's name, not a directory's
		{"user-a.md", "", "", false},
		{"user.md", "", "", false},
		{"user_a.md", "note", "", false},
	} {
		got, ok := TypeOf(tc.path, Frontmatter{Type: tc.typ})
		if ok != tc.ok || ok && got != tc.want {
			t.Errorf("TypeOf(%q, %q) = %q, %v; want %q, %v", tc.path, tc.typ, got, ok, tc.want, tc.ok)
		}
	}
}
