package agent

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/agent/control"
	"github.com/memsvc/memsvc/internal/config"
)

// grammar is the command line; see docs/cli.md.
type grammar struct {
	Config    config.File `help:"Settings file (YAML): flags by name, and links." placeholder:"FILE"`
	StateDir  string      `help:"Where the agent keeps its state." default:"${state_dir}" placeholder:"DIR"`
	LogLevel  string      `help:"debug, info, warn or error." default:"info"`
	LogFormat string      `help:"text or json." default:"text"`

	ShowVersion config.VersionFlag `name:"version" cmdline:"" help:"Print the version."`

	Run         runCmd         `cmd:"" help:"Keep directories in step until stopped."`
	Sync        syncCmd        `cmd:"" help:"Bring directories in step once. Exit 0: in step, 3: something waits for a person."`
	Status      statusCmd      `cmd:"" help:"Show each link: phase, refusals, conflicts, errors."`
	Conflicts   conflictsCmd   `cmd:"" help:"List, show and resolve conflicts."`
	Trash       trashCmd       `cmd:"" help:"List, show and restore what was taken from the disk or given up, for 30 days."`
	Memory      memoryCmd      `cmd:"" help:"Write, list, check and share the memories of this project, personal and the team's."`
	Recall      recallCmd      `cmd:"" help:"Find the memories that a prompt needs."`
	Model       modelCmd       `cmd:"" help:"Ask the configured language model whether it works."`
	Context     contextCmd     `cmd:"" help:"Show which standing instructions apply here, and why."`
	Skills      skillsCmd      `cmd:"" help:"List and show skills."`
	Transcripts transcriptsCmd `cmd:"" help:"Search past conversations."`
	MCP         mcpCmd         `cmd:"" name:"mcp" help:"Serve the memories of this project to coding clients over the Model Context Protocol."`
	Notes       notesCmd       `cmd:"" help:"Show and renew the notes of a conversation."`
	Extract     extractCmd     `cmd:"" help:"Make memories of what a conversation said since the last time."`
	Dream       dreamCmd       `cmd:"" help:"Tidy the memories of this project; --dry-run shows what that would do."`
	Hook        hookCmd        `cmd:"" help:"Answer an event of a coding client; for its configuration, not for people."`
	Log         logCmd         `cmd:"" help:"Show the commits of a project or of one memory."`
	Show        showCmd        `cmd:"" help:"Print a memory as the hub has it, now or at a revision."`
	Blame       blameCmd       `cmd:"" help:"Print a memory with who wrote each line, and in which revision."`
	Diff        diffCmd        `cmd:"" help:"Compare local files with the hub, now or at a revision."`
	Restore     restoreCmd     `cmd:"" help:"Bring memories back to what they were at a revision."`
	Resume      resumeCmd      `cmd:"" help:"Decide what a brake asks: --accept-deletes or --restore; or what a project that is gone asks: --create."`
	Check       checkCmd       `cmd:"" help:"Judge files as the guard would; no network. Exit 3: something is refused."`
	Doctor      doctorCmd      `cmd:"" help:"Look for what stands in the way."`
	Login       loginCmd       `cmd:"" help:"Store a token for a hub; it is read from standard input."`
	Join        joinCmd        `cmd:"" help:"Take part in a project with a code of 'memsvc invite': token and link in one step."`
	Link        linkCmd        `cmd:"" help:"Tie a directory to a project."`
	Unlink      unlinkCmd      `cmd:"" help:"Untie a directory; its files stay."`
	Links       linksCmd       `cmd:"" help:"List the links."`
	Install     installCmd     `cmd:"" help:"Set the agent up as a service, or in the configuration of a coding client."`
	Healthcheck healthcheckCmd `cmd:"" help:"Ask the daemon of this state directory whether it serves; exit 0 if so."`
	Version     versionCmd     `cmd:"" help:"Print the version."`
}

