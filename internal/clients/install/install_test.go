package install_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/clients/install"
)

// home is somebody's home directory, where this program lies in a path with a space.
type home struct {
	t   *testing.T
	env install.Env
}

func newHome(t *testing.T) *home {
	dir := t.TempDir()
	return &home{t, install.Env{
		Home: dir, Dir: filepath.Join(dir, "work"), Getenv: func(string) string { return "" },
		Command: install.Command{Exe: filepath.Join(dir, "my programs", "memsync-agent"), Args: []string{"--state-dir", filepath.Join(dir, "it's here")}},
	}}
}

func client(t *testing.T, name string) *install.Client {
	t.Helper()
	for _, c := range install.Clients() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no client is called %s", name)
	return nil
}

func (h *home) write(name, text string) {
	h.t.Helper()
	file := filepath.Join(h.env.Home, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
		h.t.Fatal(err)
	}
}

// read returns a file's text, "(none)" where it is not.
func (h *home) read(name string) string {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.env.Home, name))
	if os.IsNotExist(err) {
		return "(none)"
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return string(b)
}

// do installs or removes, and returns how many files changed.
func (h *home) do(name string, scope install.Scope, remove bool) int {
	h.t.Helper()
	changes, err := client(h.t, name).Plan(h.env, scope, remove)
	if err == nil {
		err = install.Apply(changes)
	}
	if err != nil {
		h.t.Fatalf("%s: %v", name, err)
	}
	n := 0
	for _, c := range changes {
		if !c.Nothing() {
			n++
		}
	}
	return n
}

// owned are configurations as people have them: every oddity must survive.
var owned = map[string]map[string]string{
	"claude-code": {
		".claude/settings.json": "{\n\t\"model\": \"opus\",\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}\n\t\t],\n\t\t\"PreToolUse\": [\n\t\t\t{\n\t\t\t\t\"matcher\": \"Bash\",\n\t\t\t\t\"hooks\": [{\"type\": \"command\", \"command\": \"memsync-agent-wrapper hook\"}]\n\t\t\t}\n\t\t]\n\t},\n\t\"zebra\": {\"b\": 1, \"a\": 2}\n}",
		".claude.json":          "{\"numStartups\":7,\"mcpServers\":{\"other\":{\"command\":\"x\"}},\"projects\":{\"/a\":{\"k\":[1,2]}}}\n",
	},
	"codex": {
		".codex/config.toml": "# mine\nmodel = \"gpt\" # the best\n\n[mcp_servers.other]\ncommand = \"x\"\nargs = [\n  \"[mcp_servers.memsvc]\",\n]\n\n# about profiles\n[profiles.fast]\nmodel = 'mini'\n\n[[list]]\na = 1\n",
		".codex/hooks.json":  "{\r\n    \"hooks\": {\r\n        \"Stop\": [ ]\r\n    }\r\n}\r\n",
	},
	"gemini":   {".gemini/settings.json": "\ufeff{\n  // comments are allowed here\n  \"theme\": \"x\", /* and here */\n  \"mcpServers\": {\n    \"other\": { \"url\": \"http://x\" }, // the other\n  },\n}\n"},
	"opencode": {".config/opencode/opencode.jsonc": "{\n  \"$schema\": \"https://opencode.ai/config.json\" // last\n}\n"},
	"cursor": {
		".cursor/hooks.json": "{\"version\": 1, \"hooks\": {\"stop\": [{\"command\": \"./x.sh\"}]}}",
		".cursor/mcp.json":   "{\n  \"mcpServers\": {\n    \"other\": {\n      \"command\": \"x\"\n    }\n  }\n}\n",
	},
}

// Installed twice is installed once, and removed leaves every byte as it was.
func TestInstallAndRemove(t *testing.T) {
	for _, c := range install.Clients() {
		for _, scope := range []install.Scope{install.User, install.Project} {
			t.Run(c.Name+" "+string(scope), func(t *testing.T) {
				h := newHome(t)
				prefix := ""
				if scope == install.Project {
					prefix = "work/"
				}
				files := map[string]string{}
				for name, text := range owned[c.Name] {
					if scope == install.Project {
						name = strings.Replace(name, ".config/opencode/", "", 1)
						name = strings.Replace(name, ".claude.json", ".mcp.json", 1)
					}
					files[prefix+name] = text
					h.write(prefix+name, text)
				}
				if h.do(c.Name, scope, false) < len(files) {
					t.Error("a file was not changed")
				}
				installed := map[string]string{}
				for name := range files {
					text := h.read(name)
					installed[name] = text
					if !strings.Contains(text, "memsync-agent") {
						t.Errorf("%s does not name us:\n%s", name, text)
					}
					bare := strings.ReplaceAll(text, ",", "") // one may have been added
					lines := strings.Split(strings.ReplaceAll(files[name], ",", ""), "\n")
					for _, line := range lines {
						if line = strings.Trim(line, " \t\r[]{}"); len(lines) > 2 && !strings.Contains(bare, line) {
							t.Errorf("%s lost %q:\n%s", name, line, text)
						}
					}
				}
				if n := h.do(c.Name, scope, false); n != 0 {
					t.Errorf("installing again changed %d files", n)
				}
				if n := h.do(c.Name, scope, true); n < len(files) {
					t.Errorf("removing changed %d files", n)
				}
				for name, text := range files {
					if got := h.read(name); got != text {
						t.Errorf("%s is not what it was:\n%q\nwant\n%q\nwhile installed:\n%s", name, got, text, installed[name])
					}
				}
				if n := h.do(c.Name, scope, true); n != 0 {
					t.Errorf("removing again changed %d files", n)
				}
			})
		}
	}
}

