package service

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/memsvc/memsvc/internal/memory"
)

// label is a short text beside the memories that is stored and shown: a message, an
// author's machine, a reason. field names it as the contract does.
type label struct{ field, text string }

// authorLabels are what a caller says of itself.
func authorLabels(a memory.Author) []label {
	return []label{{"author.machine", a.Machine}, {"author.client", a.Client}, {"author.session", a.Session}}
}

// judgeLabels asks the guard about labels as about a memory. Each is judged alone, so
// that no neighbour makes a secret of it; the same text again costs no second scan.
func (s *Service) judgeLabels(ctx context.Context, team memory.Team, labels ...label) error {
	var policy *Policy
	var broken []memory.Violation
	for _, l := range labels {
		if l.text == "" {
			continue
		}
		if strings.ContainsRune(l.text, 0) {
			return invalid("%s: holds a NUL character; take it out", l.field)
		}
		if policy == nil {
			policy = &Policy{} // the hub itself has no policy of its own
			if team != "" {
				p, err := s.policy(ctx, team)
				if err != nil {
					return err
				}
				policy = &p
			}
		}
		found, err := s.Guard.Scan(*policy, "", []byte(l.text))
		if err != nil {
			return fmt.Errorf("guard: %s was not judged: %w", l.field, err)
		}
		for _, f := range found {
			f.Path = l.field
			if team == "" {
				f.Fingerprint = "" // under no key it would be open to guessing
			}
			broken = append(broken, violationOf(f))
		}
	}
	if len(broken) == 0 {
		return nil
	}
	return &memory.Error{Reason: memory.ReasonSecretDetected, Message: "refused", Violations: broken}
}

func violationOf(f Finding) memory.Violation {
	return memory.Violation{
		Path: f.Path, Line: f.Line, Rule: f.Rule, Fingerprint: f.Fingerprint,
		Message: strings.TrimRight(f.Description, ". ") + "; take it out, or let an admin allow the fingerprint",
	}
}

// tellable returns how path may be named in answers and records: where the name
// itself holds a secret, the guard withholds it.
func (s *Service) tellable(p Policy, path string) string {
	found, err := s.Guard.Scan(p, path, nil)
	switch {
	case err != nil:
		return "(name withheld)"
	case len(found) > 0:
		return found[0].Path
	}
	return path
}

// withholdNames replaces the paths in err that must not be told, whatever the rule
// was that they broke.
func (s *Service) withholdNames(ctx context.Context, team memory.Team, err error) error {
	var e *memory.Error
	if !errors.As(err, &e) || len(e.Violations) == 0 {
		return err
	}
	p, perr := s.policy(ctx, team)
	if perr != nil {
		return perr
	}
	safe := *e
	safe.Violations = make([]memory.Violation, 0, len(e.Violations))
	for _, v := range e.Violations {
		v.Path = s.tellable(p, v.Path)
		safe.Violations = append(safe.Violations, v)
	}
	return &safe
}
