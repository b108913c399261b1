package verify_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/lifecycle/verify"
)

func TestCitations(t *testing.T) {
	for text, want := range map[string]string{
		"in `internal/hub/server.go:42` and `./scripts/deploy.sh --dry-run`": "path internal/hub/server.go, path scripts/deploy.sh",
		"see `docs/guide/` and ``pkg/a.ts#L10-L20``.":                        "path docs/guide, path pkg/a.ts",
		"`docs/说明.md`": "path docs/说明.md",
		"run `make test`, `npm run build` and `pnpm run lint --fix`":            "command make test, command npm run build, command pnpm run lint",
		"`ParsePath()`, `memory.ParseIndex`, `snake_case`, `Type::method_name`": "symbol ParsePath, symbol ParseIndex, symbol snake_case, symbol method_name",
		// What is no citation, or not to be told from something else.
		"internal/hub/server.go without quotes":                                                      "",
		"`https://host/a/b.go` `/etc/app/a.conf` `../x/a.go` `~/a/b.go` `$HOME/a.go` `a/*/b.go`":     "",
		"`path/to/file.go` `internal/DIR/x.go` `foo/bar.go` `<dir>/x.go` `dist/app.js` `feat/login`": "",
		"`make -C sub test` `make VERBOSE=1 test` `npm install` `npm test` `go test ./...`":          "",
		"`true` `main` `README.md` `config.json` `HTTP_PROXY` `Get` `v1.2.3` `127.0.0.1`":            "",
		"```\n`internal/hub/server.go`\n```\n":                                                       "",
		"an open ` quote":                                                                            "",
		"once `a/b/c.go`, twice `a/b/c.go`":                                                          "path a/b/c.go",
	} {
		var got []string
		for _, c := range verify.Citations([]byte(text)) {
			got = append(got, fmt.Sprintf("%s %s", c.Kind, c.Text))
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	if n := len(verify.Citations([]byte(strings.Repeat("`a/b/c", 1) + "`" + manyPaths(500)))); n != verify.MaxCitations {
		t.Errorf("%d citations of one memory", n)
	}
}

func manyPaths(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " `src/a/file%d.go`", i)
	}
	return b.String()
}

// tree makes a repository with git of these files, all of them tracked.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "init", "-q")
	git(t, dir, "add", "-A")
	return dir
}

func git(t testing.TB, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=test", "-c", "user.email=test@example.com"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func missing(t *testing.T, dir, text string) []string {
	t.Helper()
	r, err := verify.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	list, err := r.Missing(t.Context(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, c := range list {
		got = append(got, fmt.Sprintf("%d %s", c.Line, c.Text))
	}
	return got
}

func TestMissing(t *testing.T) {
	dir := tree(t, map[string]string{
		"internal/hub/server.go": "package hub\n\nfunc ServeAll() {}\n",
		"web/docs/guide.md":      "text",
		"docs/other.md":          "text",
		"Makefile":               ".PHONY: lint\nlint:\n\tgolangci-lint run\ntest unit: lint\n\tgo test\nV := 1\n",
		"package.json":           `{"scripts":{"build":"tsc"}}`,
		"sparse/a.go":            "package sparse",
	})
	if err := os.Remove(filepath.Join(dir, "sparse/a.go")); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"`internal/hub/server.go` has `ServeAll`":                    {},
		"`internal/hub/old.go`\n`internal/gone/`":                    {"1 internal/hub/old.go", "2 internal/gone"},
		"`internal/hub/server.go` has `ServeSome` and `hub.OldFn()`": {"1 ServeSome", "1 OldFn"},
		"`make lint`, `make test`, `make unit`, `npm run build`":     {},
		"`make deploy`\n\n`npm run deploy`":                          {"1 make deploy", "3 npm run deploy"},
		"`docs/guide.md`, seen from web/":                            {},
		"another repository's `backend/api/user.go`":                 {},
		"the library's `useEffect` and `toMatchSnapshot()`":          {},
		"not checked out, but git's: `sparse/a.go`":                  {},
		"`internal/hub/server.go/deeper.go`":                         {},
	} {
		if diff := cmp.Diff(want, missing(t, dir, text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	// From a worktree of its own, in which the file is still there.
	git(t, dir, "commit", "-qm", "all")
	worktree := filepath.Join(t.TempDir(), "wt")
	git(t, dir, "worktree", "add", "-q", worktree)
	git(t, dir, "rm", "-q", "internal/hub/server.go")
	const cites = "`internal/hub/server.go`"
	if got := missing(t, filepath.Join(worktree, "internal"), cites); len(got) != 0 {
		t.Errorf("in the worktree: %v", got)
	}
	if got := missing(t, dir, cites); len(got) != 0 {
		t.Errorf("with its whole directory gone, it may be another repository's: %v", got)
	}
	if _, err := verify.Open(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a repository: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := verify.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if _, err := r.Missing(ctx, []byte("`docs/other.md` `NoSuchName`")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A path out of the tree says nothing of what is there.
func TestStaysInTheTree(t *testing.T) {
	dir := tree(t, map[string]string{"docs/a.md": "x"})
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	if got := missing(t, dir, "`elsewhere/of/tree.go`"); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// The documents of this project cite hundreds of its paths, commands and names, all of
// them there: what is called missing is a false alarm, or a document to be mended.
func TestNoFalseAlarmsOnTheProjectsOwnDocuments(t *testing.T) {
	r, err := verify.Open(".")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("these sources lie in no repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	var files []string
	for _, glob := range []string{"../../../docs/*.md", "../../../*.md"} {
		list, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, list...)
	}
	cited := map[verify.Kind]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range verify.Citations(text) {
			cited[c.Kind]++
		}
		gone, err := r.Missing(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range gone {
			t.Errorf("%s:%d: %s %s", filepath.Base(file), c.Line, c.Kind, c.Text)
		}
	}
	t.Logf("%d documents cite %v", len(files), cited)
	if cited[verify.Path] < 50 || cited[verify.Symbol] < 50 || cited[verify.Command] < 5 {
		t.Errorf("%d documents cite %v: too few to measure by", len(files), cited)
	}
}

// BenchmarkQuick is what the check adds to a prompt at worst: five memories with ten
// citations each, all gone, so that git's list of 20,000 files is read and searched up to
// its bound.
func BenchmarkQuick(b *testing.B) {
	files := map[string]string{}
	for i := range 200 {
		files[fmt.Sprintf("src/package%d/file.go", i)] = "package x\n"
	}
	dir := tree(b, files)
	// More files by name alone.
	index, err := os.ReadFile(filepath.Join(dir, ".git/index"))
	if err != nil {
		b.Fatal(err)
	}
	for len(index) < 20_000*100 {
		index = append(index, index...)
	}
	if err := os.WriteFile(filepath.Join(dir, ".git/index"), index, 0o600); err != nil {
		b.Fatal(err)
	}
	var text strings.Builder
	for i := range 10 {
		fmt.Fprintf(&text, "A line of text that cites `src/package%d/gone.go` and more.\n%s", i, strings.Repeat("Text.\n", 60))
	}
	for b.Loop() {
		r, err := verify.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		found := 0
		for range 5 {
			found += len(r.Quick([]byte(text.String())))
		}
		if found == 0 || found == 50 {
			b.Fatalf("%d of 50 are found to be gone; some are to be, up to the bound", found)
		}
		_ = r.Close()
	}
}