// Where nothing was, nothing is left, also after a second round.
func TestRemoveWhatWasMade(t *testing.T) {
	for _, c := range install.Clients() {
		h := newHome(t)
		for range 2 {
			h.do(c.Name, install.User, false)
			h.do(c.Name, install.User, true)
		}
		err := filepath.WalkDir(h.env.Home, func(path string, d os.DirEntry, err error) error {
			if err == nil && path != h.env.Home && d.Name() != ".config" { // which many programs share
				t.Errorf("%s: %s is left", c.Name, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Empty objects, lists, files and directories that were there stay, and so does a missing
// line end, also after installing twice from different places.
func TestOddOnesComeBack(t *testing.T) {
	for _, test := range []struct{ client, file, text string }{
		{"gemini", ".gemini/settings.json", "{\n  \"mcpServers\": {}\n}\n"},
		{"gemini", ".gemini/settings.json", "{\n  \"hooks\": {\n    \"BeforeTool\": []\n  },\n  \"mcpServers\": {}\n}"},
		{"claude-code", ".claude/settings.json", "{\"hooks\": {\"Stop\": [], \"Other\": []}}"},
		{"claude-code", ".claude.json", "{}"},
		{"claude-code", ".claude.json", ""},
		{"codex", ".codex/config.toml", "model = \"gpt\""},
		{"codex", ".codex/config.toml", "model = \"gpt\"\n\n"},
		{"codex", ".codex/config.toml", "\r\n"},
		{"cursor", ".cursor/hooks.json", "{\"hooks\": {}}\n"},
		{"cursor", ".cursor/mcp.json", "{\"mcpServers\": {}}"},
		{"opencode", ".config/opencode/opencode.json", "{\"mcp\": {}}\n"},
		{"opencode", ".config/opencode/plugins/other.js", "// mine"},
	} {
		h := newHome(t)
		h.write(test.file, test.text)
		h.do(test.client, install.User, true)
		if got := h.read(test.file); got != test.text {
			t.Errorf("%s %q: removing what was never installed leaves %q", test.file, test.text, got)
		}
		h.do(test.client, install.User, false)
		h.env.Command = install.Command{Exe: "/opt/memsync-agent"}
		h.do(test.client, install.User, false)
		h.do(test.client, install.User, true)
		if got := h.read(test.file); got != test.text {
			t.Errorf("%s %q: is now %q", test.file, test.text, got)
		}
	}
}

// The copy beside a file is the last text without our part: neither a second install nor
// removing puts ours in its place.
func TestBackupIsWithoutOurs(t *testing.T) {
	h := newHome(t)
	const file, first = ".gemini/settings.json", "{\n  \"theme\": \"x\"\n}\n"
	h.write(file, first)
	backup := func(when, want string) {
		t.Helper()
		if got := h.read(file + install.BackupSuffix); got != want {
			t.Errorf("%s the copy is %q, want %q", when, got, want)
		}
	}
	h.do("gemini", install.User, false)
	backup("after installing", first)
	h.env.Command = install.Command{Exe: "/opt/memsync-agent"}
	h.do("gemini", install.User, false)
	backup("after installing again", first)
	h.do("gemini", install.User, true)
	backup("after removing", first)
	second := strings.Replace(first, "x", "y", 1)
	h.write(file, second)
	h.do("gemini", install.User, false)
	backup("after a change and installing", second)
	// Where there is none, what is about to be written over is kept all the same.
	if err := os.Remove(filepath.Join(h.env.Home, file+install.BackupSuffix)); err != nil {
		t.Fatal(err)
	}
	now := h.read(file)
	h.do("gemini", install.User, true)
	backup("after removing without one", now)
	if got := h.read(file); got != second {
		t.Errorf("the file is %q", got)
	}
}

func TestClaudeCodeGetsItsForm(t *testing.T) {
	h := newHome(t)
	h.do("claude-code", install.User, false)
	var settings struct {
		Hooks map[string][]struct {
			Matcher string
			Hooks   []map[string]any
		}
	}
	if err := json.Unmarshal([]byte(h.read(".claude/settings.json")), &settings); err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd", "PreCompact"} {
		groups := settings.Hooks[event]
		if len(groups) != 1 || len(groups[0].Hooks) != 1 {
			t.Fatalf("%s: %+v", event, groups)
		}
		k := groups[0].Hooks[0]
		// The whole command in one line: a version that does not know args would run the
		// program without them.
		line := "'" + h.env.Command.Exe + "' hook " + event + " --state-dir '" + strings.ReplaceAll(h.env.Command.Args[1], "'", `'\''`) + "'"
		if diff := cmp.Diff(map[string]any{"type": "command", "command": line, "timeout": 10.0}, k); diff != "" {
			t.Errorf("%s (-want +got):\n%s", event, diff)
		}
		// What was chosen late comes after any tool.
		if writes := event == "PreToolUse"; writes != strings.Contains(groups[0].Matcher, "Write") {
			t.Errorf("%s for %q", event, groups[0].Matcher)
		}
	}
	// An entry for other tools, as it was once written, takes the form that it has now.
	whole := h.read(".claude/settings.json")
	before, after, _ := strings.Cut(whole, `"PostToolUse": [`)
	h.write(".claude/settings.json", before+`"PostToolUse": [`+strings.Replace(after, `"hooks"`, `"matcher": "Write|Edit", "hooks"`, 1))
	h.do("claude-code", install.User, false)
	if text := h.read(".claude/settings.json"); strings.Contains(text, `"Write|Edit"`) || strings.Count(text, " hook ") != 7 {
		t.Errorf("an entry of old:\n%s", text)
	}
	// Another path of the program takes the old one's place; a person's own keys stay.
	h.write(".claude.json", strings.Replace(h.read(".claude.json"), `"args"`, `"env": {"A": "b"}, "args"`, 1))
	h.env.Command = install.Command{Exe: "/opt/memsync-agent"}
	h.do("claude-code", install.User, false)
	if text := h.read(".claude/settings.json"); strings.Contains(text, "my programs") || strings.Count(text, "/opt/memsync-agent") != 7 {
		t.Errorf("the new path:\n%s", text)
	}
	if text := h.read(".claude.json"); strings.Contains(text, "my programs") || !strings.Contains(text, `"env": {"A": "b"}`) {
		t.Errorf("the new path:\n%s", text)
	}
}

// What an earlier version installed lacks events that came later, and is known to.
func TestEarlierInstallationsAreKnown(t *testing.T) {
	for _, c := range install.Clients() {
		h := newHome(t)
		h.do(c.Name, install.User, false)
		if s := c.Look(h.env); !s.Used || !s.Installed || len(s.Lacks) > 0 {
			t.Errorf("%s, just installed: %+v", c.Name, s)
		}
	}
	h := newHome(t)
	h.do("claude-code", install.User, false)
	whole := h.read(".claude/settings.json")
	before, _, ok := strings.Cut(whole, `"PreCompact"`)
	if !ok {
		t.Fatalf("no PreCompact in\n%s", whole)
	}
	// Somebody else's hook of that event is none of ours.
	h.write(".claude/settings.json", before+`"PreCompact": [{"hooks": [{"type": "command", "command": "say hook"}]}]}}`)
	for _, c := range install.Clients() {
		if c.Name == "claude-code" {
			if diff := cmp.Diff(install.State{Used: true, Installed: true, Lacks: []string{"PreCompact"}}, c.Look(h.env)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
}

// An entry with command and args, as it was once written, gives its place to the line,
// and is removed as ours.
func TestClaudeCodeEntryWithArgs(t *testing.T) {
	old := `{
  "hooks": {
    "Stop": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "/opt/my programs/memsync-agent",
            "args": ["hook", "Stop", "--state-dir", "/x"],
            "timeout": 10
          }
        ]
      },
      {"hooks": [{"type": "command", "command": "say", "args": ["hook"]}]}
    ]
  }
}
`
	h := newHome(t)
	h.write(".claude/settings.json", old)
	h.do("claude-code", install.User, false)
	if text := h.read(".claude/settings.json"); strings.Count(text, `"args"`) != 1 || strings.Contains(text, "/opt") || strings.Count(text, "memsync-agent' hook Stop") != 1 {
		t.Errorf("installed over an old entry:\n%s", text)
	}
	h.write(".claude/settings.json", old)
	h.do("claude-code", install.User, true)
	if text := h.read(".claude/settings.json"); strings.Contains(text, "memsync-agent") || !strings.Contains(text, `"say"`) {
		t.Errorf("an old entry removed:\n%s", text)
	}
}

// The program's path needs no more care than its owner's shell gives it.
func TestShellLines(t *testing.T) {
	h := newHome(t)
	h.do("gemini", install.User, false)
	if text := h.read(".gemini/settings.json"); !strings.Contains(text, `my programs/memsync-agent' hook BeforeTool --state-dir '`) || !strings.Contains(text, `it'\\''s here'`) {
		t.Errorf("got\n%s", text)
	}
	h.do("codex", install.User, false)
	if text := h.read(".codex/config.toml"); !strings.Contains(text, `my programs/memsync-agent'`) || !strings.Contains(text, `it's here"]`) {
		t.Errorf("got\n%s", text)
	}
}

// What cannot be read is named with its line, never quoted, and left alone.
func TestBrokenFiles(t *testing.T) {
	for _, test := range []struct{ client, file, text, want string }{
		{"claude-code", ".claude/settings.json", "{\n  \"a\": hunter2\n}", "line 2"},
		{"claude-code", ".claude/settings.json", "{\n  \"hooks\": []\n}", "hooks: want an object"},
		{"claude-code", ".claude/settings.json", "{\"hooks\": {\"SessionStart\": {}}}", "hooks.SessionStart: want an array"},
		{"claude-code", ".claude.json", "[]", "want an object"},
		{"claude-code", ".claude.json", "{\"mcpServers\": {\"memsvc\": {\"command\": \"hunter2\"}}}", "another program's"},
		{"codex", ".codex/config.toml", "a = 1\nb = hunter2\n", "line 2"},
		{"codex", ".codex/config.toml", "mcp_servers = { other = { command = \"hunter2\" } }\n", "by hand"},
		{"codex", ".codex/config.toml", "[mcp_servers.memsvc]\ncommand = \"hunter2\"\n", "another program's"},
		{"opencode", ".config/opencode/plugins/memsvc.js", "export const hunter2 = 1", "another plugin"},
	} {
		h := newHome(t)
		h.write(test.file, test.text)
		_, err := client(t, test.client).Plan(h.env, install.User, false)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), filepath.FromSlash(test.file)) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", test.text, err, test.want)
		}
		if got := h.read(test.file); got != test.text {
			t.Errorf("%s was changed to %s", test.text, got)
		}
	}
}

// A file that changed between the look and the write is left alone; the former text of
// one that is written stands beside it, and a link keeps being one.
func TestApply(t *testing.T) {
	h := newHome(t)
	h.write("dotfiles/settings.json", "{}\n")
	if err := os.MkdirAll(filepath.Join(h.env.Home, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(h.env.Home, ".claude", "settings.json")
	if err := os.Symlink(filepath.Join(h.env.Home, "dotfiles", "settings.json"), link); err != nil {
		t.Fatal(err)
	}
	changes, err := client(t, "claude-code").Plan(h.env, install.User, false)
	if err != nil {
		t.Fatal(err)
	}
	h.write("dotfiles/settings.json", "{\"a\": 1}\n")
	if err := install.Apply(changes); err == nil || !strings.Contains(err.Error(), "changed meanwhile") || h.read("dotfiles/settings.json") != "{\"a\": 1}\n" {
		t.Errorf("got %v and %s", err, h.read("dotfiles/settings.json"))
	}
	h.do("claude-code", install.User, false)
	fi, err := os.Lstat(link)
	if err != nil || fi.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is one no more: %v, %v", fi, err)
	}
	if fi, err := os.Stat(link); err != nil || fi.Mode().Perm() != 0o640 {
		t.Errorf("mode: %v, %v", fi, err)
	}
	if got := h.read(".claude/settings.json" + install.BackupSuffix); got != "{\"a\": 1}\n" {
		t.Errorf("the former text: %s", got)
	}
}

func TestLook(t *testing.T) {
	h := newHome(t)
	c := client(t, "gemini")
	if s := c.Look(h.env); !cmp.Equal(s, install.State{}) {
		t.Errorf("nobody uses it: %+v", s)
	}
	h.write(".gemini/settings.json", "{}")
	if s := c.Look(h.env); !cmp.Equal(s, install.State{Used: true}) {
		t.Errorf("used: %+v", s)
	}
	h.do("gemini", install.User, false)
	if s := c.Look(h.env); !cmp.Equal(s, install.State{Used: true, Installed: true}) {
		t.Errorf("installed: %+v", s)
	}
}
