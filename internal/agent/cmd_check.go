package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/workspace"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/secretscan"
)

type checkCmd struct {
	selectFlags
	Files []string `arg:"" help:"Files to judge; - is standard input."`
	As    string   `help:"Judge as this path below team/; for one file." placeholder:"PATH"`
	JSON  bool     `name:"json" help:"Print JSON; see docs/cli.md."`
}

// checkEntry is the verdict on one file.
type checkEntry struct {
	File     string    `json:"file"`
	Path     string    `json:"path,omitempty"` // below team/
	Refused  bool      `json:"refused"`
	Findings []Finding `json:"findings"`
	Warnings []Finding `json:"warnings"`
}

// Run judges files as the guard would before they leave, under the last policy known.
func (x *checkCmd) Run(c *command) error {
	if x.As != "" && len(x.Files) != 1 {
		return usage("--as names one path; give one file")
	}
	g := guard{scanner: secretscan.New(secretscan.Options{}), policy: &policyHolder{}}
	var l Link
	if known, err := c.known(x.linkFlags); err == nil && len(known) > 0 || x.Link != "" {
		// The policy of the team that is meant; without a clear one the strict default.
		if l, err = c.choose(x.selectFlags); err != nil && x.Link != "" {
			return err
		} else if err == nil {
			if p, ok := c.state.loadPolicy(l.Hub, l.Team); ok {
				g.policy.set(p)
			}
		}
	}
	entries := []checkEntry{}
	refused, failed := false, error(nil)
	for _, file := range x.Files {
		e, err := x.check(c, g, l, file)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		refused = refused || e.Refused
		entries = append(entries, e)
	}
	if x.JSON {
		if err := printJSON(c.Stdout, entries); err != nil {
			return err
		}
	} else {
		for _, e := range entries {
			e.print(c.Stdout)
		}
	}
	if failed != nil && refused {
		// Both are told; that something is refused is what the exit code is for.
		fmt.Fprintf(c.Stderr, "memsync-agent: %s\n", oneLine(failed))
		failed = nil
	}
	if failed == nil && refused {
		return exitCode(ExitPerson)
	}
	return failed
}

func (x *checkCmd) check(c *command, g guard, l Link, file string) (checkEntry, error) {
	e := checkEntry{File: file, Findings: []Finding{}, Warnings: []Finding{}}
	content, unread, err := readToCheck(c.Stdin, file)
	if err != nil {
		return e, err
	}
	name := x.As
	if name == "" {
		name = nameBelow(l, file)
	}
	path, err := memory.ParsePath(memory.NormalizePath(name))
	var bad *memory.Error
	switch {
	case errors.As(err, &bad):
		for _, v := range bad.Violations {
			e.Findings = append(e.Findings, findingOf(v))
		}
		e.Refused = true
		path = "unnamed.md" // the content is judged all the same
	case err != nil:
		return e, err
	default:
		e.Path = string(path)
	}
	if unread != nil {
		unread.Path = e.Path
		e.Findings, e.Refused = append(e.Findings, findingOf(*unread)), true
		return e, nil
	}
	var v syncer.Verdict
	if v, err = g.Check(c.ctx, path, content); err != nil {
		return e, err
	}
	for _, f := range v.Violations {
		e.Findings = append(e.Findings, findingOf(f))
		e.Refused = true
	}
	for _, f := range v.Warnings {
		e.Warnings = append(e.Warnings, findingOf(f))
	}
	return e, nil
}

// nameBelow returns the path that a file has, or would have, below team/: what
// follows the link's directory, or the last team/ in its path, else its base name.
func nameBelow(l Link, file string) string {
	abs, err := absDir(file)
	if file == "-" || err != nil {
		return "stdin.md"
	}
	if l.Dir != "" && within(abs, l.Dir) {
		return filepath.ToSlash(strings.TrimPrefix(abs, l.Dir+string(filepath.Separator)))
	}
	slashed := filepath.ToSlash(abs)
	if i := strings.LastIndex(slashed, "/team/"); i >= 0 {
		return slashed[i+len("/team/"):]
	}
	return filepath.Base(abs)
}

// readToCheck reads what is to be judged. A file that the agent would not even read is
// a violation instead.
func readToCheck(stdin io.Reader, file string) (text []byte, v *memory.Violation, err error) {
	in := stdin
	if file != "-" {
		fi, err := os.Lstat(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil, fmt.Errorf("check %s: no such file", file)
		case err != nil:
			return nil, nil, fmt.Errorf("check: %w", err)
		case fi.Mode()&fs.ModeSymlink != 0:
			return nil, &memory.Violation{Path: file, Rule: workspace.RuleLink, Message: "it is a symbolic link, which is never shared; replace it by what it points to"}, nil
		case fi.IsDir():
			return nil, nil, fmt.Errorf("check %s: a directory, not a regular file; name the files", file)
		case !fi.Mode().IsRegular():
			return nil, nil, fmt.Errorf("check %s: not a regular file; name the files", file)
		}
		f, err := os.Open(file)
		if err != nil {
			return nil, nil, fmt.Errorf("check: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, size, err := readBounded(in)
	if err != nil {
		return nil, nil, fmt.Errorf("check %s: %w", file, err)
	}
	if size > memory.MaxMemoryBytes {
		v = &memory.Violation{Path: file, Rule: memory.RuleContentSize, Message: memory.TooLarge(size)}
	}
	return text, v, nil
}

// print writes file:line: rule: message, a finding a line, as compilers do; of a secret
// with the fingerprint by which a team can let it through.
func (e checkEntry) print(w io.Writer) {
	line := func(kind string, f Finding) {
		where := e.File
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d", e.File, f.Line)
		}
		fmt.Fprintf(w, "%s: %s%s: %s%s\n", where, kind, f.Rule, f.Message, f.allowedBy("; "))
	}
	for _, f := range e.Findings {
		line("", f)
	}
	for _, f := range e.Warnings {
		line("warning: ", f)
	}
	if !e.Refused {
		fmt.Fprintf(w, "%s: ok\n", e.File)
	}
}
