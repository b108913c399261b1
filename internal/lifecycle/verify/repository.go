package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// Bounds of what is read; beyond them nothing is said.
const (
	maxIndexBytes = 32 << 20 // of git's index
	maxQuickBytes = 8 << 20  // of the index that Quick looks through, in all
	maxFileBytes  = 1 << 20  // of a Makefile or package.json

	maxSearchedBytes = 8 << 20 // of a file in which symbols are looked for
	maxFiles         = 20_000
	maxTreeBytes     = 256 << 20
)

// Repository is a working tree. It is read below its root alone.
type Repository struct {
	root *os.Root
	git  string // git's directory of this working tree

	index   []byte // git's list of files
	indexed bool   // index was read
	listed  bool   // and is of a form in which paths can be looked for
	left    int    // bytes of it that Quick may still look through, for all memories together
}

// Open finds the working tree that dir lies in. Without one there is nothing to check
// against: the error wraps fs.ErrNotExist.
func Open(dir string) (*Repository, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for at := dir; ; at = filepath.Dir(at) {
		dot := filepath.Join(at, ".git")
		if fi, err := os.Lstat(dot); err == nil {
			root, err := os.OpenRoot(at)
			if err != nil {
				return nil, err
			}
			r := &Repository{root: root, git: dot, left: maxQuickBytes}
			if !fi.IsDir() {
				r.git = linkedGit(dot)
			}
			return r, nil
		}
		if at == filepath.Dir(at) {
			return nil, &fs.PathError{Op: "find the repository of", Path: dir, Err: fs.ErrNotExist}
		}
	}
}

// Near is Open for those who can do without: nil where there is nothing to check against.
// Gone and Close of nil are those of a repository that lacks nothing.
func Near(dir string) *Repository {
	if !filepath.IsAbs(dir) {
		return nil
	}
	r, err := Open(dir)
	if err != nil {
		return nil
	}
	return r
}

// linkedGit reads where a worktree or submodule has its git directory; "" if that is not
// to be found out.
func linkedGit(file string) string {
	text, err := os.ReadFile(file)
	if err != nil || len(text) > 8<<10 {
		return ""
	}
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	if !ok {
		return ""
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(file), dir)
	}
	return dir
}

// Close lets the directory go.
func (r *Repository) Close() error {
	if r == nil {
		return nil
	}
	return r.root.Close()
}

// maxGone bounds what Gone says of one memory.
const maxGone = 5

// Gone returns the words by which a memory cites what Quick finds missing, the first ones.
func (r *Repository) Gone(text []byte) []string {
	if r == nil {
		return nil
	}
	var out []string
	for _, c := range r.Quick(text) {
		if len(out) < maxGone {
			out = append(out, c.Text)
		}
	}
	return out
}

// Quick returns what a memory cites and is no longer there, among paths and commands. It
// looks at a file or two for each and at a bounded part of git's list, and so can be
// asked at every prompt; past the bound it says nothing.
func (r *Repository) Quick(text []byte) []Citation { return r.gone(text) }

func (r *Repository) gone(text []byte) []Citation {
	var out []Citation
	for _, c := range Citations(text) {
		if c.Kind == Path && r.pathGone(c.Text) || c.Kind == Command && r.commandGone(c.Text) {
			out = append(out, c)
		}
	}
	return out
}

// Missing is Quick with symbols: those that a line names beside a path of this repository
// and that no file of it holds. It may read the whole tree, within bounds.
func (r *Repository) Missing(ctx context.Context, text []byte) ([]Citation, error) {
	r.left = math.MaxInt
	out := r.gone(text)
	var wanted []Citation
	for _, c := range Citations(text) {
		if c.Kind == Symbol && r.ours(c.near) {
			wanted = append(wanted, c)
		}
	}
	gone, err := r.symbolsGone(ctx, wanted)
	return append(out, gone...), err
}

