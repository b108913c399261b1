package archtest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLayers holds the repository against the table.
func TestLayers(t *testing.T) {
	pkgs, err := load(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) == 0 {
		t.Fatal("no packages found; is this the module's tree?")
	}
	for _, line := range check(pkgs) {
		t.Error(line)
	}
}

// TestBreachesAreFound gives each rule a package that breaks it, and one beside it
// that does not.
func TestBreachesAreFound(t *testing.T) {
	imports := func(dir, path string) pkg {
		return pkg{dir: dir, imports: map[string]string{path: dir + "/x.go"}}
	}
	const in = module + "/internal/"
	const proto = module + "/api/proto/memsvc/v1"
	tests := []struct {
		name string
		pkg  pkg
		want string // part of the message; empty when allowed
	}{
		{"memory names nobody", imports("internal/memory", in+"wire"), "imports nothing"},
		{"memory reads no disk", imports("internal/memory", "os"), "the disk"},
		{"memory knows no foreign module", imports("internal/memory", "github.com/google/uuid"), "is pure"},
		{"memory may use x/text", imports("internal/memory", "golang.org/x/text/unicode/norm"), ""},
		{"memory may not look like x/text", imports("internal/memory", "golang.org/x/textual"), "is pure"},
		{"reconcile logs nothing", imports("internal/agent/reconcile", "log/slog"), "a log"},
		{"reconcile knows no wire type", imports("internal/agent/reconcile", proto), "is pure"},
		{"reconcile knows memory", imports("internal/agent/reconcile", in+"memory"), ""},
		{"memory reads no clock", pkg{dir: "internal/memory", clock: []string{"internal/memory/x.go:3"}}, "reads the clock"},
		{"syncer reads the clock", pkg{dir: "internal/agent/syncer", clock: []string{"internal/agent/syncer/x.go:3"}}, ""},
		{"service knows no wire type", imports("internal/hub/service", proto), "only"},
		{"rpc knows wire types", imports("internal/hub/rpc", proto), ""},
		{"driver outside its backend", imports("internal/hub/service", "modernc.org/sqlite"), "only"},
		{"driver in its backend", imports("internal/hub/store/sqlite", "modernc.org/sqlite"), ""},
		{"sql outside a backend", imports("internal/agent/syncstate", "database/sql"), "only"},
		{"backends are strangers", imports("internal/hub/store/sqlite", in+"hub/store/inmem"), "may import"},
		{"agent knows no hub", imports("internal/agent", in+"hub/service"), "never know each other"},
		{"hub knows no agent", imports("internal/hub", in+"agent/reconcile"), "never know each other"},
		{"only the root knows backends", imports("internal/hub/rpc", in+"hub/store/sqlite"), "may import"},
		{"the root knows backends", imports("internal/hub", in+"hub/store/sqlite"), ""},
		{"test package in a program", imports("internal/hub", in+"hubtest"), "only tests"},
		{"test package in a test package", imports("internal/simtest", in+"hubtest"), ""},
		{"testing ships nowhere", imports("internal/hub/service", "testing"), "only"},
		{"a program knows its root only", imports("cmd/memsvc", in+"hub/rpc"), "may import"},
		{"a program knows its root", imports("cmd/memsvc", in+"hub"), ""},
		{"the agent program knows no hub", imports("cmd/memsync-agent", in+"hub"), "may import"},
		{"tools of the repository are free", imports("hack/bench", in+"hub/store/sqlite"), ""},
		{"tools of the repository may measure", imports("hack/bench", in+"secretscan/secretscantest"), ""},
		{"a companion knows its package", imports("internal/hub/store/storetest", in+"hub/store"), ""},
		{"a companion knows test libraries", imports("internal/hub/store/storetest", "pgregory.net/rapid"), ""},
		{"a companion knows no more", imports("internal/hub/store/storetest", in+"hub/service"), "may import"},
		{"a companion does not ship", imports("internal/hub/store/sqlite", in+"hub/store/storetest"), "only tests"},
		{"a companion of nobody", pkg{dir: "internal/hub/store/faketest"}, "not on the map"},
		{"status codes in domain code", imports("internal/hub/service", "google.golang.org/grpc/status"), "only"},
		{"init", pkg{dir: "internal/hub/rpc", inits: []string{"internal/hub/rpc/x.go:9"}}, "declares init"},
		{"unknown package", pkg{dir: "internal/utils"}, "not on the map"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := strings.Join(check([]pkg{test.pkg}), "\n")
			if test.want == "" && got != "" {
				t.Errorf("allowed import refused: %s", got)
			}
			if test.want != "" && !strings.Contains(got, test.want) {
				t.Errorf("got %q, want a message with %q", got, test.want)
			}
		})
	}
}

