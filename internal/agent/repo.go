package agent

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/memory"
)

// repoFile names team and project in a repository (ruling 13.2). It is committed by
// others, so it may name nothing else: never a hub, never a credential.
const repoFile = ".memsync.yaml"

// repoNames is what a repository says of itself.
type repoNames struct {
	Team    string `yaml:"team"`
	Project string `yaml:"project"`
}

// namesOf finds team and project for a directory inside a repository: repoFile, then,
// with derive, the git remote for the project. Outside a repository both are empty.
func namesOf(dir string, derive bool) (repoNames, error) {
	repo, ok := memdir.FindRepo(dir)
	if !ok {
		return repoNames{}, nil
	}
	root := repo.WorkTree
	var names repoNames
	text, err := memdir.ReadSmall(filepath.Join(root, repoFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return repoNames{}, err
	default:
		if names, err = parseRepoFile(text); err != nil {
			return repoNames{}, usage("%s: %v", filepath.Join(root, repoFile), err)
		}
	}
	if names.Project == "" && derive {
		if cfg, err := memdir.ReadSmall(filepath.Join(repo.CommonDir, "config")); err == nil {
			if remote := remoteURL(cfg); remote != "" {
				if names.Project, err = ProjectFromRemote(remote); err != nil {
					return repoNames{}, usage("git remote of %s: %v", root, err)
				}
			}
		}
	}
	return names, nil
}

// parseRepoFile reads a .memsync.yaml, strictly: a hub or a token in it is an error,
// not something to overlook.
func parseRepoFile(text []byte) (repoNames, error) {
	var names repoNames
	const want = "want only team: and project: in it"
	var fields map[string]yaml.Node
	if err := yaml.Unmarshal(text, &fields); err != nil {
		return repoNames{}, errors.New(want + ", each with a text; it is no such YAML")
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		node := fields[name]
		to := map[string]*string{"team": &names.Team, "project": &names.Project}[name]
		switch {
		case to == nil:
			return repoNames{}, fmt.Errorf("line %d: %s; %.100q is neither", node.Line, want, name)
		case node.Kind != yaml.ScalarNode:
			return repoNames{}, fmt.Errorf("line %d: %s is no text", node.Line, name)
		case node.Tag != "!!null":
			*to = node.Value
		}
	}
	if names.Team != "" {
		if _, err := memory.ParseTeam(names.Team); err != nil {
			return repoNames{}, err
		}
	}
	if names.Project != "" {
		if _, err := memory.ParseProject(names.Project); err != nil {
			return repoNames{}, err
		}
	}
	return names, nil
}

// remoteURL returns the URL of origin in a git config, else of the first remote.
func remoteURL(cfg []byte) string {
	var section, first string
	lines := bufio.NewScanner(bytes.NewReader(cfg))
	lines.Buffer(nil, len(cfg)+1)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			section = ""
			if name, ok := strings.CutPrefix(line, `[remote "`); ok {
				section, _, _ = strings.Cut(name, `"]`)
			}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || section == "" || !strings.EqualFold(strings.TrimSpace(key), "url") {
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"`)
		if section == "origin" {
			return value
		}
		if first == "" {
			first = value
		}
	}
	return first
}

// ProjectFromRemote derives a project id from a git remote (ruling 13.3): the same
// for https, ssh and scp-like forms, so that every clone finds the same project.
// A remote that is a path on this machine, or whose name has other characters than
// an id, is an error: the project must then be named.
func ProjectFromRemote(remote string) (string, error) {
	give := errors.New("no project can be derived from it; give --project")
	var host, path string
	if u, err := url.Parse(remote); err == nil && u.Host != "" && u.Scheme != "file" {
		host, path = u.Hostname(), u.Path
	} else if h, p, ok := strings.Cut(remote, ":"); ok && !strings.Contains(h, "/") && len(h) > 1 && !strings.Contains(remote, "://") {
		host, path = h, p // user@host:path
		if _, after, ok := strings.Cut(host, "@"); ok {
			host = after
		}
	} else {
		return "", give
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	if host == "" || path == "" {
		return "", give
	}
	for seg := range strings.SplitSeq(path, "/") {
		if seg == "" || seg == "." || seg == ".." {
			return "", give
		}
	}
	id := strings.ToLower(host + "/" + path)
	id = strings.ReplaceAll(id, "/", "~")
	if _, err := memory.ParseProject(id); err != nil {
		return "", give
	}
	return id, nil
}