// linkFlags describe one link, and give the links of a settings file what they lack.
type linkFlags struct {
	Hub       string `help:"Address of the hub's gRPC listener." placeholder:"HOST:PORT"`
	TokenFile string `help:"File that holds the token; read again when it changes." placeholder:"FILE"`
	Team      string `help:"Team id." placeholder:"TEAM"`
	Project   string `help:"Project id; else derived from the repository's git remote." placeholder:"PROJECT"`
	Dir       string `help:"The team/ directory itself." placeholder:"DIR"`
	Plaintext bool   `help:"Speak without TLS to a hub that is not on this machine."`
	CAFile    string `name:"ca-file" help:"Authorities to trust instead of the system's (PEM)." placeholder:"FILE"`
	CertFile  string `help:"Client certificate (PEM); without a token it says who calls." placeholder:"FILE"`
	KeyFile   string `help:"Key of the client certificate (PEM)." placeholder:"FILE"`
}

func (f linkFlags) link() Link {
	return Link(f)
}

// complete fills what l lacks from the flags.
func (f linkFlags) complete(l Link) Link {
	fill := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	fill(&l.Hub, f.Hub)
	fill(&l.TokenFile, f.TokenFile)
	fill(&l.Team, f.Team)
	fill(&l.CAFile, f.CAFile)
	fill(&l.CertFile, f.CertFile)
	fill(&l.KeyFile, f.KeyFile)
	l.Plaintext = l.Plaintext || f.Plaintext
	return l
}

// absolute makes a link's files and directory absolute.
func absolute(l Link) (Link, error) {
	for _, p := range []*string{&l.Dir, &l.TokenFile, &l.CAFile, &l.CertFile, &l.KeyFile} {
		abs, err := absDir(*p)
		if err != nil {
			return Link{}, err
		}
		*p = abs
	}
	return l, nil
}

// flagLink returns the one link that the flags describe, names from the repository of
// the working directory filled in. Nothing is checked yet.
func (c *command) flagLink(f linkFlags) (Link, error) {
	l := f.link()
	if l.Team == "" || l.Project == "" {
		wd, err := os.Getwd()
		if err != nil {
			return Link{}, err
		}
		names, err := namesOf(wd, l.Project == "")
		if err != nil {
			return Link{}, err
		}
		if l.Team == "" {
			l.Team = names.Team
		}
		if l.Project == "" {
			l.Project = names.Project
		}
	}
	return absolute(l)
}

// links returns the links that a program with these flags serves, checked one by one
// and all of them together; see wanted.
func (c *command) links(f linkFlags, all bool) ([]Link, error) {
	links, err := c.wanted(f, all)
	if err != nil {
		return nil, err
	}
	if len(links) == 0 {
		return nil, nothingLinked(f)
	}
	for _, l := range links {
		if err := c.state.check(l); err != nil {
			return nil, err
		}
	}
	return links, checkLinks(links)
}

func nothingLinked(f linkFlags) error {
	if f.Hub != "" || f.Project != "" {
		return usage("no directory: give --dir, the team/ directory of the memories to share")
	}
	return usage("nothing is linked: give --hub, --token-file, --team, --project and --dir, a --config with links, or run 'memsync-agent link' first")
}

// wanted returns the settings file's links, the one that the flags describe, and those
// made by link: all of these with all, else only where the flags name no directory.
// Nothing is checked.
func (c *command) wanted(f linkFlags, all bool) ([]Link, error) {
	links, err := c.settingsLinks(f)
	if err != nil {
		return nil, err
	}
	if f.Dir != "" {
		l, err := c.flagLink(f)
		if err != nil {
			return nil, err
		}
		links = append(links, l)
	}
	if f.Dir != "" && !all {
		return links, nil
	}
	stored, err := c.state.storedLinks()
	if err != nil {
		return nil, err
	}
	return addLinks(links, stored...), nil
}

