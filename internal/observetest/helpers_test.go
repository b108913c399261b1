package observetest

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the repository's, as seen from this package.
const root = "../.."

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func stringsReader(s string) io.Reader { return strings.NewReader(s) }

func note(name, text string) string {
	return "---\nname: " + name + "\ndescription: d\ntype: project\n---\n" + text + "\n"
}

// fakeSecret is a well-formed and worthless credential of a kind that the guard knows.
func fakeSecret() string { return "ghp_" + "T3stOnlyT3stOnlyT3st" + "OnlyT3stOnly1234" }

// readAll returns the files that match, by path below the repository's root.
func readAll(t *testing.T, pattern string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, pattern))
	must(t, err)
	if len(names) == 0 {
		t.Fatalf("%s: no such file", pattern)
	}
	out := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		must(t, err)
		rel, err := filepath.Rel(root, name)
		must(t, err)
		out[rel] = string(text)
	}
	return out
}
