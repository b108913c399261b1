package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/memsvc/memsvc/internal/memory"
)

// label is a short text beside the memories that is stored and shown: a message, an
// author's machine, a reason. field names it as the contract does.
type label struct{ field, text string }

// oneLine are the labels that stand in a line of a list, beside others: they hold no line
// end and no tab, which would make a row, or a column, that nobody wrote.
var oneLine = map[string]bool{"display_name": true, "reason": true, "author.machine": true, "author.client": true, "author.session": true}

// authorLabels are what a caller says of itself.
func authorLabels(a memory.Author) []label {
	return []label{{"author.machine", a.Machine}, {"author.client", a.Client}, {"author.session", a.Session}}
}

// unfit reports whether r has no place in a label: it would speak to a terminal, end a
// text early, or make people see another text than programs read.
func unfit(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == '\r':
		return false
	case unicode.IsControl(r):
		return true
	case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069: // bidi embeddings, overrides, isolates
		return true
	}
	return r >= 0xE0000 && r <= 0xE007F // tags
}

// unfitInLine is unfit for what stands in one line.
func unfitInLine(r rune) bool {
	return unfit(r) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
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
		bad := unfit
		if oneLine[l.field] {
			bad = unfitInLine
		}
		if i := strings.IndexFunc(l.text, bad); i >= 0 {
			return invalid("%s: byte %d begins a control character, or one that hides or reorders text; take it out", l.field, i)
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

// Withheld stands in the place of a text that must not be kept or told.
const Withheld = "(withheld)"

// HoldsSecret reports whether the guard, strict and without any team's allowances,
// finds a secret in text. What cannot be judged counts as one.
func (s *Service) HoldsSecret(text string) bool {
	if text == "" {
		return false
	}
	found, err := s.Guard.Scan(Policy{}, "", []byte(text))
	return err != nil || len(found) > 0
}

// discreet returns text, or Withheld in the place of one that holds a secret.
func (s *Service) discreet(text string) string {
	if s.HoldsSecret(text) {
		return Withheld
	}
	return text
}

// Discreet returns err as it may be told and logged: callers put secrets into names,
// ids and tokens of pages, and a refusal that repeats them would spread them.
func (s *Service) Discreet(err error) error {
	var e *memory.Error
	if !errors.As(err, &e) {
		if err != nil && s.HoldsSecret(err.Error()) {
			return indiscreet{err}
		}
		return err
	}
	switch e.Reason {
	case memory.ReasonRateLimited, memory.ReasonUnauthenticated:
		return err // their words are the hub's own
	}
	safe, changed := *e, false
	if s.HoldsSecret(e.Message) {
		safe.Message, changed = "refused; the request holds a secret where none belongs, so what was wrong with it is not repeated", true
	}
	safe.Violations = slices.Clone(e.Violations)
	for i := range safe.Violations {
		v := &safe.Violations[i]
		if s.HoldsSecret(v.Path) {
			v.Path, changed = Withheld, true
		}
		if s.HoldsSecret(v.Message) {
			v.Message, changed = Withheld, true
		}
	}
	if !changed {
		return err
	}
	return &safe
}

// indiscreet is an error whose text holds a secret; what it is can still be asked.
type indiscreet struct{ error }

func (indiscreet) Error() string   { return Withheld + ": the text of the error holds a secret" }
func (e indiscreet) Unwrap() error { return e.error }

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
