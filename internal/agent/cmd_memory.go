package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncstate"
	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

type memoryCmd struct {
	Add    memoryAddCmd    `cmd:"" help:"Write a new memory, personal unless --team; its text comes from --file or standard input."`
	List   memoryListCmd   `cmd:"" help:"List the memories of this project."`
	Show   memoryShowCmd   `cmd:"" help:"Print a memory."`
	Edit   memoryEditCmd   `cmd:"" help:"Change a memory: in $EDITOR, or with --file."`
	Rm     memoryRmCmd     `cmd:"" help:"Delete a memory and its index line."`
	Share  memoryShareCmd  `cmd:"" help:"Move a personal memory to the team; it is shown and asked for first."`
	Lint   memoryLintCmd   `cmd:"" help:"Check every memory and both indexes. Exit 3: something is wrong."`
	Index  memoryIndexCmd  `cmd:"" help:"Print the index as clients load it; --check and --rebuild compare and renew it."`
	Verify memoryVerifyCmd `cmd:"" help:"Check the paths, commands and symbols that memories cite against the repository you are in. Exit 3: something is gone."`
	Where  memoryWhereCmd  `cmd:"" help:"Print which directory is used, and why."`
}

// placeFlags choose whose memories a command is about.
type placeFlags struct {
	MemoryDir string `help:"The memory directory, whose team/ is the shared part; else found from the working directory as clients do." placeholder:"DIR"`
}

// place is the project's two directories, and the link that shares one of them.
type place struct {
	memdir.Place
	team string // absolute; the shared part, whether it is linked or not; "" if it is closed
	link *Link  // nil when nobody shares it
	// closed is the team directory beside the personal one, when it is another project's.
	// team may then be a directory elsewhere.
	closed *closedTeam
	// remembered says that a client was seen using the directory before, not just now.
	remembered bool
}

// sourceFlag is Place.Source when a flag names the directory.
const sourceFlag memdir.Source = "flag"

// place finds the memories that a command is about.
func (c *command) place(f placeFlags) (place, error) {
	wd, err := os.Getwd()
	if err != nil {
		return place{}, err
	}
	return c.placeOf(f, wd, "")
}

// placeOf finds the memories of the project that cwd lies in. seen is a file that a
// client was seen using, or "".
func (c *command) placeOf(f placeFlags, cwd, seen string) (place, error) {
	var p place
	if f.MemoryDir != "" {
		dir, err := absDir(f.MemoryDir)
		if err != nil {
			return place{}, err
		}
		if filepath.Base(dir) == memdir.TeamDir {
			return place{}, usage("--memory-dir %s: that is the shared part; give the directory that holds it", dir)
		}
		if !isDir(filepath.Dir(dir)) {
			return place{}, usage("--memory-dir %s: there is no directory %s", dir, filepath.Dir(dir))
		}
		p.Place = memdir.Place{Dir: dir, Source: sourceFlag, Detail: "--memory-dir", Root: cwd}
	} else {
		var err error
		if p.Place, p.remembered, err = c.resolve(cwd, seen); err != nil {
			return place{}, usage("%v; or give --memory-dir", err)
		}
	}
	p.team = p.Team()
	links, err := c.allLinks()
	if err != nil {
		return place{}, err
	}
	p.link = sharing(links, p.team)
	if p.link != nil && f.MemoryDir == "" {
		if err := c.closePlace(&p, cwd); err != nil {
			return place{}, err
		}
	}
	if p.link == nil && f.MemoryDir == "" {
		// The project may be shared from another directory.
		if names, err := namesOf(cwd, true); err == nil && names.Project != "" {
			for _, l := range links {
				if l.Project == names.Project && (names.Team == "" || l.Team == names.Team) {
					p.link, p.team = &l, l.Dir
					break
				}
			}
		}
	}
	return p, nil
}

// allLinks returns every link that this machine knows of: with a state, in the settings, or
// made by hand.
func (c *command) allLinks() ([]Link, error) {
	links, err := c.state.knownLinks()
	if err != nil {
		return nil, err
	}
	return c.withLinked(links, linkFlags{})
}

// closePlace takes the team's part from a place whose link is another project's. A
// directory that is just seen in use tells of no collision if this project has another.
func (c *command) closePlace(p *place, cwd string) error {
	if p.Source == memdir.SourceEvidence && !p.remembered {
		own, err := placeResolver().Resolve(cwd, "")
		if err != nil || realDir(own.Dir) != realDir(p.Dir) {
			return nil //nolint:nilerr // see above
		}
	}
	closed, err := c.closes(*p.link, p.Place, cwd)
	if err == nil && closed != nil {
		p.closed, p.link, p.team = closed, nil, ""
	}
	return err
}