// TestLoadSeesEveryShippedFile writes a small module and checks that files of other
// systems count, that generated files may have init, and that tests, testdata and nested modules do not.
func TestLoadSeesEveryShippedFile(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"internal/memory/a.go":          "package memory\n\nimport clock \"time\"\n\nvar t = clock.Now()\n",
		"internal/memory/b_windows.go":  "package memory\n\nimport \"os\"\n\nfunc init() { os.Exit(1) }\n",
		"internal/memory/c.pb.go":       "// Code generated by a tool. DO NOT EDIT.\n\npackage memory\n\nfunc init() {}\n",
		"internal/memory/a_test.go":     "package memory\n\nimport \"net\"\n",
		"internal/memory/testdata/x.go": "package x\n\nimport \"net\"\n",
		"internal/tools/go.mod":         "module tools\n",
		"internal/tools/x.go":           "package tools\n\nimport \"net\"\n",
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pkgs, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(check(pkgs), "\n")
	want := strings.Join([]string{
		"internal/memory/a.go:5 reads the clock: memory is pure; take the time as an argument",
		"internal/memory/b_windows.go imports os: memory is pure; this lets in the disk",
		"internal/memory/b_windows.go:5 declares init: nothing registers itself; let the composition root call a constructor",
	}, "\n")
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestMapIsWrittenDown holds docs/ARCHITECTURE.md against the packages that exist:
// whoever reads the map must find each of them on it.
func TestMapIsWrittenDown(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "## The map")
	if !found {
		t.Fatal("docs/ARCHITECTURE.md has no section \"The map\"")
	}
	pkgs, err := load(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pkgs {
		name, inside := strings.CutPrefix(p.dir, "internal/")
		if _, row := layers[name]; !row {
			continue // a companion, or TestLayers' business
		}
		// A row may name siblings by their last segment: `hub/store/inmem`, `sqlite`.
		last := name[strings.LastIndexByte(name, '/')+1:]
		if inside && !strings.Contains(table, "`"+name+"`") && !strings.Contains(table, ", `"+last+"`") {
			t.Errorf("internal/%s is not in the table of docs/ARCHITECTURE.md", name)
		}
	}
}

// TestMapSaysWhatMayBeImported holds the last column of that table against the rules:
// each package that a row may import is named, and no other.
func TestMapSaysWhatMayBeImported(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## The map")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || !strings.Contains(cells[0], "`") {
			continue
		}
		rows++
		column := cells[2]
		if strings.Contains(column, "all of") || strings.Contains(column, "tests only") {
			continue // the roots, and what tests stand on
		}
		words := map[string]bool{}
		for _, w := range strings.FieldsFunc(column, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz/", r) }) {
			words[w] = true
		}
		allowed, first := map[string]bool{}, ""
		for i, name := range strings.Split(cells[0], "`") {
			if i%2 == 0 {
				continue
			}
			if first == "" {
				first = name
			} else if _, known := layers[name]; !known { // a sibling by its last segment
				name = first[:strings.LastIndexByte(first, '/')+1] + name
			}
			r, known := ruleOf(name)
			if !known && name != "tools" {
				t.Errorf("the table names %s, which has no rule", name)
			}
			for _, imported := range r.internal {
				allowed[strings.TrimSuffix(imported, "/...")] = true
			}
		}
		for imported := range allowed {
			last := imported[strings.LastIndexByte(imported, '/')+1:]
			if !words[imported] && !words[last] {
				t.Errorf("%s may import %s; the table does not say so", first, imported)
			}
		}
		for name := range layers {
			last := name[strings.LastIndexByte(name, '/')+1:]
			if words[last] && last != "command" && !slices.ContainsFunc(slices.Collect(maps.Keys(allowed)), func(a string) bool { return a[strings.LastIndexByte(a, '/')+1:] == last }) {
				t.Errorf("the table lets %s import %s; the rules do not", first, last)
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d rows were read", rows)
	}
}

// TestTableNamesKnownPackages catches a typing error in the table itself: every
// name on a right side must be on a left side.
func TestTableNamesKnownPackages(t *testing.T) {
	known := func(name string) bool {
		tree, isTree := strings.CutSuffix(name, "/...")
		for have := range layers {
			if have == name || isTree && underPath(tree, have) {
				return true
			}
		}
		return false
	}
	for name, r := range layers {
		for _, allowed := range r.internal {
			if !known(allowed) {
				t.Errorf("layers[%q] allows unknown package %q", name, allowed)
			}
		}
	}
	for prefix, owners := range restricted {
		for _, owner := range owners {
			if !known(owner) && !strings.HasPrefix(owner, "api/") && !strings.HasPrefix(owner, "hack/") {
				t.Errorf("restricted[%q] names unknown package %q", prefix, owner)
			}
		}
	}
}
