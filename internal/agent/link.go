package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/memsvc/memsvc/internal/agent/workspace"
	"github.com/memsvc/memsvc/internal/config"
	"github.com/memsvc/memsvc/internal/memory"
)

// Link ties one directory to one project of a hub. It is a section of the settings
// file, a record of `link`, and what the flags of `run` say.
type Link struct {
	Hub       string `yaml:"hub" json:"hub"`
	TokenFile string `yaml:"token-file" json:"token_file,omitempty"`
	Team      string `yaml:"team" json:"team"`
	Project   string `yaml:"project" json:"project"`
	// Dir is the team/ directory itself, absolute.
	Dir       string `yaml:"dir" json:"dir"`
	Plaintext bool   `yaml:"plaintext" json:"plaintext,omitempty"`
	CAFile    string `yaml:"ca-file" json:"ca_file,omitempty"`
	CertFile  string `yaml:"cert-file" json:"cert_file,omitempty"`
	KeyFile   string `yaml:"key-file" json:"key_file,omitempty"`
}

// Key returns the project.
func (l Link) Key() memory.ProjectKey {
	return memory.ProjectKey{Team: memory.Team(l.Team), Project: memory.Project(l.Project)}
}

// Name is how a person names the link: team/project.
func (l Link) Name() string { return l.Team + "/" + l.Project }

// ID names the link's state. It does not depend on the hub's address, so that a hub
// that moved is met with the state we have: whether its history is the one we know
// is told by its epoch.
func (l Link) ID() string {
	sum := sha256.Sum256([]byte(l.Key().String() + "\x00" + l.Dir))
	return hex.EncodeToString(sum[:8])
}

// tokenOptional says that the link's client certificate may be its credential: nobody
// named a token, so that without one that `login` stored for the hub none is sent.
func (l Link) tokenOptional() bool { return l.CertFile != "" && l.TokenFile == "" }

// usage makes an error that ends the program with exit code 2.
func usage(format string, args ...any) error {
	return &config.UsageError{Err: fmt.Errorf(format, args...)}
}

// check refuses a link that cannot work, whatever the hub says. It touches nothing.
func (s stateDir) check(l Link) error {
	switch {
	case l.Hub == "":
		return usage("no hub: give --hub host:port")
	case l.Team == "":
		return usage("no team: give --team, or name it in the repository's %s", repoFile)
	case l.Project == "":
		return usage("no project: give --project, or run inside a repository with a remote")
	case l.Dir == "":
		return usage("no directory: give --dir, the team/ directory of the memories to share")
	}
	if _, err := memory.ParseTeam(l.Team); err != nil {
		return &config.UsageError{Err: err}
	}
	if _, err := memory.ParseProject(l.Project); err != nil {
		return &config.UsageError{Err: err}
	}
	return checkDir(l.Dir, s.has(l))
}

// checkOwner refuses a directory that is linked to another project, from whatever state
// directory. Where one link of many is such, the others run, and its status says so.
func (l Link) checkOwner() error {
	if err := workspace.CheckOwner(l.Dir, l.Key()); err != nil {
		return usage("--dir %s: %v", l.Dir, err)
	}
	return nil
}

// checkDir applies ruling 13.1: the directory is the team/ directory itself, and nothing
// personal lies in it. known says that this agent has served the link before.
func checkDir(dir string, known bool) error {
	if !filepath.IsAbs(dir) {
		return usage("--dir %s: not an absolute path", dir)
	}
	if filepath.Dir(dir) == dir {
		return usage("--dir %s: the root of a file system is no team/ directory", dir)
	}
	why := personal(dir, os.Getenv)
	if why == "" && !known && !workspace.HasMarker(dir) {
		why = personalContent(realDir(dir))
	}
	if why != "" {
		return usage("--dir %s %s", dir, why)
	}
	fi, err := os.Stat(dir)
	if err != nil {
		// It is made, or is a brake: not a question of its kind.
		if err := workspace.CheckOverlap(context.Background(), dir); err != nil {
			return usage("--dir %s: %v", dir, err)
		}
		return nil
	}
	if !fi.IsDir() {
		return usage("--dir %s: not a directory", dir)
	}
	if err := workspace.CheckOverlap(context.Background(), dir); err != nil {
		return usage("--dir %s: %v", dir, err)
	}
	return nil
}

// checkLinks refuses sets of links that would get into each other's way.
func checkLinks(links []Link) error {
	for i, a := range links {
		for _, b := range links[:i] {
			ra, rb := realDir(a.Dir), realDir(b.Dir)
			switch {
			case ra == rb:
				return usage("%s and %s are both linked to %s; a directory has one project", b.Name(), a.Name(), a.Dir)
			case within(ra, rb), within(rb, ra):
				return usage("%s and %s overlap; one directory inside another would be shared twice", b.Dir, a.Dir)
			}
		}
	}
	return nil
}

// realDir resolves links of the deepest ancestor that exists.
func realDir(dir string) string {
	rest := ""
	for d := dir; ; {
		if r, err := filepath.EvalSymlinks(d); err == nil {
			return filepath.Join(r, rest)
		}
		up := filepath.Dir(d)
		if up == d {
			return dir
		}
		rest, d = filepath.Join(filepath.Base(d), rest), up
	}
}

// within reports whether a lies below b.
func within(a, b string) bool {
	return strings.HasPrefix(a, strings.TrimSuffix(b, string(filepath.Separator))+string(filepath.Separator))
}
