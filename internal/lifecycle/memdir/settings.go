package memdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
)

// settings are the fields of a client's settings file that matter here.
type settings struct {
	Directory string `json:"autoMemoryDirectory"`
	Enabled   *bool  `json:"autoMemoryEnabled"`
}

// managedSettings returns where an administrator's settings lie on this system, as the
// client's documentation says.
func managedSettings() string {
	switch runtime.GOOS {
	case "darwin":
		return "/Library/Application Support/ClaudeCode/managed-settings.json"
	case "windows":
		return `C:\Program Files\ClaudeCode\managed-settings.json`
	}
	return "/etc/claude-code/managed-settings.json"
}

// settingsFiles returns the settings files that hold for a work tree, the strongest
// first: managed, local, project, user.
func (r *Resolver) settingsFiles(cwd, tree, config string) []string {
	managed := r.Managed
	if managed == "" {
		managed = managedSettings()
	}
	files := []string{managed}
	dirs := []string{cwd}
	if tree != cwd && tree != "" {
		dirs = append(dirs, tree)
	}
	for _, name := range []string{"settings.local.json", "settings.json"} {
		for _, d := range dirs {
			files = append(files, filepath.Join(d, ".claude", name))
		}
	}
	if config != "" {
		files = append(files, filepath.Join(config, "settings.json"))
	}
	return files
}

// readSettings reads one file; a missing one says nothing. What is no JSON object is an
// error that names the file: the client ignores such a file, so it decides nothing, but
// whoever asks why should hear of it.
func readSettings(file string) (settings, error) {
	text, err := ReadSmall(file)
	if errors.Is(err, fs.ErrNotExist) {
		return settings{}, nil
	}
	if err != nil {
		return settings{}, fmt.Errorf("settings: %w", err)
	}
	var s settings
	if err := json.Unmarshal(text, &s); err != nil {
		return settings{}, fmt.Errorf("settings: %s is not the JSON that a client reads; it is ignored", file)
	}
	return s, nil
}

// chosen is what the settings files say, each field by the strongest file that has it.
type chosen struct {
	dir, dirFile string // where memories live; "" = nothing is said
	on           *bool  // nil = nothing is said
	onFile       string
	notes        []string // files and fields that are ignored
}

// readAll reads settings files, the strongest first.
func (r *Resolver) readAll(files []string) (c chosen) {
	for _, file := range files {
		s, err := readSettings(file)
		if err != nil {
			if c.dir == "" {
				c.notes = append(c.notes, err.Error())
			}
			continue
		}
		if c.on == nil && s.Enabled != nil {
			c.on, c.onFile = s.Enabled, file
		}
		if c.dir != "" || s.Directory == "" {
			continue
		}
		dir, ok := r.absolute(s.Directory)
		if !ok {
			c.notes = append(c.notes, fmt.Sprintf("autoMemoryDirectory in %s is not an absolute path below a root; it is ignored", file))
			continue
		}
		c.dir, c.dirFile = dir, file
	}
	return c
}

// envDisable turns the client's memory off if it is 1 and on if it is 0, whatever else is
// said.
const envDisable = "CLAUDE_CODE_DISABLE_AUTO_MEMORY"

// off returns what turns the client's memory off, as its documentation says; "" if nothing
// does.
func (r *Resolver) off(set chosen) string {
	switch v := strings.TrimSpace(r.Getenv(envDisable)); {
	case truth(v):
		return envDisable
	case v != "":
		return ""
	}
	for _, name := range []string{"CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE", "CLAUDE_CODE_DISABLE_CLAUDE_MDS"} {
		if truth(r.Getenv(name)) {
			return name
		}
	}
	if set.on != nil && !*set.on {
		return "autoMemoryEnabled in " + set.onFile
	}
	return ""
}

// truth reads a variable as clients do.
func truth(v string) bool {
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// absolute expands ~/ and reports whether dir may be a memory directory: an absolute
// path below a root, as clients demand.
func (r *Resolver) absolute(dir string) (string, bool) {
	if rest, ok := strings.CutPrefix(dir, "~/"); ok && r.Home != "" && rest != "" && rest != "." && rest != ".." {
		dir = filepath.Join(r.Home, rest)
	}
	if strings.ContainsRune(dir, 0) || !filepath.IsAbs(dir) || strings.HasPrefix(dir, `\\`) || strings.HasPrefix(dir, "//") {
		return "", false
	}
	dir = filepath.Clean(dir)
	return dir, filepath.Dir(dir) != dir
}