// sharing returns the link whose workspace dir is.
func sharing(links []Link, dir string) *Link {
	real := realDir(dir)
	for _, l := range links {
		if l.Dir == dir || realDir(l.Dir) == real {
			return &l
		}
	}
	return nil
}

// store opens the memories of a place, under the team's policy as last told.
func (c *command) store(p place) *memories.Store {
	s := memories.New(p.Dir, p.team, c.guardOf(p))
	s.Now = c.Now
	if p.closed != nil && p.team == "" {
		s.NoTeam = p.closed
	}
	if p.link != nil {
		s.Authors = func(texts map[memory.Path]memory.ETag) (map[memory.Path]string, error) {
			return syncstate.Authors(string(c.state), p.link.ID(), texts)
		}
	}
	return s
}

// guardOf returns the guard of a place's shared part.
func (c *command) guardOf(p place) teamGuard {
	if p.link == nil {
		return c.state.guardFor("", "")
	}
	return c.state.guardFor(p.link.Hub, p.link.Team)
}

// teamGuard is the guard as package memories asks for it.
type teamGuard struct{ guard }

// Check judges a text as the sync agent will before it leaves.
func (g teamGuard) Check(ctx context.Context, path memory.Path, content []byte) (violations, warnings []memory.Violation, err error) {
	v, err := g.guard.Check(ctx, path, content)
	return v.Violations, v.Warnings, err
}

// memoryEntry is a memory as --json prints it; see docs/memory-commands.md.
type memoryEntry struct {
	Ref         string    `json:"ref"`
	File        string    `json:"file"`
	Scope       string    `json:"scope"`
	Type        string    `json:"type"` // "" where it is none of the four
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Modified    time.Time `json:"modified"` // as the memory says, else the file's
	Bytes       int       `json:"bytes"`
	Redacted    bool      `json:"redacted,omitempty"` // an admin removed the text
	Text        string    `json:"text,omitempty"`     // of show only
}

func memoryEntryOf(s *memories.Store, m *memories.Memory) memoryEntry {
	typ, _ := m.Type()
	return memoryEntry{
		Ref: m.String(), File: s.File(m.Ref), Scope: string(m.Scope), Type: string(typ), Name: m.Name(),
		Description: m.Front.Description, Modified: m.Age().UTC(), Bytes: len(m.Content), Redacted: m.Redacted(),
	}
}

type memoryListCmd struct {
	placeFlags
	Type     string `cmdline:"" help:"Only this type." placeholder:"TYPE"`
	Team     bool   `cmdline:"" help:"Only the team's." xor:"scope"`
	Personal bool   `cmdline:"" help:"Only the personal ones." xor:"scope"`
	JSON     bool   `name:"json" help:"Print JSON; see docs/memory-commands.md."`
}

// Run lists memories, one a line.
func (x *memoryListCmd) Run(c *command) error {
	if _, ok := memory.ParseType(x.Type); x.Type != "" && !ok {
		return usage("--type %.40q: use one of %s", x.Type, memory.TypeNames())
	}
	p, err := c.place(x.placeFlags)
	if err != nil {
		return err
	}
	s := c.store(p)
	list, skipped, err := s.ListAll(c.ctx)
	if err != nil {
		return err
	}
	entries := []memoryEntry{}
	for _, m := range list {
		typ, _ := m.Type()
		if x.Type != "" && string(typ) != x.Type || x.Team && m.Scope != memory.ScopeTeam || x.Personal && m.Scope != memory.ScopePrivate {
			continue
		}
		entries = append(entries, memoryEntryOf(s, &m))
	}
	for _, err := range skipped {
		fmt.Fprintf(c.Stderr, "memsync-agent: passed over: %s\n", oneLine(err))
	}
	if x.JSON {
		return printJSON(c.Stdout, entries)
	}
	for _, e := range entries {
		typ := e.Type
		if typ == "" {
			typ = "-"
		}
		fmt.Fprintf(c.Stdout, "%-9s  %s  %s", typ, visible(e.Ref), visible(e.Name))
		switch {
		case e.Redacted:
			fmt.Fprint(c.Stdout, " — redacted: an admin removed this text")
		case e.Description != "":
			fmt.Fprintf(c.Stdout, " — %s", visible(e.Description))
		}
		fmt.Fprintln(c.Stdout)
	}
	return nil
}

