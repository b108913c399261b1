package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
)

// Coding clients name a memory directory after the path of its project, every character
// but ASCII letters and digits a dash. So two repositories may share one directory that
// know nothing of each other. What is written here keeps the one's memories out of the
// other's team: a link remembers for which repositories it was made, and serves these.

// origin is the repository, or the directory, that a link was made for.
type origin struct {
	// Root is the canonical root, absolute, links resolved.
	Root string `json:"root"`
	// Remote is the project that the git remote names; of a remote that names none, as a
	// path on this machine does, a fingerprint: its text may hold a credential. "" = none.
	Remote string `json:"remote,omitempty"`
}

// remoteFingerprint is what the fingerprint of a remote begins with.
const remoteFingerprint = "sha256:"

// String is how a person is told of it.
func (o origin) String() string {
	if o.Remote != "" && !strings.HasPrefix(o.Remote, remoteFingerprint) {
		return o.Remote
	}
	return o.Root
}

// originOf looks at the repository that dir, absolute, lies in; git is false outside one.
func originOf(dir string) (o origin, git bool) {
	repo, ok := memdir.FindRepo(dir)
	if !ok {
		return origin{Root: memdir.RealPath(dir)}, false
	}
	o.Root = memdir.RealPath(repo.Root)
	cfg, err := memdir.ReadSmall(filepath.Join(repo.CommonDir, "config"))
	if err != nil {
		return o, true
	}
	if url := remoteURL(cfg); url != "" {
		if o.Remote, err = ProjectFromRemote(url); err != nil {
			sum := sha256.Sum256([]byte(url))
			o.Remote = remoteFingerprint + hex.EncodeToString(sum[:8])
		}
	}
	return o, true
}

// same reports whether two are one project: by their remotes where both have one, so that
// clones are one, else by their roots. Outside git a client may work in a folder below.
func (o origin) same(p origin, git bool) bool {
	if o.Remote != "" && p.Remote != "" {
		return o.Remote == p.Remote
	}
	return o.Root == p.Root || !git && (within(o.Root, p.Root) || within(p.Root, o.Root))
}

// originsFile holds the origins of the links made by `link` and `join`.
const originsFile = "origins.json"

// origins returns what links were made for, by their IDs.
func (s stateDir) origins() (map[string][]origin, error) {
	all := map[string][]origin{}
	err := readJSON(s.path(originsFile), &all)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return all, err
}

// keepOrigin notes that a link is being made for the project of the working directory, if
// that is where its memories lie. One for which the link is made again counts too.
// Where it is not, and the project's id names no remote, nothing tells for whom the link is
// made, and the person hears it.
func (c *command) keepOrigin(l Link) error {
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	found, _, err := c.resolve(wd, "") // without a home there may be no place, and nothing to note
	if err != nil || realDir(found.Team()) != realDir(l.Dir) {
		c.warnOfNoOrigin(l)
		return nil //nolint:nilerr // the link is for another directory than that of this project
	}
	all, err := c.state.origins()
	if err != nil {
		return err
	}
	here, _ := originOf(wd)
	if slices.Contains(all[l.ID()], here) {
		return nil
	}
	all[l.ID()] = append(all[l.ID()], here)
	return writeJSON(c.state.path(originsFile), all)
}

// warnOfNoOrigin says what to do so that a link of a client's directory is noted with its
// repository, unless that is done already or its name tells.
func (c *command) warnOfNoOrigin(l Link) {
	all, err := c.state.origins()
	if err == nil && len(all[l.ID()]) == 0 && !namesRemote(l.Project) && isClientMemory(filepath.Dir(realDir(l.Dir))) {
		fmt.Fprintf(c.Stderr, "memsync-agent: warning: nothing tells for which repository %s is; run 'memsync-agent link --team %s --project %s --dir %s' inside it too, so that another one with the same directory is told apart\n",
			visible(l.Dir), l.Team, l.Project, visible(l.Dir))
	}
}

// forgetOrigins drops what a link was made for, so that it can be made for another.
func (s stateDir) forgetOrigins(l Link) error {
	all, err := s.origins()
	if err != nil || len(all[l.ID()]) == 0 {
		return err
	}
	delete(all, l.ID())
	return writeJSON(s.path(originsFile), all)
}

// closedTeam is a team directory that the client's key leads to and that is another
// project's: nothing is read from it and nothing written.
type closedTeam struct {
	dir string // the team directory, absolute
	why string // one line: whose it is, and what to do
}

func (t *closedTeam) Error() string { return t.why }

// closes says why the team directory of a place, which l shares, is not for the project
// that cwd lies in; nil if it is, or if nothing tells.
func (c *command) closes(l Link, p memdir.Place, cwd string) (*closedTeam, error) {
	here, git := originOf(cwd)
	if !git && (p.Source == memdir.SourceEnvironment || p.Source == memdir.SourceSetting) {
		return nil, nil //nolint:nilnil // a person chose the directory, and nothing here names a project
	}
	if names, err := namesOf(cwd, true); err == nil && names.Project == l.Project && (names.Team == "" || names.Team == l.Team) {
		return nil, nil //nolint:nilnil // the repository names the very project
	}
	all, err := c.state.origins()
	if err != nil {
		return nil, err
	}
	owner := ""
	if made := all[l.ID()]; len(made) > 0 {
		if slices.ContainsFunc(made, func(o origin) bool { return o.same(here, git) }) {
			return nil, nil //nolint:nilnil // made for this one
		}
		owner = ", linked for " + made[0].Root
	} else if !namesRemote(l.Project) || here.String() == here.Root {
		return nil, nil //nolint:nilnil // nobody noted what it was made for, and its name does not tell
	}
	return &closedTeam{dir: p.Team(), why: fmt.Sprintf("%s is the team directory of %s%s, and you are in %s: coding clients give both one memory directory. Nothing is shared or read there. A person can part them: "+
		"set autoMemoryDirectory in %s and link the team/ in it with 'memsync-agent link --dir'; if this is the same project, run 'memsync-agent link --team %s --project %s --dir %s' here",
		visible(p.Team()), l.Name(), visible(owner), visible(here.String()), visible(filepath.Join(here.Root, ".claude", "settings.local.json")), l.Team, l.Project, visible(p.Team()))}, nil
}

// namesRemote reports whether a project's id is one that ProjectFromRemote makes: a host,
// then a path.
func namesRemote(project string) bool {
	host, _, ok := strings.Cut(project, "~")
	return ok && strings.Contains(host, ".")
}
