package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/instructions"
	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/skills"
	"github.com/memsvc/memsvc/internal/lifecycle/transcript"
)

// project is where a person works, as the layers beside memory see it.
type project struct {
	dir, top, config, home string
}

func (c *command) project() (project, error) {
	wd, err := os.Getwd()
	if err != nil {
		return project{}, err
	}
	home, _ := os.UserHomeDir() // without one the person's own layer is empty
	p := project{dir: wd, home: home, config: (&memdir.Resolver{Getenv: os.Getenv, Home: home}).Config()}
	if repo, ok := memdir.FindRepo(wd); ok {
		p.top = repo.WorkTree
	}
	return p, nil
}

type contextCmd struct {
	Files []string `arg:"" optional:"" help:"Files being worked on, for rules that are for some files only."`
	JSON  bool     `name:"json" help:"Print JSON; see docs/layers.md."`
	Text  bool     `cmdline:"" help:"Print the texts too."`
}

// contextEntry is what context --json prints.
type contextEntry struct {
	Instructions []instructionEntry `json:"instructions"`
	Skills       []skillEntry       `json:"skills"`
	Git          gitEntry           `json:"git"`
}

type instructionEntry struct {
	Kind     string   `json:"kind"`
	File     string   `json:"file"`
	Why      string   `json:"why"`
	Skipped  string   `json:"skipped,omitempty"`
	External bool     `json:"external"`
	Paths    []string `json:"paths,omitempty"`
	Bytes    int      `json:"bytes"`
	Text     string   `json:"text,omitempty"` // with --text
}

type gitEntry struct {
	Branch  string   `json:"branch"`
	Status  []string `json:"status"`
	Commits []string `json:"commits"`
}

// Run says which standing instructions apply here, and why.
func (x *contextCmd) Run(c *command) error {
	p, err := c.project()
	if err != nil {
		return err
	}
	for i, f := range x.Files {
		if x.Files[i], err = absDir(f); err != nil {
			return err
		}
	}
	sources, err := instructions.Load(c.ctx, instructions.Options{Dir: p.dir, Top: p.top, Config: p.config, Home: p.home, Files: x.Files})
	if err != nil {
		return err
	}
	list, skipped, err := skills.List(c.ctx, skills.Options{Config: p.config, Top: p.top, Dir: p.dir})
	if err != nil {
		return err
	}
	for _, err := range skipped {
		fmt.Fprintf(c.Stderr, "memsync-agent: passed over: %s\n", oneLine(err))
	}
	git := instructions.ReadGit(c.ctx, p.top)
	if x.JSON {
		e := contextEntry{Instructions: []instructionEntry{}, Skills: skillEntries(list), Git: gitEntry{Branch: git.Branch, Status: append([]string{}, git.Status...), Commits: append([]string{}, git.Commits...)}}
		for _, s := range sources {
			i := instructionEntry{Kind: string(s.Kind), File: s.File, Why: s.Why, Skipped: s.Skipped, External: s.External, Paths: s.Paths, Bytes: len(s.Text)}
			if x.Text {
				i.Text = s.Text
			}
			e.Instructions = append(e.Instructions, i)
		}
		return printJSON(c.Stdout, e)
	}
	for _, s := range sources {
		fmt.Fprintf(c.Stdout, "%-9s %s\n          %s", s.Kind, visible(s.File), visible(s.Why))
		switch {
		case s.Skipped != "":
			fmt.Fprintf(c.Stdout, "; does not apply: %s", visible(s.Skipped))
		case s.External:
			fmt.Fprint(c.Stdout, "; from outside the project, so clients ask first")
		}
		fmt.Fprintln(c.Stdout)
		if x.Text && s.Text != "" {
			fmt.Fprintf(c.Stdout, "\n%s\n", closed(s.Text))
		}
	}
	if len(sources) == 0 {
		fmt.Fprintln(c.Stdout, "no instructions apply here")
	}
	if git.Branch != "" {
		fmt.Fprintf(c.Stdout, "git       branch %s, %d changed files\n", visible(git.Branch), len(git.Status)+git.More)
		for _, l := range git.Commits {
			fmt.Fprintf(c.Stdout, "          %s\n", visible(l))
		}
	}
	if len(list) > 0 {
		fmt.Fprintf(c.Stdout, "skills    %d; 'memsync-agent skills list' shows them\n", len(list))
	}
	return nil
}

type skillsCmd struct {
	List skillsListCmd `cmd:"" help:"List the skills that apply here, with what each is for."`
	Show skillsShowCmd `cmd:"" help:"Print the text of one."`
}

type skillEntry struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Origin      string `json:"origin"`
	File        string `json:"file"`
	Hidden      bool   `json:"hidden"` // a person's to call
}

func skillEntries(list []skills.Skill) []skillEntry {
	out := []skillEntry{}
	for _, s := range list {
		out = append(out, skillEntry{Name: s.Name, Description: s.Listed(), Origin: string(s.Origin), File: s.File, Hidden: s.Hidden})
	}
	return out
}

func (c *command) skills() ([]skills.Skill, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	list, skipped, err := skills.List(c.ctx, skills.Options{Config: p.config, Top: p.top, Dir: p.dir})
	for _, err := range skipped {
		fmt.Fprintf(c.Stderr, "memsync-agent: passed over: %s\n", oneLine(err))
	}
	return list, err
}

