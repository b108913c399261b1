package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/memsvc/memsvc/internal/wholefile"
)

// Scope says whose configuration is written.
type Scope string

// The scopes: one person's configuration, or the files of a project that a team shares.
// The latter call the program by name, since its path differs from machine to machine.
const (
	User    Scope = "user"
	Project Scope = "project"
)

// Env is the machine, as far as configuration files depend on it.
type Env struct {
	Home    string
	Getenv  func(string) string
	Dir     string // of the project, for the scope Project
	Command Command
}

// dir returns the directory that an environment variable names, else one below home.
func (e Env) dir(variable string, below ...string) string {
	if d := e.Getenv(variable); filepath.IsAbs(d) {
		return d
	}
	return filepath.Join(append([]string{e.Home}, below...)...)
}

// Change is what happens to one file. Before is nil where it is made, After where it
// is removed; equal texts mean that nothing happens.
type Change struct {
	File          string
	Before, After []byte
	// Backup is whether Before is kept beside the file: the last text without our part, so
	// that it is still there when that part has changed or gone.
	Backup bool
	dirs   []string // that go with the file where they are empty, the innermost first
}

// Nothing reports whether the file is as it should be.
func (c Change) Nothing() bool {
	return bytes.Equal(c.Before, c.After) && (c.Before == nil) == (c.After == nil)
}

// BackupSuffix is the end of the name under which a file's text without our part is kept.
const BackupSuffix = ".memsvc-backup"

// Plan returns what installing a client, or removing what was installed, does to its
// files. It changes nothing. The error names the file, and the line where there is one.
func (c *Client) Plan(env Env, scope Scope, remove bool) ([]Change, error) {
	if scope == Project {
		env.Command = Command{Exe: program}
	}
	var out []Change
	for _, f := range c.files(env, scope) {
		before, err := os.ReadFile(f.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if before == nil && err == nil {
			before = []byte{}
		}
		change := Change{File: f.path, Before: before, After: before}
		if before != nil || !remove {
			if err := f.plan(&change, remove); err != nil {
				return nil, fmt.Errorf("%s: %w", f.path, err)
			}
		}
		if before != nil && change.After == nil {
			change.dirs = c.made(env, scope, f.path)
		}
		out = append(out, change)
	}
	return out, nil
}

// plan finds the text that takes the place of Before, and whether that is kept.
func (f file) plan(c *Change, remove bool) error {
	was, kept := f.formerly()
	without, bare := []byte(nil), true // without our part, and whether that is nothing
	if c.Before != nil {
		var err error
		if without, err = f.edit(c.Before, true, was); err != nil {
			return err
		}
		bare = without == nil || f.empty != nil && f.empty(without)
	}
	// A blank file holds nothing of ours, whatever an empty document looks like.
	ours := len(bytes.TrimSpace(c.Before)) > 0 && !bytes.Equal(without, c.Before)
	c.Backup = c.Before != nil && (!ours || !kept && !bare)
	if !remove {
		var err error
		if c.After, err = f.edit(c.Before, false, was); err != nil {
			return err
		}
		if c.Before != nil && bytes.Equal(c.Before, c.After) {
			c.After = c.Before
		}
		return nil
	}
	switch {
	case !ours:
		return nil
	case bare && !kept:
		without = nil // it was made by installing
	case was != nil && without != nil && (bytes.Equal(bytes.TrimSpace(without), bytes.TrimSpace(was)) || bare && len(bytes.TrimSpace(was)) == 0):
		without = was // to the last blank
	}
	c.After = without
	return nil
}

// formerly returns what the file held before our part came into it, as far as its backup
// says; kept is whether there is one.
func (f file) formerly() (was []byte, kept bool) {
	text, err := os.ReadFile(f.path + BackupSuffix)
	if err != nil {
		return nil, exists(f.path + BackupSuffix)
	}
	if was, err = f.edit(text, true, nil); err != nil || was == nil {
		return nil, true
	}
	return was, true
}

// made returns the directories that installing may have made for a file: those of the
// client, or of the project.
func (c *Client) made(env Env, scope Scope, path string) (dirs []string) {
	top := filepath.Dir(c.home(env))
	if scope == Project {
		top = env.Dir
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		rel, err := filepath.Rel(top, dir)
		if err != nil || rel == "." || !filepath.IsLocal(rel) {
			return dirs
		}
		dirs = append(dirs, dir)
	}
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// Apply does what Plan found, one file after the other, each whole. A file that has
// changed since is left alone.
func Apply(changes []Change) error {
	for _, c := range changes {
		if c.Nothing() {
			continue
		}
		if err := c.apply(); err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
	}
	return nil
}

func (c Change) apply() error {
	file := c.File
	// A configuration may be a link into a directory under version control.
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	now, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(now, c.Before) {
		return errors.New("it changed meanwhile; run the command again")
	}
	if c.After == nil {
		if err := os.Remove(file); err != nil { // nothing in it was anybody else's
			return err
		}
		for _, dir := range c.dirs {
			if fi, err := os.Lstat(dir); err != nil || !fi.IsDir() || os.Remove(dir) != nil {
				break // somebody else's, or not empty
			}
		}
		return nil
	}
	mode := fs.FileMode(0o600)
	if fi, err := os.Stat(file); err == nil {
		mode = fi.Mode().Perm()
		if c.Backup {
			if err := replace(c.File+BackupSuffix, now, mode); err != nil {
				return fmt.Errorf("keep the former text: %w", err)
			}
		}
	}
	return replace(file, c.After, mode)
}

// replace writes a file whole: a new one, synced, takes the place of the old.
func replace(file string, text []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return wholefile.Replace(file, text, mode)
}
