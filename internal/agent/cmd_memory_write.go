package agent

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/mattn/go-isatty"

	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

type memoryAddCmd struct {
	placeFlags
	Type        string `cmdline:"" required:"" help:"${types}" placeholder:"TYPE"`
	Name        string `cmdline:"" required:"" help:"What it is about, in a few words; the file is named after it." placeholder:"NAME"`
	Description string `cmdline:"" required:"" help:"One line by which it is found again." placeholder:"TEXT"`
	Team        bool   `cmdline:"" help:"Share it with the team, if the guard lets it pass."`
	File        string `cmdline:"" help:"Where the text comes from; - is standard input." placeholder:"FILE" default:"-"`
}

// Run writes a new memory.
func (x *memoryAddCmd) Run(c *command) error {
	typ, ok := memory.ParseType(x.Type)
	if !ok {
		return usage("--type %.40q: use one of %s", x.Type, memory.TypeNames())
	}
	if typ == memory.TypeUser && x.Team {
		return usage("--team: a memory of type user is about a person and never shared")
	}
	p, err := c.place(x.placeFlags)
	if err != nil {
		return err
	}
	body, err := c.text(x.File)
	if err != nil {
		return err
	}
	d := memories.Draft{Type: typ, Name: x.Name, Description: x.Description, Body: string(body), Scope: memory.ScopePrivate}
	if x.Team {
		d.Scope = memory.ScopeTeam
	}
	s := c.store(p)
	w, err := s.Add(c.ctx, d)
	if err == nil {
		c.tellUnshared(p, w.Ref.Scope)
	}
	return c.written(s, w, err)
}

// tellUnshared warns who writes for the team where nobody shares that.
func (c *command) tellUnshared(p place, scope memory.Scope) {
	if scope == memory.ScopeTeam && p.link == nil {
		fmt.Fprintf(c.Stderr, "memsync-agent: warning: %s is not shared with anybody yet; %s\n", visible(p.team), visible(howToShare(p.team)))
	}
}

// written says where a memory lies now and what its writer should know. A refusal waits
// for a person.
func (c *command) written(s *memories.Store, w memories.Written, err error) error {
	var refused *memories.RefusedError
	if errors.As(err, &refused) {
		fmt.Fprintf(c.Stderr, "memsync-agent: %s\n", oneLine(refused))
		return exitCode(ExitPerson)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(c.Stdout, s.File(w.Ref))
	for _, v := range w.Told {
		fmt.Fprintf(c.Stderr, "memsync-agent: warning: %s (%s)\n", v.Message, v.Rule)
	}
	return nil
}

// text reads a memory's text from a file, or from standard input when that is no
// terminal at which nobody knows what to type.
func (c *command) text(file string) ([]byte, error) {
	in := c.Stdin
	if file != "-" && file != "" {
		f, err := os.Open(expandHome(file))
		if err != nil {
			return nil, fmt.Errorf("--file: %w", err)
		}
		defer func() { _ = f.Close() }() // only read
		in = f
	} else if f, ok := c.Stdin.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		fmt.Fprintln(c.Stderr, "Type the text; end it with Ctrl-D.")
	}
	text, size, err := readBounded(in)
	if err != nil {
		return nil, fmt.Errorf("--file %s: %w", file, err)
	}
	if size > memory.MaxMemoryBytes {
		return nil, fmt.Errorf("--file %s: %s", file, memory.TooLarge(size))
	}
	return text, nil
}

type memoryEditCmd struct {
	placeFlags
	Memory string `arg:"" help:"File, name, or team/FILE."`
	Bare   bool   `cmdline:"" help:"Take a text without frontmatter; the memory is then found by its words alone."`
	File   string `cmdline:"" help:"The whole new text, frontmatter too; - is standard input. Without it $VISUAL or $EDITOR opens." placeholder:"FILE"`
}