type skillsListCmd struct {
	JSON bool `name:"json" help:"Print JSON; see docs/layers.md."`
}

// Run lists skills.
func (x *skillsListCmd) Run(c *command) error {
	list, err := c.skills()
	if err != nil {
		return err
	}
	if x.JSON {
		return printJSON(c.Stdout, skillEntries(list))
	}
	for _, s := range list {
		fmt.Fprintf(c.Stdout, "%-8s %s: %s\n", s.Origin, visible(s.Name), visible(s.Listed()))
	}
	return nil
}

type skillsShowCmd struct {
	Name string `arg:"" help:"The skill's name; a plugin's is plugin:name."`
}

// Run prints one skill.
func (x *skillsShowCmd) Run(c *command) error {
	list, err := c.skills()
	if err != nil {
		return err
	}
	_, text, err := skills.Text(list, x.Name)
	if err != nil {
		return err
	}
	_, err = c.Stdout.Write(text)
	return err
}

type transcriptsCmd struct {
	Search transcriptsSearchCmd `cmd:"" help:"Search past conversations; short excerpts come back, the newest first."`
}

type transcriptsSearchCmd struct {
	Words []string `arg:"" help:"Words that a message must all hold."`
	All   bool     `cmdline:"" help:"All projects of this person, not this one alone."`
	Dir   []string `cmdline:"" help:"Search these directories instead. May be repeated." placeholder:"DIR"`
	Limit int      `cmdline:"" help:"At most so many excerpts." default:"20"`
	JSON  bool     `name:"json" help:"Print JSON; see docs/layers.md."`
}

// hitEntry is an excerpt as --json prints it.
type hitEntry struct {
	Session string     `json:"session"`
	Time    *time.Time `json:"time"` // null where the line has none
	Role    string     `json:"role"` // user, assistant, tool or client
	Excerpt string     `json:"excerpt"`
	File    string     `json:"file"`
	Offset  int64      `json:"offset"`
}

// Run searches transcripts.
func (x *transcriptsSearchCmd) Run(c *command) error {
	if x.Limit < 1 {
		return usage("--limit %d: want at least 1", x.Limit)
	}
	dirs, err := x.dirs(c)
	if err != nil {
		return err
	}
	q := transcript.Query{Text: strings.Join(x.Words, " "), Limit: x.Limit}
	if c.terminal() {
		q.Progress = func(done, total int64) {
			fmt.Fprintf(c.Stderr, "\r%3d %% of %d MB", 100*done/max(total, 1), total>>20)
		}
	}
	found, err := transcript.Search(c.ctx, dirs, q)
	if c.terminal() {
		fmt.Fprint(c.Stderr, "\r\033[K")
	}
	if err != nil {
		return err
	}
	for _, err := range found.Skipped {
		fmt.Fprintf(c.Stderr, "memsync-agent: passed over: %s\n", oneLine(err))
	}
	entries := []hitEntry{}
	for _, h := range found.Hits {
		e := hitEntry{Session: h.Session, Role: h.Role, Excerpt: h.Excerpt, File: h.File, Offset: h.Offset}
		if !h.Time.IsZero() {
			e.Time = &h.Time
		}
		entries = append(entries, e)
	}
	if x.JSON {
		return printJSON(c.Stdout, entries)
	}
	for _, h := range found.Hits {
		when := "-"
		if !h.Time.IsZero() {
			when = h.Time.Local().Format("2006-01-02 15:04")
		}
		session := h.Session
		if session == "" {
			session = strings.TrimSuffix(filepath.Base(h.File), ".jsonl")
		}
		fmt.Fprintf(c.Stdout, "%s  %.8s  %-9s  %s\n", when, visible(session), h.Role, visible(h.Excerpt))
	}
	switch {
	case found.Cut:
		fmt.Fprintln(c.Stderr, "memsync-agent: there may be more; narrow the search, or raise --limit")
	case len(found.Hits) == 0:
		fmt.Fprintf(c.Stderr, "memsync-agent: nothing in %d transcripts\n", found.Files)
	}
	return nil
}

// dirs returns where to search. A client names the directory of transcripts after the
// directory it was started in (ruling 13.23), which need not be the project's root.
func (x *transcriptsSearchCmd) dirs(c *command) ([]string, error) {
	var dirs []string
	for _, d := range x.Dir {
		dir, err := absDir(d)
		if err != nil {
			return nil, err
		}
		if !isDir(dir) {
			return nil, usage("--dir %s: no such directory", dir)
		}
		dirs = append(dirs, dir)
	}
	if len(dirs) > 0 {
		return dirs, nil
	}
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	if p.config == "" {
		return nil, usage("no home directory is known; give --dir")
	}
	projects := filepath.Join(p.config, "projects")
	if x.All {
		return []string{projects}, nil
	}
	for _, d := range []string{p.dir, realDir(p.dir), p.top} {
		if d == "" {
			continue
		}
		if dir := filepath.Join(projects, memdir.Key(d)); len(dirs) == 0 || dirs[len(dirs)-1] != dir {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}
