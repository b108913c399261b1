package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/memory"
)

func TestProjectFromRemote(t *testing.T) {
	for remote, want := range map[string]string{
		"https://github.com/acme/payments-api":              "github.com~acme~payments-api",
		"https://github.com/acme/payments-api.git":          "github.com~acme~payments-api",
		"https://user:word@github.com/Acme/Payments-API/":   "github.com~acme~payments-api",
		"git@github.com:acme/payments-api.git":              "github.com~acme~payments-api",
		"ssh://git@github.com:22/acme/payments-api.git":     "github.com~acme~payments-api",
		"ssh://git@github.com/acme/payments-api":            "github.com~acme~payments-api",
		"git://github.com/acme/payments-api.git":            "github.com~acme~payments-api",
		"github.com:acme/payments-api":                      "github.com~acme~payments-api",
		"https://git.example.com:8443/scm/team/sub/repo":    "git.example.com~scm~team~sub~repo",
		"/srv/git/repo.git":                                 "",
		"../repo":                                           "",
		"file:///srv/git/repo.git":                          "",
		"C:/repos/x":                                        "",
		"https://github.com/项目/甲":                           "",
		"https://github.com/":                               "",
		"":                                                  "",
		"https://github.com/" + strings.Repeat("a", 200):    "",
		"https://github.com/acme/with space":                "",
		"https://github.com/acme/percent%2fencoded/../repo": "",
	} {
		got, err := ProjectFromRemote(remote)
		if got != want && !(want == "" && err != nil) {
			t.Errorf("%q: %q, %v; want %q", remote, got, err, want)
		}
	}
}

func FuzzProjectFromRemote(f *testing.F) {
	for _, s := range []string{"https://u:p@h:1/a/b.git", "git@h:a/b", "h:a", "::", "%", "ssh://[::1]:22/x", "https:///x", "a:b:c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, remote string) {
		id, err := ProjectFromRemote(remote)
		if err != nil {
			if id != "" {
				t.Errorf("%q: %q beside an error", remote, id)
			}
			return
		}
		if _, err := memory.ParseProject(id); err != nil {
			t.Errorf("%q gives %q, which is no id", remote, id)
		}
	})
}

func FuzzRepoFile(f *testing.F) {
	for _, s := range []string{"", "team: a\nproject: b\n", "hub: x\n", "team: [a]\n", "- a\n", "team: a\n---\nteam: b\n", "\x00", "team: &a A\nproject: *a\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		names, err := parseRepoFile(text)
		if err != nil {
			return
		}
		if _, err := memory.ParseTeam(names.Team); names.Team != "" && err != nil {
			t.Errorf("team %q came through", names.Team)
		}
		if _, err := memory.ParseProject(names.Project); names.Project != "" && err != nil {
			t.Errorf("project %q came through", names.Project)
		}
	})
}

func FuzzGitConfig(f *testing.F) {
	for _, s := range []string{"[remote \"origin\"]\n\turl = x\n", "[remote \"a\"]\nurl=1\n[remote \"origin\"]\nURL = \"2\"\n", "[remote", "url = x", "[remote \"o\"]url=1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if got := remoteURL(text); got != "" && !strings.Contains(string(text), got) {
			t.Errorf("%q is not in the file", got)
		}
	})
}

func TestRemoteURLPrefersOrigin(t *testing.T) {
	const cfg = "[remote \"fork\"]\n\turl = first\n[branch \"main\"]\n\turl = no\n[remote \"origin\"]\n\tURL = second\n"
	if got := remoteURL([]byte(cfg)); got != "second" {
		t.Errorf("got %q", got)
	}
	if got := remoteURL([]byte("[remote \"fork\"]\n\turl = first\n")); got != "first" {
		t.Errorf("got %q", got)
	}
}

// TestNamesOf finds the same project from a repository, a directory in it and a linked
// worktree elsewhere.
func TestNamesOf(t *testing.T) {
	base := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		name = filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("repo/.git/config", "[remote \"origin\"]\n\turl = git@h.example:a/b.git\n")
	put("repo/sub/dir/x", "")
	put("repo/.git/worktrees/w/commondir", "../..\n")
	put("w/.git", "gitdir: "+filepath.Join(base, "repo/.git/worktrees/w")+"\n")
	put("w/.memsync.yaml", "team: acme\n")
	put("bad/.git/config", "")
	put("bad/.memsync.yaml", "team: acme\ntoken-file: /etc/passwd\n")
	for dir, want := range map[string]repoNames{
		"repo": {Project: "h.example~a~b"}, "repo/sub/dir": {Project: "h.example~a~b"},
		"w": {Team: "acme", Project: "h.example~a~b"}, ".": {},
	} {
		got, err := namesOf(filepath.Join(base, dir), true)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", dir, got, err, want)
		}
	}
	if _, err := namesOf(filepath.Join(base, "bad"), true); err == nil || !strings.Contains(err.Error(), `line 2: want only team: and project: in it; "token-file" is neither`) {
		t.Errorf("a repository that names a token file: %v", err)
	}
	// A remote that names no project is no trouble where the project is given.
	put("local/.git/config", "[remote \"origin\"]\n\turl = /srv/git/x.git\n")
	put("local/.memsync.yaml", "team: acme\n")
	if _, err := namesOf(filepath.Join(base, "local"), true); err == nil {
		t.Error("a project was derived from a path")
	}
	if got, err := namesOf(filepath.Join(base, "local"), false); err != nil || got.Team != "acme" {
		t.Errorf("with the project given: %+v, %v", got, err)
	}
}