type memoryShowCmd struct {
	placeFlags
	Memory string `arg:"" help:"File, name, or team/FILE."`
	JSON   bool   `name:"json" help:"Print JSON; see docs/memory-commands.md."`
}

// Run prints one memory, byte by byte.
func (x *memoryShowCmd) Run(c *command) error {
	s, m, err := c.find(x.placeFlags, x.Memory)
	if err != nil {
		return err
	}
	if x.JSON {
		e := memoryEntryOf(s, &m)
		e.Text = string(m.Content)
		return printJSON(c.Stdout, e)
	}
	_, err = c.Stdout.Write(m.Content)
	return err
}

// find opens the store and the one memory that text means.
func (c *command) find(f placeFlags, text string) (*memories.Store, memories.Memory, error) {
	p, err := c.place(f)
	if err != nil {
		return nil, memories.Memory{}, err
	}
	return c.findIn(p, text)
}

// findIn is find for a place that is known.
func (c *command) findIn(p place, text string) (*memories.Store, memories.Memory, error) {
	s := c.store(p)
	if abs, err := filepath.Abs(text); err == nil && strings.ContainsRune(text, filepath.Separator) && exists(abs) {
		text = abs
	}
	m, err := s.Find(c.ctx, text)
	return s, m, err
}

type memoryWhereCmd struct {
	placeFlags
	JSON bool `name:"json" help:"Print JSON; see docs/memory-commands.md."`
}

// howToShare says what makes a team directory one that others read.
func howToShare(team string) string {
	return "'memsync-agent join CODE --dir " + team + "' with an invitation does, or 'memsync-agent link --hub HOST:PORT --team TEAM --dir " + team + "'"
}

// whereEntry is what memory where says.
type whereEntry struct {
	Personal string   `json:"personal"`
	Team     string   `json:"team"`
	Source   string   `json:"source"` // flag, environment, setting, evidence, existing or computed
	Detail   string   `json:"detail"`
	Root     string   `json:"root"`
	Link     string   `json:"link,omitempty"` // team/project that shares the team directory
	Off      string   `json:"off,omitempty"`  // what turned the client's memory off here
	Notes    []string `json:"notes"`
}

// Run says which directories are used, and why.
func (x *memoryWhereCmd) Run(c *command) error {
	p, err := c.place(x.placeFlags)
	if err != nil {
		return err
	}
	e := whereEntry{Personal: p.Dir, Team: p.team, Source: string(p.Source), Detail: p.Detail, Root: p.Root, Off: p.Off, Notes: append([]string{}, p.Notes...)}
	if p.link != nil {
		e.Link = p.link.Name()
	}
	if p.closed != nil {
		e.Notes = append(e.Notes, p.closed.why, mixedPersonal)
	}
	if x.JSON {
		return printJSON(c.Stdout, e)
	}
	why := map[memdir.Source]string{
		sourceFlag:               "because of %s",
		memdir.SourceEnvironment: "because of the environment variable %s",
		memdir.SourceSetting:     "because of autoMemoryDirectory in %s",
		memdir.SourceEvidence:    "because a client uses %s",
		memdir.SourceExisting:    "it is there, named after %s",
		memdir.SourceComputed:    "where clients would make it for %s; it is not there yet",
	}[p.Source]
	fmt.Fprintf(c.Stdout, "personal: %s\n          "+why+"\n", e.Personal, e.Detail)
	if e.Team == "" {
		e.Team = "none"
	}
	shared := "nobody shares it; " + howToShare(e.Team)
	switch {
	case p.closed != nil && p.link == nil:
		shared = "the directory beside the personal one is another project's; see the note"
	case e.Link != "":
		shared = "shared as " + e.Link
	}
	fmt.Fprintf(c.Stdout, "team:     %s\n          %s\n", e.Team, shared)
	if e.Off != "" {
		fmt.Fprintf(c.Stdout, "off:      by %s: hooks give and take no memories here\n", e.Off)
	}
	for _, n := range e.Notes {
		fmt.Fprintf(c.Stdout, "note:     %s\n", n)
	}
	return nil
}

type memoryLintCmd struct {
	placeFlags
	Fix  bool `cmdline:"" help:"Mend index lines that are missing or lead nowhere; memories are never rewritten."`
	JSON bool `name:"json" help:"Print JSON; see docs/memory-commands.md."`
}

