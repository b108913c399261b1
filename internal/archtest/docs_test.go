package archtest

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/memory"
)

// root is the repository's.
var root = filepath.Join("..", "..")

// documents returns what people read, by path below the root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/*/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			docs[strings.TrimPrefix(filepath.ToSlash(name), "../../")] = string(text)
		}
	}
	if len(docs) < 5 || docs["README.md"] == "" {
		t.Fatalf("found %d documents", len(docs))
	}
	return docs
}

var (
	fence    = regexp.MustCompile("(?ms)^```.*?^```$")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
	testName = regexp.MustCompile("`(?:([a-z0-9/]+)\\.)?((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")
)

// brokenLinks returns the relative links of a document that lead to no file.
func brokenLinks(name, text string) (broken []string) {
	for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		u, err := url.Parse(m[1])
		if err == nil && (u.Scheme != "" || u.Path == "") {
			continue // elsewhere, or within the page
		}
		if err == nil {
			_, err = os.Stat(filepath.Join(root, filepath.Dir(name), filepath.FromSlash(u.Path)))
		}
		if err != nil {
			broken = append(broken, m[1])
		}
	}
	return broken
}

// TestDocsLinkToFiles: nobody follows a link into nothing.
func TestDocsLinkToFiles(t *testing.T) {
	for name, text := range documents(t) {
		for _, to := range brokenLinks(name, text) {
			t.Errorf("%s: the link to %s leads nowhere", name, to)
		}
	}
	planted := "[a](none.md) [b](sync.md) [c](https://example.com) [d](#here) [e](sync.md#x)\n```\n[f](none2.md)\n```\n"
	if got := brokenLinks("docs/x.md", planted); !slices.Equal(got, []string{"none.md"}) {
		t.Errorf("broken links of the planted text: %v", got)
	}
}

// tests returns the tests of the repository: where each name stands, below internal.
func tests(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	base := filepath.Join(root, "internal")
	err := filepath.WalkDir(base, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone since it was listed
		}
		dir, rerr := filepath.Rel(base, filepath.Dir(name))
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = append(found[m[1]], filepath.ToSlash(dir))
		}
		return errors.Join(err, rerr)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestDocsNameRealTests: a promise that names a test which is gone is held by nothing.
// docs/guarantees.md names each with its directory.
func TestDocsNameRealTests(t *testing.T) {
	have := tests(t)
	promised := 0
	for name, text := range documents(t) {
		for _, m := range testName.FindAllStringSubmatch(text, -1) {
			dir, test := m[1], m[2]
			switch {
			case dir == "" && name == "docs/guarantees.md":
				t.Errorf("%s: %s: say the directory too, as in hub.%s", name, test, test)
			case dir == "" && len(have[test]) == 0, dir != "" && !slices.Contains(have[test], dir):
				t.Errorf("%s: no test %s in %q", name, test, dir)
			}
			if name == "docs/guarantees.md" {
				promised++
			}
		}
	}
	if promised < 50 {
		t.Errorf("docs/guarantees.md names %d tests; is its form still read?", promised)
	}
	if !slices.Contains(have["TestDocsNameRealTests"], "archtest") || len(have["TestNoSuchThing"]) > 0 {
		t.Error("the list of tests is not read")
	}
}

// TestPathExamplesBreakTheirRules: the table of path rules shows, for each rule, paths
// that this rule refuses.
func TestPathExamplesBreakTheirRules(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `(path-[a-z-]+)` \\| ([^|]*) \\|")
	example := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for _, m := range row.FindAllStringSubmatch(documents(t)["docs/memory-files.md"], -1) {
		if m[1] == "path-not-nfc" {
			continue // told in words, since it cannot be seen
		}
		for _, e := range example.FindAllStringSubmatch(m[2], -1) {
			rows++
			_, err := memory.ParsePath(strings.NewReplacer("<NUL>", "\x00").Replace(e[1]))
			var refused *memory.Error
			if !errors.As(err, &refused) || len(refused.Violations) != 1 || refused.Violations[0].Rule != m[1] {
				t.Errorf("docs/memory-files.md: %s is shown for %s: %v", e[0], m[1], err)
			}
		}
	}
	if rows < 15 {
		t.Errorf("%d examples read", rows)
	}
}