// ours reports whether one of the paths is in this repository, or plainly was.
func (r *Repository) ours(paths []string) bool {
	for _, p := range paths {
		if r.exists(p) || r.pathGone(p) {
			return true
		}
	}
	return false
}

func (r *Repository) exists(p string) bool {
	_, err := r.root.Stat(filepath.FromSlash(p))
	return err == nil
}

// pathGone reports whether a path is of this repository, since its first directory is
// here, and is neither on the disk nor, from whatever directory, among git's files.
func (r *Repository) pathGone(p string) bool {
	if _, err := r.root.Stat(filepath.FromSlash(p)); !errors.Is(err, fs.ErrNotExist) {
		return false // there, or not to be found out
	}
	first, _, _ := strings.Cut(p, "/")
	if fi, err := r.root.Stat(first); err != nil || !fi.IsDir() {
		return false // another repository's, or a name that only looks like a path
	}
	if filepath.Ext(p) == "" && !r.exists(filepath.ToSlash(filepath.Dir(p))) {
		return false // without an ending, only what stands where the rest is
	}
	if !r.list() || r.left < len(r.index) {
		return false
	}
	r.left -= len(r.index)
	return !bytes.Contains(r.index, []byte(p))
}

// list reads git's list of files; false if there is none that can be searched.
func (r *Repository) list() bool {
	if r.indexed {
		return r.listed
	}
	r.indexed = true
	if r.git == "" {
		return false
	}
	file := filepath.Join(r.git, "index")
	fi, err := os.Stat(file)
	if err != nil || fi.Size() > maxIndexBytes {
		return false
	}
	r.index, err = os.ReadFile(file)
	// From version 4 on git shortens paths by what they share with the one before. A split
	// index keeps most of them in another file.
	split, _ := filepath.Glob(filepath.Join(r.git, "sharedindex.*"))
	r.listed = err == nil && len(r.index) > 12 &&
		bytes.HasPrefix(r.index, []byte("DIRC\x00\x00\x00")) && r.index[7] < 4 && len(split) == 0
	return r.listed
}

// commandGone reports whether make or package.json, which are here, know no such target.
func (r *Repository) commandGone(command string) bool {
	words := strings.Fields(command)
	name := words[len(words)-1]
	if words[0] != "make" {
		return r.scriptGone(name)
	}
	for _, file := range []string{"GNUmakefile", "makefile", "Makefile"} {
		text, ok := r.small(file)
		if !ok {
			continue
		}
		for line := range strings.SplitSeq(text, "\n") {
			switch {
			case strings.HasPrefix(line, "\t"), strings.HasPrefix(line, "#"):
				continue
			case strings.HasPrefix(strings.TrimLeft(line, "- s"), "include"), strings.HasPrefix(line, "%"), strings.HasPrefix(line, "$("), strings.HasPrefix(line, "define"):
				return false // targets that this line makes are not seen here
			}
			before, _, ok := strings.Cut(line, ":")
			if ok && (strings.Contains(" "+before+" ", " "+name+" ") || strings.HasPrefix(before, ".PHONY") && strings.Contains(line+" ", " "+name+" ")) {
				return false
			}
		}
		return true
	}
	return false // no Makefile: about another directory
}

func (r *Repository) scriptGone(name string) bool {
	text, ok := r.small("package.json")
	if !ok {
		return false
	}
	var pkg struct {
		Scripts    map[string]string `json:"scripts"`
		Workspaces json.RawMessage   `json:"workspaces"`
	}
	if json.Unmarshal([]byte(text), &pkg) != nil || len(pkg.Workspaces) > 0 {
		return false
	}
	_, there := pkg.Scripts[name]
	return !there && len(pkg.Scripts) > 0
}

// small reads a file of the root that is not large.
func (r *Repository) small(name string) (string, bool) {
	fi, err := r.root.Stat(name)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxFileBytes {
		return "", false
	}
	text, err := r.root.ReadFile(name)
	return string(text), err == nil
}