// lintEntry is a problem as --json prints it.
type lintEntry struct {
	Ref     string `json:"ref"`
	Line    int    `json:"line"` // 0 = the file as a whole
	Rule    string `json:"rule"`
	Message string `json:"message"`
	Error   bool   `json:"error"`
	Fixed   bool   `json:"fixed"`
}

// Run prints what is wrong, a problem a line, as compilers do.
func (x *memoryLintCmd) Run(c *command) error {
	p, err := c.place(x.placeFlags)
	if err != nil {
		return err
	}
	problems, err := c.store(p).Lint(c.ctx, x.Fix)
	if err != nil {
		return err
	}
	wrong := false
	entries := []lintEntry{}
	for _, p := range problems {
		wrong = wrong || p.Error && !p.Fixed
		entries = append(entries, lintEntry(p))
	}
	if x.JSON {
		if err := printJSON(c.Stdout, entries); err != nil {
			return err
		}
	} else {
		for _, e := range entries {
			where, kind := e.Ref, "warning: "
			if e.Line > 0 {
				where = fmt.Sprintf("%s:%d", e.Ref, e.Line)
			}
			switch {
			case e.Fixed:
				kind = "mended: "
			case e.Error:
				kind = ""
			}
			if where != "" {
				where += ": "
			}
			fmt.Fprintf(c.Stdout, "%s%s%s: %s\n", visible(where), kind, e.Rule, visible(e.Message))
		}
		if len(entries) == 0 {
			fmt.Fprintln(c.Stdout, "nothing to mend")
		}
	}
	if wrong {
		return exitCode(ExitPerson)
	}
	return nil
}

type memoryIndexCmd struct {
	placeFlags
	Team    bool `cmdline:"" help:"The team's index instead of the personal one."`
	Check   bool `cmdline:"" help:"Say what differs between index and files. Exit 3: something does." xor:"do"`
	Rebuild bool `cmdline:"" help:"Make all entries anew from the files; prose stays." xor:"do"`
}

// Run prints, checks or renews an index.
func (x *memoryIndexCmd) Run(c *command) error {
	p, err := c.place(x.placeFlags)
	if err != nil {
		return err
	}
	dir := p.Dir
	if x.Team {
		if dir = p.team; dir == "" {
			return p.closed
		}
	}
	d, err := memdir.Open(dir)
	if errors.Is(err, fs.ErrNotExist) { // before the first memory
		if x.Check || x.Rebuild {
			fmt.Fprintln(c.Stdout, "index and files agree")
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // every write was synced by itself
	var report memdir.IndexReport
	switch {
	case x.Rebuild:
		report, err = d.Rebuild(c.ctx)
	case x.Check:
		report, err = d.CheckIndex(c.ctx)
	default:
		return c.printIndex(d)
	}
	if err != nil {
		return err
	}
	for _, e := range report.Ghosts {
		fmt.Fprintf(c.Stdout, "ghost: %s leads to no file\n", visible(e.Key()))
	}
	for _, p := range report.Missing {
		fmt.Fprintf(c.Stdout, "missing: %s has no line\n", visible(string(p)))
	}
	for _, v := range report.Warnings {
		fmt.Fprintf(c.Stdout, "warning: %s: %s\n", v.Rule, v.Message)
	}
	switch {
	case report.OK():
		fmt.Fprintln(c.Stdout, "index and files agree")
	case x.Check:
		return exitCode(ExitPerson)
	default:
		fmt.Fprintln(c.Stdout, "mended")
	}
	return nil
}

// printIndex prints what a client loads, and how much it does not.
func (c *command) printIndex(d *memdir.Dir) error {
	content, _, err := d.Read(memory.IndexName)
	if errors.Is(err, fs.ErrNotExist) {
		if files, bad, err := d.Files(c.ctx); err != nil || len(files)+len(bad) == 0 {
			return err // nothing there that could have a line
		}
		return fmt.Errorf("no index in %s; 'memory index --rebuild' makes one", d.Path())
	}
	if err != nil {
		return err
	}
	loaded, cut := memory.CutIndex(content)
	// Anybody of the team writes lines of an index; none moves the cursor of who reads them.
	if _, err := io.WriteString(c.Stdout, visibleText(strings.ReplaceAll(string(loaded), "\r\n", "\n"))); err != nil {
		return err
	}
	if cut > 0 {
		fmt.Fprintf(c.Stderr, "memsync-agent: %d more entries are past the caps, and no client loads them; shorten the index\n", cut)
	}
	return nil
}
