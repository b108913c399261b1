package memories

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/memory"
)

// The rules of lint that are not memory's own, as a Problem names them.
const (
	RuleUnread = "unreadable" // a file that cannot be read, or whose name no memory can have
	RuleNoName = "no-name"    // no name in the frontmatter
	RuleNoHook = "no-hook"    // no description: nothing to find it by
)

// Problem is what lint found at one place.
type Problem struct {
	Ref     string // of the memory or index; "" where the name cannot be one
	Line    int    // 0 = the file as a whole
	Rule    string
	Message string
	Error   bool // it keeps the memory from working, or from being shared
	Fixed   bool // Lint mended it
}

// Lint looks at every memory and both indexes. With fix it mends what can be mended
// without guessing: index lines that are missing, and those whose file is not there.
// Frontmatter is never rewritten.
func (s *Store) Lint(ctx context.Context, fix bool) ([]Problem, error) {
	list, skipped, err := s.ListAll(ctx)
	if err != nil {
		return nil, err
	}
	var out []Problem
	for _, err := range skipped {
		out = append(out, Problem{Rule: RuleUnread, Message: err.Error(), Error: true})
	}
	for _, m := range list {
		ps, err := s.lintOne(ctx, &m)
		if err != nil {
			return nil, err
		}
		out = append(out, ps...)
	}
	for _, scope := range s.scopes() {
		ps, err := s.lintIndex(ctx, scope, fix)
		if err != nil {
			return nil, err
		}
		out = append(out, ps...)
	}
	return out, nil
}

func (s *Store) lintOne(ctx context.Context, m *Memory) ([]Problem, error) {
	var out []Problem
	add := func(bad bool, vs ...memory.Violation) {
		for _, v := range vs {
			out = append(out, Problem{Ref: m.String(), Line: v.Line, Rule: v.Rule, Message: v.Message, Error: bad})
		}
	}
	var violations, warnings []memory.Violation
	if m.Scope == memory.ScopeTeam {
		var err error
		if violations, warnings, err = s.guard.Check(ctx, m.Path, m.Content); err != nil {
			return nil, fmt.Errorf("lint %s: %w", m.Ref, err)
		}
	} else {
		c := memory.CheckContent(m.Path, m.Content)
		violations, warnings = c.Violations, c.Warnings
	}
	for _, v := range violations {
		if m.Scope == memory.ScopeTeam || v.Rule != memory.RuleTypeUser { // a person's own are personal
			add(true, v)
		}
	}
	for _, v := range warnings {
		// What is no memory to any reader is an error, whoever may share it.
		add(v.Rule == memory.RuleTypeUnknown || m.Unreadable != nil && v.Line > 0, v)
	}
	if m.Redacted() {
		return out, nil // nobody here wrote it
	}
	if m.Unreadable == nil && m.Front.Name == "" {
		add(false, memory.Violation{Rule: RuleNoName, Message: "no name; say in a few words what it is about"})
	}
	if m.Unreadable == nil && m.Front.Description == "" {
		add(false, memory.Violation{Rule: RuleNoHook, Message: "no description; one line by which it is found again"})
	}
	return out, nil
}

func (s *Store) lintIndex(ctx context.Context, scope memory.Scope, fix bool) ([]Problem, error) {
	d, err := s.open(scope)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }() // every write was synced by itself
	report, err := check(ctx, d, fix)
	if err != nil {
		return nil, err
	}
	ref := Ref{Scope: scope, Path: memory.IndexName}.String()
	var out []Problem
	for _, e := range report.Ghosts {
		out = append(out, Problem{Ref: ref, Rule: memory.RuleIndexGhost, Error: true, Fixed: fix,
			Message: fmt.Sprintf("the line of %s leads to a file that is not there", e.Key())})
	}
	for _, p := range report.Missing {
		out = append(out, Problem{Ref: ref, Rule: memory.RuleIndexMissing, Error: true, Fixed: fix,
			Message: fmt.Sprintf("%s has no line", p)})
	}
	for _, v := range report.Warnings {
		out = append(out, Problem{Ref: ref, Line: v.Line, Rule: v.Rule, Message: v.Message})
	}
	return out, nil
}

func check(ctx context.Context, d *memdir.Dir, fix bool) (memdir.IndexReport, error) {
	report, err := d.CheckIndex(ctx)
	if err != nil || !fix || report.OK() {
		return report, err
	}
	return d.Mend(ctx)
}
