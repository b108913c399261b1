package instructions_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/lifecycle/instructions"
)

// tree is a home, a project with a subdirectory, and an administrator's file.
type tree struct {
	t                  *testing.T
	home, top, sub, up string
}

func newTree(t *testing.T) tree {
	t.Helper()
	up, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return tree{t: t, up: up, home: filepath.Join(up, "home"), top: filepath.Join(up, "work"), sub: filepath.Join(up, "work", "api")}
}

func (w tree) write(name, text string) {
	w.t.Helper()
	name = filepath.Join(w.up, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w tree) load(files ...string) []instructions.Source {
	w.t.Helper()
	for i, f := range files {
		files[i] = filepath.Join(w.top, f)
	}
	list, err := instructions.Load(w.t.Context(), instructions.Options{
		Dir: w.sub, Top: w.top, Config: filepath.Join(w.home, ".claude"), Home: w.home, Managed: filepath.Join(w.up, "managed.md"), Files: files,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// short names each source by kind and file, with a mark for those that do not apply.
func (w tree) short(list []instructions.Source) []string {
	var out []string
	for _, s := range list {
		rel, err := filepath.Rel(w.up, s.File)
		if err != nil {
			w.t.Fatal(err)
		}
		mark := ""
		if s.Skipped != "" {
			mark = " -"
		}
		out = append(out, fmt.Sprintf("%s %s%s", s.Kind, rel, mark))
	}
	return out
}

func TestOrderAndKinds(t *testing.T) {
	w := newTree(t)
	for _, name := range []string{"managed.md", "home/.claude/CLAUDE.md", "home/.claude/rules/mine.md", "CLAUDE.md", "work/CLAUDE.md", "work/.claude/CLAUDE.md",
		"work/.claude/rules/deep/all.md", "work/CLAUDE.local.md", "work/api/CLAUDE.md"} {
		w.write(name, "text of "+name+"\n")
	}
	w.write("work/.claude/rules/ts.md", "---\npaths: [\"**/*.{ts,tsx}\"]\n---\ntypes\n")
	w.write("work/.claude/rules/go.md", "---\npaths: api/**/*.go, cmd/*.go\n---\nerrors\n")
	want := []string{
		"managed managed.md", "user home/.claude/CLAUDE.md", "rule home/.claude/rules/mine.md", "directory CLAUDE.md",
		"project work/CLAUDE.md", "project work/.claude/CLAUDE.md", "rule work/.claude/rules/deep/all.md", "rule work/.claude/rules/go.md", "rule work/.claude/rules/ts.md -",
		"local work/CLAUDE.local.md", "directory work/api/CLAUDE.md",
	}
	if diff := cmp.Diff(want, w.short(w.load("api/x/y.go"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, s := range w.load("web/a.tsx") {
		if strings.HasSuffix(s.File, "ts.md") && (s.Skipped != "" || s.Text != "types\n") {
			t.Errorf("the rule for TypeScript is %+v", s)
		}
	}
}

func TestImports(t *testing.T) {
	w := newTree(t)
	w.write("work/CLAUDE.md", "See @docs/style.md, and @~/mine.md.\nMail ann@example.com.\nNot `@docs/code.md` nor\n```\n@docs/code.md\n```\n@missing.md @../outside.md\n")
	w.write("work/docs/style.md", "style\n@one.md")
	w.write("work/docs/code.md", "code")
	w.write("home/mine.md", "mine")
	w.write("outside.md", "out")
	for i, next := range []string{"two.md", "three.md", "four.md", "five.md"} {
		w.write("work/docs/"+[]string{"one.md", "two.md", "three.md", "four.md"}[i], "@"+next)
	}
	w.write("work/docs/five.md", "too deep")
	got := w.short(w.load())
	want := []string{
		"project work/CLAUDE.md", "import work/docs/style.md", "import work/docs/one.md", "import work/docs/two.md", "import work/docs/three.md",
		"import work/docs/four.md -", "import home/mine.md", "import outside.md",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, s := range w.load() {
		outside := strings.HasSuffix(s.File, "outside.md") || strings.HasSuffix(s.File, "mine.md")
		if s.External != outside {
			t.Errorf("%s external: %v", s.File, s.External)
		}
	}
	w.write("work/docs/style.md", "@../CLAUDE.md @style.md")
	for _, s := range w.load() {
		if s.Kind == instructions.Import && strings.Contains(s.File, "work") && !strings.HasSuffix(s.File, "style.md") && s.Skipped == "" {
			t.Errorf("a cycle goes on: %+v", s)
		}
	}
}

// TestOnlyTheProjectsImportsAreAskedFor: what a person's own files for all projects, their
// rules and the administrator's import, at whatever depth, is read without a question.
func TestOnlyTheProjectsImportsAreAskedFor(t *testing.T) {
	w := newTree(t)
	w.write("managed.md", "@managed/one.md")
	w.write("managed/one.md", "@two.md")
	w.write("managed/two.md", "x")
	w.write("home/.claude/CLAUDE.md", "@yours/one.md")
	w.write("home/.claude/yours/one.md", "@two.md")
	w.write("home/.claude/yours/two.md", "x")
	w.write("home/.claude/rules/r.md", "@../yours/rule.md")
	w.write("home/.claude/yours/rule.md", "x")
	w.write("work/CLAUDE.md", "@../outside/one.md")
	w.write("work/CLAUDE.local.md", "@../outside/local.md")
	w.write("work/.claude/rules/r.md", "@../../../outside/rule.md")
	for _, name := range []string{"two", "local", "rule"} {
		w.write("outside/"+name+".md", "x")
	}
	w.write("outside/one.md", "@two.md")
	var asked, read []string
	for _, s := range w.load() {
		if s.Kind != instructions.Import {
			continue
		}
		rel, err := filepath.Rel(w.up, s.File)
		if err != nil {
			t.Fatal(err)
		}
		if s.External {
			asked = append(asked, rel)
		} else {
			read = append(read, rel)
		}
	}
	slices.Sort(asked)
	slices.Sort(read)
	if diff := cmp.Diff([]string{"outside/local.md", "outside/one.md", "outside/rule.md", "outside/two.md"}, asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"home/.claude/yours/one.md", "home/.claude/yours/rule.md", "home/.claude/yours/two.md", "managed/one.md", "managed/two.md"}, read); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

func TestCommentsAndFrontmatterAreLeftOut(t *testing.T) {
	w := newTree(t)
	w.write("work/CLAUDE.md", "\ufeff---\nowner: x\n---\nkeep\n<!-- one line -->\n<!--\nseveral\nlines\n-->\nkeep <!-- inline stays --> too\n```\n<!-- in code -->\n```\n<!-- a --> after\n")
	want := "keep\nkeep <!-- inline stays --> too\n```\n<!-- in code -->\n```\n after\n"
	if list := w.load(); len(list) != 1 || list[0].Text != want {
		t.Errorf("got %+v", list)
	}
}

func TestOddFiles(t *testing.T) {
	w := newTree(t)
	w.write("work/CLAUDE.md", strings.Repeat("x", instructions.MaxFileBytes+1))
	w.write("work/.claude/CLAUDE.md/x", "a directory")
	if err := os.Symlink(filepath.Join(w.top, "CLAUDE.md"), filepath.Join(w.up, "CLAUDE.md")); err != nil {
		t.Fatal(err)
	}
	for _, s := range w.load() {
		if s.Skipped == "" || s.Text != "" {
			t.Errorf("%+v", s)
		}
	}
}

func TestGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("this machine has no git")
	}
	w := newTree(t)
	w.write("work/a.txt", "a")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		cmd.Dir = w.top
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "-b", "trunk")
	git("add", "a.txt")
	git("commit", "-q", "-m", "first")
	w.write("work/b.txt", "b")
	g := instructions.ReadGitWithin(t.Context(), w.top, time.Minute)
	if g.Branch != "trunk" || len(g.Commits) != 1 || !strings.HasSuffix(g.Commits[0], " first") || !cmp.Equal(g.Status, []string{"?? b.txt"}) {
		t.Errorf("got %+v", g)
	}
	if diff := cmp.Diff(instructions.Git{}, instructions.ReadGit(t.Context(), t.TempDir())); diff != "" {
		t.Errorf("outside a repository:\n%s", diff)
	}
}
