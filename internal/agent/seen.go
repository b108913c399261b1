package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/transcript"
)

// A client may keep a project's memories where nobody would compute it: by another key,
// as some versions have. A directory in which a client was seen writing therefore counts
// for the project from then on, until it writes where the project's own would be. It must
// not be another project's: a person may have their client write there, too.

// seenPlace is a memory directory that a client uses for a project.
type seenPlace struct {
	Root string    `json:"root"` // the canonical root of the project
	Dir  string    `json:"dir"`
	Time time.Time `json:"time"`
}

// maxSeen bounds the projects whose directory is remembered; the oldest gives way.
const maxSeen = 500

func (s stateDir) seenFile(root string) string {
	sum := sha256.Sum256([]byte(root))
	return s.path("places", hex.EncodeToString(sum[:16])+".json")
}

// seenDir returns the directory in which a client was seen writing for a project; "" if
// none was, or if it is there no more.
func (s stateDir) seenDir(root string) string {
	var p seenPlace
	if readJSON(s.seenFile(root), &p) != nil || p.Root != root || !filepath.IsAbs(p.Dir) || !isDir(p.Dir) {
		return ""
	}
	return p.Dir
}

// placeResolver finds memory directories as the clients of this machine do.
func placeResolver() *memdir.Resolver {
	home, _ := os.UserHomeDir() // without one the resolver says what is missing
	return &memdir.Resolver{Getenv: os.Getenv, Home: home}
}

// resolve finds the memory directory of the project that cwd lies in: as clients compute
// it, or as one was seen to keep it, before or, by a file that it uses, just now.
func (c *command) resolve(cwd, seen string) (found memdir.Place, remembered bool, err error) {
	found, err = placeResolver().Resolve(cwd, seen)
	if err != nil || found.Source != memdir.SourceExisting && found.Source != memdir.SourceComputed {
		return found, false, err
	}
	dir := c.state.seenDir(found.Root)
	if dir == "" || dir == found.Dir {
		return found, false, nil
	}
	found.Dir, found.Source, found.Detail = dir, memdir.SourceEvidence, dir
	return found, true, nil
}

// saw notes that a client wrote a file, in a session whose working directory is cwd. What
// is no memory of the client's tells nothing.
func (c *command) saw(cwd, file string) error {
	dir, ok := memdir.DirOf(file)
	r := placeResolver()
	projects := r.Projects()
	if !ok || projects == "" || !isDir(dir) || !within(realDir(dir), realDir(projects)) {
		return nil
	}
	own, err := r.Resolve(cwd, "")
	if err != nil {
		return err
	}
	name := c.state.seenFile(own.Root)
	switch {
	case own.Source != memdir.SourceExisting && own.Source != memdir.SourceComputed:
		return nil // a person or the client's launcher chose
	case realDir(own.Dir) == realDir(dir):
		if err := os.Remove(name); err != nil && exists(name) {
			return err
		}
		return nil
	case c.state.seenDir(own.Root) == dir:
		return nil
	}
	if foreign, err := c.foreign(dir, own, cwd); err != nil || foreign {
		return err
	}
	c.state.pruneSeen()
	return writeJSON(name, seenPlace{Root: own.Root, Dir: dir, Time: c.Now().UTC()})
}

// foreign reports whether a memory directory is, or may be, another project's than that of
// own, to which cwd belongs: the conversations beside it tell whose they are. Where there
// are none, the project's own directory, if it is there, weighs more than one write elsewhere.
func (c *command) foreign(dir string, own memdir.Place, cwd string) (bool, error) {
	links, err := c.allLinks()
	if err != nil {
		return true, err
	}
	if l := sharing(links, filepath.Join(dir, memdir.TeamDir)); l != nil {
		closed, err := c.closes(*l, memdir.Place{Dir: dir, Source: memdir.SourceEvidence, Root: own.Root}, cwd)
		if err != nil || closed != nil {
			return true, err
		}
	}
	for _, p := range c.state.allSeen() {
		if p.Dir == dir && p.Root != own.Root {
			return true, nil
		}
	}
	roots := rootsOf(filepath.Dir(dir))
	if len(roots) == 0 {
		return own.Source == memdir.SourceExisting, nil
	}
	return !slices.Contains(roots, own.Root), nil
}

// How much is read to know whose conversations lie in a directory.
const (
	maxConversations = 5
	maxHeadBytes     = 256 << 10
)

// rootsOf returns the canonical roots of the projects whose latest conversations lie in a
// directory.
func rootsOf(dir string) (roots []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var files []os.FileInfo
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && fi.Mode().IsRegular() && strings.HasSuffix(e.Name(), ".jsonl") {
			files = append(files, fi)
		}
	}
	slices.SortFunc(files, func(a, b os.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, fi := range files[:min(len(files), maxConversations)] {
		if cwd := cwdOf(filepath.Join(dir, fi.Name())); cwd != "" {
			o, _ := originOf(cwd)
			roots = append(roots, o.Root)
		}
	}
	return roots
}

// cwdOf returns the working directory that a conversation began in; "" if it does not say.
func cwdOf(file string) string {
	f, _, err := transcript.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // only read
	for l, err := range transcript.Forward(io.LimitReader(f, maxHeadBytes), 0) {
		if err != nil {
			return ""
		}
		if line, ok := transcript.Parse(l.Text); ok && filepath.IsAbs(line.CWD) {
			return line.CWD
		}
	}
	return ""
}

// allSeen returns what is remembered of all projects.
func (s stateDir) allSeen() (all []seenPlace) {
	entries, err := os.ReadDir(s.path("places"))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		var p seenPlace
		if strings.HasSuffix(e.Name(), ".json") && readJSON(s.path("places", e.Name()), &p) == nil {
			all = append(all, p)
		}
	}
	return all
}

// pruneSeen makes room for one more project. What it cannot remove stays.
func (s stateDir) pruneSeen() {
	all := s.allSeen()
	if len(all) < maxSeen {
		return
	}
	slices.SortFunc(all, func(a, b seenPlace) int { return a.Time.Compare(b.Time) })
	for _, p := range all[:len(all)-maxSeen+1] {
		_ = os.Remove(s.seenFile(p.Root))
	}
}
