// Package instructions finds the standing instructions that a coding client follows in a
// directory: the CLAUDE.md family, its rules and its imports, with the reason why each
// applies (SPEC 10.1). Everything is read anew at every call; nothing is changed.
package instructions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"go.yaml.in/yaml/v3"
)

// Bounds, as clients have them.
const (
	MaxImportDepth = 4
	MaxFileBytes   = 4 << 20 // a longer file is passed over
)

// Kind says what a source is.
type Kind string

// The kinds, in the order in which they are read.
const (
	Managed   Kind = "managed"   // an administrator's
	User      Kind = "user"      // a person's, for all projects
	Project   Kind = "project"   // of the top of the work tree
	Directory Kind = "directory" // of a directory above or below that
	Local     Kind = "local"     // a person's, for this project
	Rule      Kind = "rule"      // of a rules/ directory
	Import    Kind = "import"    // named by another source
)

// Source is a file of instructions that applies, or that would and does not.
type Source struct {
	Kind Kind
	File string // absolute
	Why  string // why it applies
	// Skipped is why it does not apply after all: a rule for other files, a cycle, a
	// depth or size past the bounds. Text is empty then.
	Skipped string
	By      string // of an import: the file that names it
	// External is an import from outside the project by a file of the project, or by what
	// that imports: clients ask before they read it. What yours and the administrator's
	// files import they read.
	External bool
	Paths    []string // of a rule: the files it is for
	Text     string   // without frontmatter and HTML comments
}

// Options say where to look.
type Options struct {
	Dir     string   // absolute: where the client works
	Top     string   // the top of the work tree; "" outside git
	Config  string   // the client's configuration directory; "" = none
	Home    string   // for ~/ in imports
	Managed string   // the administrator's file; "" = where this system has it
	Files   []string // absolute: files being worked on, for rules with paths
}

// Load returns the sources in the order in which a client reads them, imports right after
// the file that names them. A file that cannot be read is a source with Skipped set.
func Load(ctx context.Context, o Options) ([]Source, error) {
	l := loader{o: o, seen: map[string]bool{}}
	if o.Managed == "" {
		l.o.Managed = managedFile()
	}
	l.ours = true
	l.file(Source{Kind: Managed, File: l.o.Managed, Why: "an administrator's, for everyone on this machine"})
	if o.Config != "" {
		l.file(Source{Kind: User, File: filepath.Join(o.Config, "CLAUDE.md"), Why: "yours, for all projects"})
		if err := l.rules(ctx, filepath.Join(o.Config, "rules"), "yours, for all projects"); err != nil {
			return nil, err
		}
	}
	l.ours = false
	for _, dir := range upwards(o.Dir) {
		kind, why := Directory, "of the directory "+dir
		if dir == o.Top {
			kind, why = Project, "of this project"
		}
		l.file(Source{Kind: kind, File: filepath.Join(dir, "CLAUDE.md"), Why: why})
		l.file(Source{Kind: kind, File: filepath.Join(dir, ".claude", "CLAUDE.md"), Why: why})
		if filepath.Join(dir, ".claude") != filepath.Clean(o.Config) {
			if err := l.rules(ctx, filepath.Join(dir, ".claude", "rules"), why); err != nil {
				return nil, err
			}
		}
		l.file(Source{Kind: Local, File: filepath.Join(dir, "CLAUDE.local.md"), Why: "yours, in " + dir})
	}
	return l.out, ctx.Err()
}

func managedFile() string {
	switch runtime.GOOS {
	case "darwin":
		return "/Library/Application Support/ClaudeCode/CLAUDE.md"
	case "windows":
		return `C:\Program Files\ClaudeCode\CLAUDE.md`
	}
	return "/etc/claude-code/CLAUDE.md"
}

// upwards returns dir and its ancestors, the topmost first.
func upwards(dir string) []string {
	var out []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		out = append(out, d)
		if filepath.Dir(d) == d {
			slices.Reverse(out)
			return out
		}
	}
}

type loader struct {
	o    Options
	out  []Source
	ours bool            // the file that is being read is a person's for all projects, or an administrator's
	seen map[string]bool // by real path
}

