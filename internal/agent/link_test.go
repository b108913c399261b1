package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/agent/workspace"
	"github.com/memsvc/memsvc/internal/config"
)

// tree makes files below a new directory; a name that ends in / is a directory.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		full := filepath.Join(base, name)
		dir := filepath.Dir(full)
		if strings.HasSuffix(name, "/") {
			dir = full
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if dir == full {
			continue
		}
		if err := os.WriteFile(full, []byte("- x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

const mine = ".claude/projects/-k/memory/feedback_me.md"

// TestPersonalMemoriesAreNoTeam: what holds, or may come to hold, personal memories is
// refused (ruling 13.1); by its names and its place, linked already or not. What lies in a
// linked directory is what the team put there.
func TestPersonalMemoriesAreNoTeam(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files []string
		dir   string
		// content: it can be told by what lies in it alone.
		content bool
	}{
		{"a client's memory", []string{mine}, ".claude/projects/-k/memory", false},
		{"a folder of it", []string{mine, ".claude/projects/-k/memory/sub/x.md"}, ".claude/projects/-k/memory/sub", false},
		{"the project of a client", []string{mine}, ".claude/projects/-k", false},
		{"the projects of a client", []string{mine}, ".claude/projects", false},
		{"the settings of a client", []string{mine}, ".claude", false},
		{"the home", []string{mine}, ".", true},
		{"a memory with a team/", []string{mine, ".claude/projects/-k/memory/team/x.md"}, ".claude/projects/-k/memory", false},
		{"above a team/ two levels", []string{"k/memory/team/x.md"}, "k", true},
		{"above a team/ three levels", []string{"k/memory/team/x.md"}, ".", true},
		{"settings elsewhere", []string{"cfg/projects/-k/memory/x.md"}, "cfg", true},
		{"settings of nobody yet", []string{".claude/"}, ".claude", false},
		{"projects of nobody yet", []string{".claude/projects/"}, ".claude/projects", false},
		{"a project of nobody yet", []string{".claude/projects/-k/"}, ".claude/projects/-k", false},
		{"a project not made yet", []string{".claude/projects/"}, ".claude/projects/-k", false},
		{"a personal index", []string{"x/memory/MEMORY.md", "x/memory/feedback_p.md"}, "x/memory", true},
		{"a directory with team/", []string{"x/team/y.md"}, "x", true},
	} {
		for _, linked := range []bool{false, true} {
			base := tree(t, tc.files...)
			dir := filepath.Join(base, tc.dir)
			if _, err := os.Stat(dir); linked && err == nil {
				if err := os.WriteFile(filepath.Join(dir, workspace.MarkerName), []byte("{}"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := checkDir(dir, false)
			if linked && tc.content {
				if err != nil || checkDir(dir, true) != nil {
					t.Errorf("%s, linked: %v", tc.name, err)
				}
				continue
			}
			var use *config.UsageError
			if !errors.As(err, &use) || !strings.Contains(err.Error(), "personal") {
				t.Errorf("%s, linked %v: %v", tc.name, linked, err)
			}
			link := filepath.Join(t.TempDir(), "alias")
			if err := os.Symlink(dir, link); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(link); err != nil {
				continue // leads nowhere yet
			}
			if err := checkDir(link, false); !errors.As(err, &use) {
				t.Errorf("%s, linked %v, by another name: %v", tc.name, linked, err)
			}
		}
	}
}

func TestTeamDirectoriesAreTaken(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files []string
		dir   string
	}{
		{"a client's team/", []string{mine, ".claude/projects/-k/memory/team/MEMORY.md"}, ".claude/projects/-k/memory/team"},
		{"a client's team/, not made yet", []string{mine}, ".claude/projects/-k/memory/team"},
		{"a folder of it", []string{".claude/projects/-k/memory/team/x/y.md"}, ".claude/projects/-k/memory/team/x"},
		{"another folder", []string{"a/x.md"}, "a"},
		{"one with an index", []string{"a/MEMORY.md", "a/sub/x.md"}, "a"},
		{"one called memory", []string{"m/memory/"}, "m/memory"},
		{"memory, with no index", []string{"m/memory/x.md"}, "m/memory"},
		{"memory/team elsewhere", []string{"m/memory/MEMORY.md", "m/memory/team/x.md"}, "m/memory/team"},
		{"a project's own folder", []string{"projects/pay/notes/x.md"}, "projects/pay/notes"},
		{"topics of these names", []string{"a/projects/pay.md", "a/deep/er/memory/x.md"}, "a"},
	} {
		base := tree(t, tc.files...)
		if err := checkDir(filepath.Join(base, tc.dir), false); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// TestPlacesOfTheClient: the client of this person may keep its memories elsewhere.
func TestPlacesOfTheClient(t *testing.T) {
	base := tree(t, "cfg/settings.json", "cfg/projects/-k/", "over/x.md", "auto/sub/x.md", "home/.claude/", "other/")
	at := func(name string) string { return filepath.Join(base, name) }
	t.Setenv("HOME", at("home"))
	t.Setenv("CLAUDE_CONFIG_DIR", at("cfg"))
	t.Setenv("CLAUDE_COWORK_MEMORY_PATH_OVERRIDE", at("over"))
	if err := os.WriteFile(at("cfg/settings.json"), []byte(`{"autoMemoryDirectory":"`+at("auto")+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, taken := range map[string]bool{
		"cfg": false, "cfg/projects": false, "cfg/projects/-k": false, "cfg/projects/-k/memory": false, "cfg/projects/-k/memory/team": true,
		"over": false, "over/sub": false, "over/team": true, "auto": false, "auto/sub": false, "auto/team": true, "auto/team/sub": true,
		".": false, "other": true, "overt": true,
	} {
		err := checkDir(at(name), false)
		var use *config.UsageError
		if taken != (err == nil) || err != nil && !errors.As(err, &use) {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	if err := checkDir(at("home"), false); err == nil {
		t.Error("the home with the client's settings is taken")
	}
}
