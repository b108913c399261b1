package memdir

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Source says what decided where memories live.
type Source string

// The sources, the strongest first.
const (
	SourceEnvironment Source = "environment" // a variable names the directory
	SourceSetting     Source = "setting"     // autoMemoryDirectory of a settings file
	SourceEvidence    Source = "evidence"    // a client was seen using it
	SourceExisting    Source = "existing"    // it is there, under a key that a client made
	SourceComputed    Source = "computed"    // where a client would make it
)

// Place is where the memories of a project live, and why.
type Place struct {
	Dir    string // absolute; it need not exist
	Source Source
	Detail string   // the variable, the settings file, or the directory the key was made of
	Root   string   // the canonical root of the project
	Notes  []string // what a person who asks why should hear: a file ignored, two candidates
	// Off is the variable or settings file by which the person turned memory off for the
	// client here; "" = it is on. Where memories live is known all the same.
	Off string
}

// Team returns the part of the place that is shared.
func (p Place) Team() string { return filepath.Join(p.Dir, "team") }

// The environment of the clients that decides where memories live.
const (
	envOverride   = "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE"
	envRemoteBase = "CLAUDE_CODE_REMOTE_MEMORY_DIR"
	envConfig     = "CLAUDE_CONFIG_DIR"
	envDirName    = "CLAUDE_CODE_PROJECT_DIR_NAME" // counts only beside envConfig
)

// dirName is what envDirName may hold.
var dirName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Resolver finds memory directories. It reads the disk and changes nothing.
type Resolver struct {
	Getenv  func(string) string
	Home    string // the person's home directory; "" if there is none
	Managed string // the administrator's settings file; "" = where this system has it
}

// Resolve says where the memories of the project that cwd lies in live. seen is a file
// or directory that a client was seen using, from a hook's input, or "". Both are
// absolute. The order is that of SPEC 2.6: environment, setting, then evidence before
// what is computed.
func (r *Resolver) Resolve(cwd, seen string) (Place, error) {
	if !filepath.IsAbs(cwd) {
		return Place{}, fmt.Errorf("memory directory of %q: not an absolute path", cwd)
	}
	cwd = RealPath(cwd)
	root, tree := cwd, ""
	if repo, ok := FindRepo(cwd); ok {
		root, tree = RealPath(repo.Root), repo.WorkTree
	}
	config := r.Config()
	set := r.readAll(r.settingsFiles(cwd, tree, config))
	place, err := r.place(set, config, root, cwd, seen)
	place.Off = r.off(set)
	return place, err
}

// place is Resolve for a project whose settings were read.
func (r *Resolver) place(set chosen, config, root, cwd, seen string) (Place, error) {
	if v := r.Getenv(envOverride); v != "" {
		dir, ok := r.absolute(v)
		if !ok {
			return Place{}, fmt.Errorf("memory directory: %s is not an absolute path below a root; correct or unset it", envOverride)
		}
		return Place{Dir: dir, Source: SourceEnvironment, Detail: envOverride, Root: root}, nil
	}
	if set.dir != "" {
		return Place{Dir: set.dir, Source: SourceSetting, Detail: set.dirFile, Root: root, Notes: set.notes}, nil
	}
	if dir, ok := DirOf(seen); ok {
		return Place{Dir: dir, Source: SourceEvidence, Detail: seen, Root: root, Notes: set.notes}, nil
	}
	place, err := r.byKey(root, cwd)
	place.Notes = append(set.notes, place.Notes...)
	return place, err
}

// Config returns the client's configuration directory, "" where no home is known.
func (r *Resolver) Config() string {
	if dir := r.Getenv(envConfig); filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	if filepath.IsAbs(r.Home) {
		return filepath.Join(r.Home, ".claude")
	}
	return ""
}

// Projects returns the directory in which the client makes one for each project, "" where
// no home is known.
func (r *Resolver) Projects() string {
	if v := r.Getenv(envRemoteBase); filepath.IsAbs(v) {
		return filepath.Join(filepath.Clean(v), "projects")
	}
	if config := r.Config(); config != "" {
		return filepath.Join(config, "projects")
	}
	return ""
}

// byKey finds the directory named after the project.
func (r *Resolver) byKey(root, cwd string) (Place, error) {
	projects := r.Projects()
	if projects == "" {
		return Place{}, fmt.Errorf("memory directory of %s: no home directory and no %s; set one of them", root, envConfig)
	}
	if name := r.Getenv(envDirName); name != "" && r.Getenv(envConfig) != "" {
		if !dirName.MatchString(name) {
			return Place{}, fmt.Errorf("memory directory: %s is not 1 to 64 characters of A-Z, a-z, 0-9, _ and -; correct or unset it", envDirName)
		}
		return Place{Dir: filepath.Join(projects, name, "memory"), Source: SourceEnvironment, Detail: envDirName, Root: root}, nil
	}
	// The canonical root first; a client that keyed by the working directory counts
	// only where the other directory is not there.
	for _, dir := range slices.Compact([]string{root, cwd}) {
		found, notes := existing(projects, dir)
		if found != "" {
			return Place{Dir: found, Source: SourceExisting, Detail: dir, Root: root, Notes: notes}, nil
		}
	}
	return Place{Dir: filepath.Join(projects, newKey(root), "memory"), Source: SourceComputed, Detail: root, Root: root}, nil
}

// existing returns the memory directory that a client made for dir, "" if none did. A
// long key is known by its beginning; of several the one changed last counts.
func existing(projects, dir string) (found string, notes []string) {
	key := Key(dir)
	if len(key) <= maxKeyChars {
		memory := filepath.Join(projects, key, "memory")
		if isDir(memory) {
			return memory, nil
		}
		return "", nil
	}
	entries, err := os.ReadDir(projects)
	if err != nil {
		return "", nil
	}
	var newest os.FileInfo
	count := 0
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), key[:maxKeyChars]) {
			continue
		}
		memory := filepath.Join(projects, e.Name(), "memory")
		fi, err := os.Stat(memory)
		if err != nil || !fi.IsDir() {
			continue
		}
		count++
		if newest == nil || fi.ModTime().After(newest.ModTime()) {
			newest, found = fi, memory
		}
	}
	if count > 1 {
		notes = append(notes, fmt.Sprintf("%d directories below %s begin with the first %d characters of this project's key; the one changed last is taken", count, projects, maxKeyChars))
	}
	return found, notes
}

// DirOf returns the memory directory that a path seen in use lies in, or is: what is
// called memory, two levels below projects.
func DirOf(seen string) (string, bool) {
	if !filepath.IsAbs(seen) {
		return "", false
	}
	for d := filepath.Clean(seen); filepath.Dir(d) != d; d = filepath.Dir(d) {
		if filepath.Base(d) == "memory" && filepath.Base(filepath.Dir(filepath.Dir(d))) == "projects" {
			return d, true
		}
	}
	return "", false
}

// RealPath resolves links as far as dir exists.
func RealPath(dir string) string {
	dir = filepath.Clean(dir)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	if parent := filepath.Dir(dir); parent != dir {
		return filepath.Join(RealPath(parent), filepath.Base(dir))
	}
	return dir
}

func isDir(name string) bool {
	fi, err := os.Stat(name)
	return err == nil && fi.IsDir()
}
