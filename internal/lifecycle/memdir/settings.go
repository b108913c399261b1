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
