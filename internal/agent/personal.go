package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// personal returns why a directory holds, or will hold, personal memories; "" is that
// nothing speaks for it. It is judged by its names and by where this person's client
// keeps its memories (SPEC 2.6), each time anew: a marker says that somebody linked it,
// not that it was right. What lies in it is another matter, see personalContent.
func personal(dir string, env func(string) string) string {
	for _, d := range []string{dir, realDir(dir)} {
		if why := personalName(d); why != "" {
			return why
		}
		if why := personalPlace(d, env); why != "" {
			return why
		}
	}
	return ""
}

// personalName judges by names alone, for what is not there yet.
func personalName(dir string) string {
	if isClientMemory(dir) {
		return givesTeam("is a client's memory directory with personal memories", dir)
	}
	for up := filepath.Dir(dir); up != filepath.Dir(up); up = filepath.Dir(up) {
		if namedClientMemory(up) && !belowTeam(dir, up) {
			return givesTeam("lies in a client's memory directory, where what is outside team/ is personal", up)
		}
	}
	if d, ok := upTo(dir, ".claude", 2); ok && (d == dir || named(firstBelow(dir, d), "projects")) {
		return "is where a client keeps its settings and personal memories; give a team/ directory"
	}
	return ""
}

// personalPlace judges by where the client of this person keeps memories.
func personalPlace(dir string, env func(string) string) string {
	config, memories := clientPlaces(env)
	for _, root := range both(config) {
		projects := filepath.Join(root, "projects")
		if dir == root || within(root, dir) || dir == projects || filepath.Dir(dir) == projects {
			return fmt.Sprintf("is or holds where a client keeps its settings and personal memories, %s; give a team/ directory", root)
		}
	}
	for _, m := range memories {
		for _, m := range both(m) {
			if dir == m || within(m, dir) || within(dir, m) && !belowTeam(dir, m) {
				return givesTeam("is, holds or lies in a client's memory directory with personal memories", m)
			}
		}
	}
	return ""
}

// clientPlaces returns the configuration directory of the client, "" where no home is
// known, and the memory directories that lie elsewhere.
func clientPlaces(env func(string) string) (config string, memories []string) {
	home := env("HOME")
	if config = env("CLAUDE_CONFIG_DIR"); !filepath.IsAbs(config) && filepath.IsAbs(home) {
		config = filepath.Join(home, ".claude")
	}
	var settings struct {
		Dir string `json:"autoMemoryDirectory"`
	}
	if b, err := os.ReadFile(filepath.Join(config, "settings.json")); err == nil && config != "" {
		_ = json.Unmarshal(b, &settings) // what the client cannot read does not hold for it either
	}
	for _, m := range []string{env("CLAUDE_COWORK_MEMORY_PATH_OVERRIDE"), settings.Dir} {
		if m = expandHome(m); filepath.IsAbs(m) && filepath.Dir(filepath.Clean(m)) != filepath.Clean(m) {
			memories = append(memories, filepath.Clean(m))
		}
	}
	return config, memories
}

// personalContent judges by what lies in a directory, three levels deep: a client's
// configuration has projects/<key>/memory. It is for a directory that is being linked.
// In a linked one lies what any writer of the project put there, team/x.md and
// memory/MEMORY.md too, and that must keep no agent from starting; doctor mentions it.
func personalContent(dir string) string {
	if isDir(dir, "team") {
		return givesTeam("contains team/, so it holds personal memories too", dir)
	}
	if personalMemory(dir) {
		return givesTeam("is called memory and has an index, as a client's memory directory with personal memories", dir)
	}
	if isDir(dir, ".claude", "projects") {
		return "contains a client's .claude/, which holds personal memories; give a team/ directory"
	}
	look := []string{dir}
	for _, child := range subdirs(dir) {
		look = append(look, child)
		if named(child, "projects") {
			look = append(look, subdirs(child)...)
		}
	}
	for _, d := range look {
		if m := filepath.Join(d, "memory"); isDir(m) && personalMemory(m) {
			return givesTeam(fmt.Sprintf("contains %s, a client's memory directory with personal memories", m), m)
		}
	}
	return ""
}

// personalMemory knows a directory called memory by its place, its index or its team/.
// One with none of these is a folder like others.
func personalMemory(dir string) bool {
	if !named(dir, "memory") {
		return false
	}
	if isClientMemory(dir) || isDir(dir, "team") {
		return true
	}
	_, err := os.Lstat(filepath.Join(dir, "MEMORY.md"))
	return err == nil
}

// isClientMemory knows <config>/projects/<key>/memory, where clients keep what is
// personal (SPEC 2.6).
func isClientMemory(dir string) bool {
	if namedClientMemory(dir) {
		return true
	}
	r, err := filepath.EvalSymlinks(dir)
	return err == nil && namedClientMemory(r)
}

func namedClientMemory(dir string) bool {
	return named(dir, "memory") && named(filepath.Dir(filepath.Dir(dir)), "projects")
}

// named compares as the least particular file system does.
func named(dir, name string) bool { return strings.EqualFold(filepath.Base(dir), name) }

// upTo returns the nearest of dir and its ancestors, at most levels up, with a name.
func upTo(dir, name string, levels int) (string, bool) {
	for d := dir; levels >= 0; d, levels = filepath.Dir(d), levels-1 {
		if named(d, name) {
			return d, true
		}
	}
	return "", false
}

// firstBelow returns the first name on the way from up down to dir.
func firstBelow(dir, up string) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(dir, up), string(filepath.Separator))
	first, _, _ := strings.Cut(rest, string(filepath.Separator))
	return first
}

func belowTeam(dir, up string) bool { return named(firstBelow(dir, up), "team") }

// both returns a directory as it is called and as it is; none for "".
func both(dir string) []string {
	if dir == "" {
		return nil
	}
	dir = filepath.Clean(dir)
	return []string{dir, realDir(dir)}
}

func isDir(parts ...string) bool {
	fi, err := os.Stat(filepath.Join(parts...))
	return err == nil && fi.IsDir()
}

// subdirs returns what may be a directory in dir, links among them.
func subdirs(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // the first scan says what cannot be read
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() || e.Type()&os.ModeSymlink != 0 {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out
}

func givesTeam(why, dir string) string {
	return why + "; give the team/ directory itself: " + filepath.Join(dir, "team")
}
