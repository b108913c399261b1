// Package skills finds the skills of a person, a project and its plugins (SPEC 10.2).
// Listing reads only their heads; the text of one is loaded by its name, on demand.
package skills

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// FileName is what a skill's directory holds.
const FileName = "SKILL.md"

// Bounds.
const (
	maxHead = 16 << 10
	// MaxTextBytes bounds a skill's text.
	MaxTextBytes = 1 << 20
	// MaxListed is how many tokens of a description a list shows (SPEC 10.2), by the common
	// measure of four characters each, or one of Chinese, Japanese and Korean.
	MaxListed    = 100
	charsOfToken = 4
	maxWord      = 40 // bytes of a word that is not cut
)

// Origin says whose a skill is.
type Origin string

// The origins, the strongest first: of two skills with a name the first counts.
const (
	User    Origin = "user"
	Project Origin = "project"
	Plugin  Origin = "plugin"
)

// Skill is a skill's head.
type Skill struct {
	Name        string // of a plugin: plugin:name
	Description string // with when to use it
	Origin      Origin
	File        string // absolute
	Hidden      bool   // a person's to call: models are not offered it
}

// Options say where to look.
type Options struct {
	Config string // the client's configuration directory; "" = none
	Top    string // the project's top; "" = none
	Dir    string // where the client works; its .claude counts too
}

// List returns all skills in name order. A skill that another one of its name stands in
// front of is left out; one that cannot be read is told in skipped.
func List(ctx context.Context, o Options) (list []Skill, skipped []error, err error) {
	byName := map[string]bool{}
	add := func(s Skill, err error) {
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			skipped = append(skipped, err)
		case !byName[s.Name]:
			byName[s.Name] = true
			list = append(list, s)
		}
	}
	if o.Config != "" {
		in(filepath.Join(o.Config, "skills"), User, "", add)
	}
	for _, dir := range slices.Compact([]string{o.Dir, o.Top}) {
		if dir != "" && filepath.Join(dir, ".claude") != filepath.Clean(o.Config) {
			in(filepath.Join(dir, ".claude", "skills"), Project, "", add)
		}
	}
	if o.Config != "" {
		if err := plugins(ctx, filepath.Join(o.Config, "plugins"), add); err != nil {
			return nil, nil, err
		}
	}
	slices.SortFunc(list, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	return list, skipped, nil
}

// in visits the skills of one directory, each in a directory of its own.
func in(dir string, origin Origin, plugin string, add func(Skill, error)) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			add(Skill{}, err)
		}
		return
	}
	for _, e := range entries {
		s, err := head(filepath.Join(dir, e.Name(), FileName), e.Name())
		s.Origin = origin
		if plugin != "" {
			s.Name = plugin + ":" + s.Name
		}
		add(s, err)
	}
}

// maxPluginDepth is how far below plugins/ a plugin's skills may lie: caches put a
// marketplace, a name and a version in between.
const maxPluginDepth = 6

// plugins visits the skills of every plugin below dir: what has a .claude-plugin.
func plugins(ctx context.Context, dir string, add func(Skill, error)) error {
	return filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // not there, or not ours to read
		case ctx.Err() != nil:
			return ctx.Err()
		case !e.IsDir():
			return nil
		case e.Name() == ".git" || e.Name() == "node_modules" || strings.Count(name[len(dir):], string(filepath.Separator)) > maxPluginDepth:
			return fs.SkipDir
		}
		if plugin, ok := pluginName(name); ok {
			in(filepath.Join(name, "skills"), Plugin, plugin, add)
			return fs.SkipDir
		}
		return nil
	})
}

// pluginName reads the name of the plugin that lies in dir.
func pluginName(dir string) (string, bool) {
	text, err := os.ReadFile(filepath.Join(dir, ".claude-plugin", "plugin.json"))
	if err != nil {
		return "", false
	}
	var p struct {
		Name string `yaml:"name"`
	}
	// JSON is YAML.
	if yaml.Unmarshal(text, &p) != nil || p.Name == "" {
		return filepath.Base(dir), true
	}
	return p.Name, true
}

// head reads the frontmatter of a skill. A missing name is its directory's.
func head(file, dir string) (Skill, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) || err != nil && strings.Contains(err.Error(), "not a directory") {
		return Skill{}, fs.ErrNotExist
	}
	if err != nil {
		return Skill{}, err
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, maxHead))
	if err != nil {
		return Skill{}, err
	}
	var h struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
		When        string `yaml:"when_to_use"`
		Hidden      bool   `yaml:"disable-model-invocation"`
	}
	if block, ok := block(text); ok {
		if err := yaml.Unmarshal(block, &h); err != nil {
			return Skill{}, fmt.Errorf("%s: its frontmatter is no YAML that can be read", file)
		}
	}
	if h.Name == "" {
		h.Name = dir
	}
	return Skill{Name: h.Name, Description: strings.Join(strings.Fields(h.Description+" "+h.When), " "), File: file, Hidden: h.Hidden}, nil
}

// block returns what stands between the fences at the beginning of a text.
func block(text []byte) ([]byte, bool) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	rest, ok := bytes.CutPrefix(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("---\n"))
	if !ok {
		return nil, false
	}
	inside, _, ok := bytes.Cut(rest, []byte("\n---"))
	return inside, ok
}

// Listed is the description as lists show it, cut to about MaxListed tokens between two
// words. The whole of it comes with the text.
func (s Skill) Listed() string {
	room, word := charsOfToken*(MaxListed-1), 0 // less one for the mark of the cut
	for i, r := range s.Description {
		if r == ' ' {
			word = i
		}
		if unspaced(r) {
			room -= charsOfToken
			word = i
		} else {
			room--
		}
		if room < 0 {
			if i-word > maxWord {
				word = i
			}
			return strings.TrimRight(s.Description[:word], " ,;:，；：") + "…"
		}
	}
	return s.Description
}

// unspaced knows the scripts of which every character is about a token.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// ErrUnknown is a name that no skill has.
var ErrUnknown = errors.New("no skill has this name")

// Text loads the whole of one skill.
func Text(list []Skill, name string) (Skill, []byte, error) {
	i := slices.IndexFunc(list, func(s Skill) bool { return s.Name == name })
	if i < 0 {
		return Skill{}, nil, fmt.Errorf("%q: %w", name, ErrUnknown)
	}
	f, err := os.Open(list[i].File)
	if err != nil {
		return Skill{}, nil, err
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, MaxTextBytes+1))
	if err == nil && len(text) > MaxTextBytes {
		err = fmt.Errorf("%s: more than %d bytes", list[i].File, MaxTextBytes)
	}
	return list[i], text, err
}
