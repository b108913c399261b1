package memdir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
)

// world is a home and a disk of repositories.
type world struct {
	t    *testing.T
	home string
	work string
	env  map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: filepath.Join(top, "home"), work: filepath.Join(top, "work"), env: map[string]string{}}
	w.mkdir(w.home)
	w.mkdir(w.work)
	return w
}

func (w *world) mkdir(dir string) string {
	w.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	return dir
}

func (w *world) write(name, text string) {
	w.t.Helper()
	w.mkdir(filepath.Dir(name))
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) resolver() *memdir.Resolver {
	return &memdir.Resolver{
		Getenv:  func(k string) string { return w.env[k] },
		Home:    w.home,
		Managed: filepath.Join(w.home, "managed.json"),
	}
}

func (w *world) resolve(cwd, seen string) memdir.Place {
	w.t.Helper()
	p, err := w.resolver().Resolve(cwd, seen)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// computed is where a client makes the directory of a project whose root is root.
func (w *world) computed(root string) string {
	return filepath.Join(w.home, ".claude", "projects", memdir.Key(root), "memory")
}

func TestKey(t *testing.T) {
	for path, want := range map[string]string{
		"/home/ann/src/payments-api": "-home-ann-src-payments-api",
		"/home/ann/.config/x_y":      "-home-ann--config-x-y",
		`C:\Users\ann`:               "C--Users-ann",
		"/项目甲":                       "----",
		"/项目乙":                       "----",  // not injective: never decoded
		"/a😀b":                       "-a--b", // two code units
		"/cafe\u0301":                "-caf-", // one character in NFC
		"":                           "",
	} {
		if got := memdir.Key(path); got != want {
			t.Errorf("Key(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestRoots(t *testing.T) {
	w := newWorld(t)
	main := w.mkdir(filepath.Join(w.work, "main"))
	w.mkdir(filepath.Join(main, ".git"))
	sub := w.mkdir(filepath.Join(main, "a", "b"))

	tree := w.mkdir(filepath.Join(w.work, "feature"))
	treeGit := w.mkdir(filepath.Join(main, ".git", "worktrees", "feature"))
	w.write(filepath.Join(treeGit, "commondir"), "../..\n")
	w.write(filepath.Join(tree, ".git"), "gitdir: "+treeGit+"\n")

	module := w.mkdir(filepath.Join(main, "lib"))
	w.mkdir(filepath.Join(main, ".git", "modules", "lib"))
	w.write(filepath.Join(module, ".git"), "gitdir: ../.git/modules/lib\n")

	bare := w.mkdir(filepath.Join(w.work, "proj.git"))
	bareGit := w.mkdir(filepath.Join(bare, "worktrees", "one"))
	w.write(filepath.Join(bareGit, "commondir"), "../..\n")
	bareTree := w.mkdir(filepath.Join(w.work, "one"))
	w.write(filepath.Join(bareTree, ".git"), "gitdir: "+bareGit+"\n")

	plain := w.mkdir(filepath.Join(w.work, "笔记"))
	linked := filepath.Join(w.work, "link")
	if err := os.Symlink(sub, linked); err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct{ cwd, root string }{
		"checkout":               {main, main},
		"subdirectory":           {sub, main},
		"linked worktree":        {tree, main},
		"submodule":              {module, module},
		"bare repository's tree": {bareTree, bare},
		"no git":                 {plain, plain},
		"through a link":         {linked, main},
	} {
		t.Run(name, func(t *testing.T) {
			p := w.resolve(test.cwd, "")
			if p.Root != test.root || p.Dir != w.computed(test.root) || p.Source != memdir.SourceComputed {
				t.Errorf("got %+v, want root %s and directory %s", p, test.root, w.computed(test.root))
			}
		})
	}
}

// TestPrecedence goes from the weakest to the strongest; each wins over all before it.
func TestPrecedence(t *testing.T) {
	w := newWorld(t)
	root := w.mkdir(filepath.Join(w.work, "repo"))
	w.mkdir(filepath.Join(root, ".git"))
	sub := w.mkdir(filepath.Join(root, "sub"))
	seen := ""
	check := func(what, dir string, source memdir.Source) {
		t.Helper()
		if p := w.resolve(sub, seen); p.Dir != dir || p.Source != source {
			t.Errorf("%s: got %s by %s, want %s by %s", what, p.Dir, p.Source, dir, source)
		}
	}
	setting := func(file, dir string) { w.write(file, `{"autoMemoryDirectory":"`+dir+`","model":"x"}`) }

	check("nothing", w.computed(root), memdir.SourceComputed)
	w.mkdir(w.computed(sub))
	check("a client keyed by the working directory", w.computed(sub), memdir.SourceExisting)
	w.mkdir(w.computed(root))
	check("the root's is there too", w.computed(root), memdir.SourceExisting)
	seen = filepath.Join(w.home, "elsewhere", "projects", "k", "memory", "team", "x.md")
	check("evidence", filepath.Join(w.home, "elsewhere", "projects", "k", "memory"), memdir.SourceEvidence)
	setting(filepath.Join(w.home, ".claude", "settings.json"), "~/user-memories")
	check("user settings", filepath.Join(w.home, "user-memories"), memdir.SourceSetting)
	setting(filepath.Join(root, ".claude", "settings.json"), "/srv/project")
	check("project settings", "/srv/project", memdir.SourceSetting)
	setting(filepath.Join(root, ".claude", "settings.local.json"), "/srv/local")
	check("local settings", "/srv/local", memdir.SourceSetting)
	setting(filepath.Join(sub, ".claude", "settings.local.json"), "/srv/sub")
	check("local settings of the working directory", "/srv/sub", memdir.SourceSetting)
	setting(filepath.Join(w.home, "managed.json"), "/srv/managed")
	check("managed settings", "/srv/managed", memdir.SourceSetting)
	w.env["CLAUDE_COWORK_MEMORY_PATH_OVERRIDE"] = "/srv/override"
	check("environment", "/srv/override", memdir.SourceEnvironment)
}

func TestBadSettingsAreIgnoredAndNamed(t *testing.T) {
	w := newWorld(t)
	root := w.mkdir(filepath.Join(w.work, "repo"))
	for _, dir := range []string{"memories", "./x", "/", "~/", "~/..", "~", "//host/share", "a\\u0000b"} {
		w.write(filepath.Join(root, ".claude", "settings.json"), `{"autoMemoryDirectory":"`+dir+`"}`)
		p := w.resolve(root, "")
		if p.Dir != w.computed(root) || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "settings.json") {
			t.Errorf("%q: got %+v, want the computed place and a note", dir, p)
		}
	}
	w.write(filepath.Join(root, ".claude", "settings.json"), `{"autoMemoryDirectory":`)
	if p := w.resolve(root, ""); len(p.Notes) != 1 {
		t.Errorf("broken JSON: got %+v, want a note", p)
	}
	w.env["CLAUDE_COWORK_MEMORY_PATH_OVERRIDE"] = "relative"
	if _, err := w.resolver().Resolve(root, ""); err == nil || !strings.Contains(err.Error(), "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE") {
		t.Errorf("relative override: got %v, want an error that names the variable", err)
	}
}

func TestLongPathIsFoundByItsBeginning(t *testing.T) {
	w := newWorld(t)
	root := filepath.Join(w.work, strings.Repeat("long-name/", 30)+"repo")
	w.mkdir(root)
	p := w.resolve(root, "")
	name := filepath.Base(filepath.Dir(p.Dir))
	if p.Source != memdir.SourceComputed || len(name) < 202 || len(name) > 208 {
		t.Fatalf("got %+v, want 200 characters, a dash and a hash", p)
	}
	made := w.mkdir(filepath.Join(w.home, ".claude", "projects", memdir.Key(root)[:200]+"-1x2y3z", "memory"))
	if p := w.resolve(root, ""); p.Dir != made || p.Source != memdir.SourceExisting {
		t.Errorf("got %+v, want %s, which the client made", p, made)
	}
	w.mkdir(filepath.Join(w.home, ".claude", "projects", memdir.Key(root)[:200]+"-other", "memory"))
	if p := w.resolve(root, ""); len(p.Notes) != 1 {
		t.Errorf("two candidates: got %+v, want a note", p)
	}
}

func TestOtherBases(t *testing.T) {
	w := newWorld(t)
	root := w.mkdir(filepath.Join(w.work, "repo"))
	w.env["CLAUDE_CODE_PROJECT_DIR_NAME"] = "named"
	if p := w.resolve(root, ""); p.Dir != w.computed(root) {
		t.Errorf("a name without a configuration directory counts: %s", p.Dir)
	}
	w.env["CLAUDE_CONFIG_DIR"] = "/srv/config"
	if p := w.resolve(root, ""); p.Dir != "/srv/config/projects/named/memory" {
		t.Errorf("got %s", p.Dir)
	}
	w.env["CLAUDE_CODE_PROJECT_DIR_NAME"] = "../../etc"
	if _, err := w.resolver().Resolve(root, ""); err == nil {
		t.Error("a name with slashes is taken")
	}
	delete(w.env, "CLAUDE_CODE_PROJECT_DIR_NAME")
	w.env["CLAUDE_CODE_REMOTE_MEMORY_DIR"] = "/srv/remote"
	if p := w.resolve(root, ""); p.Dir != "/srv/remote/projects/"+memdir.Key(root)+"/memory" {
		t.Errorf("got %s", p.Dir)
	}
	w.env = map[string]string{}
	w.home = ""
	if _, err := w.resolver().Resolve(root, ""); err == nil {
		t.Error("no home: want an error that says what to set")
	}
}

// TestOff: a person who turned the client's memory off is heard, by the strongest place
// that says anything, and where memories live is known all the same.
func TestOff(t *testing.T) {
	w := newWorld(t)
	project := w.mkdir(filepath.Join(w.work, "p", ".git"))
	project = filepath.Dir(project)
	user, local := filepath.Join(w.home, ".claude", "settings.json"), filepath.Join(project, ".claude", "settings.local.json")
	check := func(what, want string) {
		t.Helper()
		p := w.resolve(project, "")
		if p.Off != want || p.Dir == "" {
			t.Errorf("%s: off by %q, want %q; directory %q", what, p.Off, want, p.Dir)
		}
	}
	check("nothing said", "")
	w.write(user, `{"autoMemoryEnabled": false}`)
	check("the person's settings", "autoMemoryEnabled in "+user)
	w.write(local, `{"autoMemoryEnabled": true, "autoMemoryDirectory": "`+w.mkdir(filepath.Join(w.work, "m"))+`"}`)
	check("on again for one project", "")
	w.write(local, `{"autoMemoryEnabled": false, "autoMemoryDirectory": "`+filepath.Join(w.work, "m")+`"}`)
	check("off beside another directory", "autoMemoryEnabled in "+local)
	w.env["CLAUDE_CODE_DISABLE_AUTO_MEMORY"] = "0"
	check("the variable forces it on", "")
	w.env["CLAUDE_CODE_DISABLE_AUTO_MEMORY"] = "1"
	w.write(user, `{}`)
	w.write(local, `{}`)
	check("the variable", "CLAUDE_CODE_DISABLE_AUTO_MEMORY")
	delete(w.env, "CLAUDE_CODE_DISABLE_AUTO_MEMORY")
	w.env["CLAUDE_CODE_SIMPLE"] = "true"
	check("a bare client", "CLAUDE_CODE_SIMPLE")
	w.env["CLAUDE_COWORK_MEMORY_PATH_OVERRIDE"] = w.mkdir(filepath.Join(w.work, "o"))
	check("beside a named directory", "CLAUDE_CODE_SIMPLE")
}