// Run changes a memory, if nobody else changed it meanwhile.
func (x *memoryEditCmd) Run(c *command) error {
	s, m, err := c.find(x.placeFlags, x.Memory)
	if err != nil {
		return err
	}
	var text []byte
	if x.File != "" {
		text, err = c.text(x.File)
	} else {
		text, err = c.editor(m.Path.Base(), m.Content)
	}
	if err != nil {
		return err
	}
	if bytes.Equal(text, m.Content) {
		fmt.Fprintln(c.Stderr, "memsync-agent: nothing changed")
		return nil
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return usage("the new text is empty; delete the memory with 'memory rm' instead")
	}
	if fm, _, err := memory.ParseFrontmatter(text); m.Front.Present && (err != nil || !fm.Present) && !x.Bare {
		return usage("the new text has no frontmatter that can be read, so name, description and type would be lost; give the whole text, or --bare")
	}
	w, err := s.Replace(c.ctx, m.Ref, text, memory.ETagOf(m.Content))
	return c.written(s, w, err)
}

// editor lets the person change a copy of the text, and returns what became of it.
func (c *command) editor(name string, text []byte) (_ []byte, err error) {
	editor := os.Getenv("VISUAL")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	if editor == "" {
		return nil, usage("neither --file nor $VISUAL or $EDITOR says how to edit")
	}
	dir, err := os.MkdirTemp("", "memory-*") // 0700: the text may be personal
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	// The variable may hold arguments, which a shell splits for everyone else too.
	cmd := exec.CommandContext(c.ctx, "sh", "-c", editor+` "$1"`, "sh", file)
	if runtime.GOOS == "windows" {
		cmd = exec.CommandContext(c.ctx, editor, file)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.stdout, c.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("the editor %s: %w", editor, err)
	}
	return os.ReadFile(file)
}

type memoryRmCmd struct {
	placeFlags
	Memory string `arg:"" help:"File, name, or team/FILE."`
}

// Run deletes a memory. What was shared stays in the hub's history.
func (x *memoryRmCmd) Run(c *command) error {
	s, m, err := c.find(x.placeFlags, x.Memory)
	if err != nil {
		return err
	}
	if err := s.Remove(c.ctx, m.Ref, memory.ETagOf(m.Content)); err != nil {
		return err
	}
	fmt.Fprintln(c.Stdout, s.File(m.Ref))
	return nil
}

type memoryShareCmd struct {
	placeFlags
	Memory string `arg:"" help:"File or name of a personal memory."`
	Yes    bool   `cmdline:"" help:"Do not ask; for scripts that showed it themselves."`
}

// Run moves a memory to the team after a person has seen it.
func (x *memoryShareCmd) Run(c *command) error {
	p, err := c.place(x.placeFlags)
	if err != nil {
		return err
	}
	s, m, err := c.findIn(p, x.Memory)
	if err != nil {
		return err
	}
	if m.Scope == memory.ScopeTeam {
		return usage("%s is the team's already", m.Ref)
	}
	if err := s.MayShare(c.ctx, m.Ref, m.Content); err != nil {
		return c.written(s, memories.Written{}, err) // nobody is asked about what cannot be
	}
	c.tellUnshared(p, memory.ScopeTeam)
	if !x.Yes {
		fmt.Fprintf(c.Stdout, "%s:\n\n%s\n", s.File(m.Ref), closed(string(m.Content)))
		ok, err := c.confirm("Everyone in the team will read this, and its history stays on the hub. Share it?")
		if err != nil {
			return err
		}
		if !ok {
			fmt.Fprintln(c.Stderr, "memsync-agent: not shared")
			return exitCode(ExitPerson)
		}
	}
	w, err := s.Share(c.ctx, m.Ref, memory.ETagOf(m.Content))
	return c.written(s, w, err)
}

// confirm asks a yes-or-no question; anything but yes, and no answer at all, is no.
func (c *command) confirm(question string) (bool, error) {
	fmt.Fprintf(c.Stderr, "%s [y/N] ", question)
	answer, err := bufio.NewReader(c.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}

// typeHelp says what each type holds, from its one definition.
func typeHelp() string {
	var b strings.Builder
	for i, t := range memory.AllTypes() {
		if i > 0 {
			b.WriteString(" ")
		}
		fmt.Fprintf(&b, "%s: %s", t, t.Definition().Holds)
	}
	return b.String()
}