// settingsLinks returns the settings file's links, completed by the flags.
func (c *command) settingsLinks(f linkFlags) ([]Link, error) {
	var links []Link
	for _, l := range c.configured {
		l, err := absolute(f.complete(l))
		if err != nil {
			return nil, err
		}
		links = append(links, l)
	}
	return links, nil
}

// addLinks appends the links that are not there yet.
func addLinks(links []Link, more ...Link) []Link {
	for _, l := range more {
		if !slices.ContainsFunc(links, func(k Link) bool { return k.ID() == l.ID() }) {
			links = append(links, l)
		}
	}
	return links
}

// selectFlags choose one of the known links.
type selectFlags struct {
	linkFlags
	Link string `help:"Which link: team/project, project, or directory; needed when there are several." placeholder:"LINK"`
}

// choose returns the one link that a command is about. Flags that name a project of a
// hub need no state; else it is a link known here.
func (c *command) choose(f selectFlags) (Link, error) {
	if f.Hub != "" && f.Link == "" {
		l, err := c.flagLink(f.linkFlags)
		if err != nil {
			return Link{}, err
		}
		if l.Team == "" || l.Project == "" {
			return Link{}, usage("--hub needs --team and --project")
		}
		return l, nil
	}
	known, err := c.known(f.linkFlags)
	if err != nil {
		return Link{}, err
	}
	want := f.Link
	if want == "" {
		want = f.Dir
	}
	if want == "" {
		want = f.Project
	}
	var match []Link
	for _, l := range known {
		if want == "" || l.matches(want) {
			match = append(match, l)
		}
	}
	var names []string
	for _, l := range known {
		names = append(names, l.Name()+" ("+l.Dir+")")
	}
	switch {
	case len(known) == 0:
		return Link{}, usage("no link is known in %s; run 'memsync-agent link', or give --hub, --team and --project", string(c.state))
	case len(match) == 0:
		return Link{}, usage("no link is called %s; known are: %s", want, strings.Join(names, ", "))
	case len(match) > 1:
		return Link{}, usage("several links fit; choose one with --link: %s", strings.Join(names, ", "))
	}
	return match[0], nil
}

// known returns the links that commands speak of: those that the running daemon
// serves, those of the settings file, and those made by link. While no daemon runs, also
// those that flags of run or sync named in this state directory.
func (c *command) known(f linkFlags) ([]Link, error) {
	var links []Link
	switch st, err := c.askStatus(); {
	case err == nil:
		for _, l := range st.Links {
			links = append(links, l.Link)
		}
	default: // none runs, or none that answers
		if links, err = c.state.knownLinks(); err != nil {
			return nil, err
		}
	}
	return c.withLinked(links, f)
}

// withLinked adds the settings file's links and those made by link.
func (c *command) withLinked(links []Link, f linkFlags) ([]Link, error) {
	configured, err := c.settingsLinks(f)
	if err != nil {
		return nil, err
	}
	stored, err := c.state.storedLinks()
	if err != nil {
		return nil, err
	}
	return addLinks(addLinks(links, configured...), stored...), nil
}

// none is what a list with no entries says: all is well only where something is linked.
func (c *command) none(links int, what string) string {
	if links > 0 {
		return what
	}
	return "nothing is linked for the state directory " + visible(string(c.state)) + "; give --state-dir if another is meant"
}

// askStatus asks the running daemon how everything is.
func (c *command) askStatus() (st Status, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.patience())
	defer cancel()
	err = control.Call(ctx, string(c.state), methodStatus, nil, &st)
	return st, err
}

func (l Link) matches(want string) bool {
	if want == l.Name() || want == l.Project || want == l.ID() || want == l.Dir {
		return true
	}
	abs, err := absDir(want)
	return err == nil && realDir(abs) == realDir(l.Dir)
}

// defaultTimeout bounds how long a command waits for the daemon or the hub.
const defaultTimeout = 30 * time.Second

// patience is how long this command waits for the daemon or for another command.
func (c *command) patience() time.Duration { return cmp.Or(c.Patience, defaultTimeout) }
