package memdir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// maxGitFile bounds the small files of a repository that are read here.
const maxGitFile = 1 << 20

// Repo is what the files of git say about a directory.
type Repo struct {
	WorkTree  string // the top of the work tree that the directory is in
	CommonDir string // the git directory that all its worktrees share
	// Root is what clients call the canonical root: the main checkout of all linked
	// worktrees; the bare directory, where there is no main checkout; the work tree
	// itself, for a submodule.
	Root string
}

// FindRepo looks for the repository that dir, absolute, lies in. ok is false outside
// one, and where git's files say nothing that can be followed.
func FindRepo(dir string) (r Repo, ok bool) {
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		dot := filepath.Join(d, ".git")
		switch fi, err := os.Stat(dot); {
		case err == nil && fi.IsDir():
			return Repo{WorkTree: d, CommonDir: dot, Root: d}, true
		case err == nil:
			return linked(d, dot)
		}
		if filepath.Dir(d) == d {
			return Repo{}, false
		}
	}
}

// linked follows the file .git of a linked worktree or a submodule.
func linked(tree, file string) (Repo, bool) {
	text, err := ReadSmall(file)
	if err != nil {
		return Repo{}, false
	}
	gitDir, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	if !ok {
		return Repo{}, false
	}
	gitDir = below(tree, gitDir)
	text, err = ReadSmall(filepath.Join(gitDir, "commondir"))
	if err != nil {
		// A submodule, or a repository whose git directory lies elsewhere: it shares
		// nothing with other work trees.
		return Repo{WorkTree: tree, CommonDir: gitDir, Root: tree}, true
	}
	common := below(gitDir, strings.TrimSpace(string(text)))
	root := common
	if filepath.Base(common) == ".git" {
		root = filepath.Dir(common)
	}
	return Repo{WorkTree: tree, CommonDir: common, Root: root}, true
}

func below(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// ReadSmall reads a file that others wrote and that is small when it is what it
// should be: a regular file of at most 1 MiB.
func ReadSmall(name string) ([]byte, error) {
	fi, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size() > maxGitFile {
		return nil, fmt.Errorf("%s: not a file of at most %d bytes", name, maxGitFile)
	}
	return os.ReadFile(name)
}
