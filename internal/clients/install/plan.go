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
}

// Nothing reports whether the file is as it should be.
func (c Change) Nothing() bool {
	return bytes.Equal(c.Before, c.After) && (c.Before == nil) == (c.After == nil)
}

// BackupSuffix is the end of the name under which a file's former text is kept.
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
			if change.After, err = f.edit(before, remove); err != nil {
				return nil, fmt.Errorf("%s: %w", f.path, err)
			}
			if bytes.Equal(before, change.After) && before != nil {
				change.After = before
			}
		}
		if remove && f.empty != nil && change.After != nil && !change.Nothing() && f.empty(change.After) && !exists(f.path+BackupSuffix) {
			change.After = nil // it was made by installing
		}
		out = append(out, change)
	}
	return out, nil
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
		return os.Remove(file) // nothing in it was anybody else's
	}
	mode := fs.FileMode(0o600)
	if fi, err := os.Stat(file); err == nil {
		mode = fi.Mode().Perm()
		if err := replace(c.File+BackupSuffix, now, mode); err != nil {
			return fmt.Errorf("keep the former text: %w", err)
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