// file adds a file, if it is there, and what it imports.
func (l *loader) file(s Source) {
	text, err := read(s.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		s.Skipped = err.Error()
	case l.again(s.File):
		return // the same file by another way
	}
	l.add(s, text, nil)
}

// again notes that a file was read, and reports whether it was before.
func (l *loader) again(file string) bool {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	was := l.seen[file]
	l.seen[file] = true
	return was
}

// add appends a source and the imports of its text. chain are the files that led here.
func (l *loader) add(s Source, text []byte, chain []string) {
	if s.Skipped != "" {
		l.out = append(l.out, s)
		return
	}
	visible, imports := scan(text)
	s.Text = visible
	l.out = append(l.out, s)
	chain = append(slices.Clip(chain), s.File)
	for _, name := range imports {
		l.importFile(s, name, chain)
	}
}

func (l *loader) importFile(by Source, name string, chain []string) {
	file, ok := l.resolve(by.File, name)
	if !ok {
		return
	}
	s := Source{Kind: Import, File: file, By: by.File, Why: "imported by " + by.File, External: l.o.Top != "" && !below(l.o.Top, file) && !l.ours}
	text, err := read(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return // an @word that is no file
	case err != nil:
		s.Skipped = err.Error()
	case slices.Contains(chain, file):
		s.Skipped = "it imports itself"
	case len(chain) > MaxImportDepth:
		s.Skipped = fmt.Sprintf("imports go %d deep at most", MaxImportDepth)
	case l.again(file):
		return
	}
	l.add(s, text, chain)
}

func (l *loader) resolve(from, name string) (string, bool) {
	switch {
	case strings.HasPrefix(name, "~/"):
		return filepath.Join(l.o.Home, name[2:]), l.o.Home != ""
	case filepath.IsAbs(name):
		return filepath.Clean(name), true
	}
	return filepath.Join(filepath.Dir(from), name), true
}

func below(dir, file string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(rel)
}

// rules adds the files of a rules/ directory: those without paths always, the others if
// one of the files being worked on matches.
func (l *loader) rules(ctx context.Context, dir, why string) error {
	var names []string
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return nil // unreadable directories have no rules
		case ctx.Err() != nil:
			return ctx.Err()
		case !e.IsDir() && strings.HasSuffix(name, ".md"):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := read(name)
		s := Source{Kind: Rule, File: name, Why: "a rule " + why}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // a link to nothing
		case err != nil:
			s.Skipped = err.Error()
		case l.again(name):
			continue
		default:
			s.Paths = paths(text)
			if len(s.Paths) > 0 {
				if file, ok := l.matches(s.Paths, filepath.Dir(filepath.Dir(dir))); ok {
					s.Why += ", for " + file
				} else {
					s.Skipped = "it is for other files: " + strings.Join(s.Paths, ", ")
				}
			}
		}
		l.add(s, text, nil)
	}
	return nil
}

// matches returns the first file being worked on that a glob is for. Globs are relative
// to the project, or to base outside one.
func (l *loader) matches(globs []string, base string) (string, bool) {
	if l.o.Top != "" {
		base = l.o.Top
	}
	for _, file := range l.o.Files {
		rel, err := filepath.Rel(base, file)
		if err != nil {
			continue
		}
		for _, g := range globs {
			if ok, err := doublestar.Match(g, filepath.ToSlash(rel)); err == nil && ok {
				return file, true
			}
		}
	}
	return "", false
}

// paths returns the globs of a rule's frontmatter: a list, or one text with commas.
func paths(text []byte) []string {
	head, _, ok := frontmatter(text)
	if !ok {
		return nil
	}
	var f struct {
		Paths any `yaml:"paths"`
	}
	if yaml.Unmarshal(head, &f) != nil {
		return nil
	}
	switch v := f.Paths.(type) {
	case string:
		return splitGlobs(v)
	case []any:
		var out []string
		for _, g := range v {
			if s, ok := g.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

// splitGlobs cuts a text at the commas that stand outside braces.
func splitGlobs(s string) []string {
	depth := 0
	return strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		}
		return depth == 0 && (r == ',' || r == ' ')
	})
}

func read(name string) ([]byte, error) {
	fi, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	if fi.Size() > MaxFileBytes {
		return nil, fmt.Errorf("it has more than %d bytes", MaxFileBytes)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, errors.New("it cannot be read")
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), nil
}
