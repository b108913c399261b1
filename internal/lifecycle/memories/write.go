package memories

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/memsvc/memsvc/internal/memory"
)

// Draft is a memory to be.
type Draft struct {
	Type        memory.Type
	Name        string
	Description string // one line, used to find it again
	Body        string
	Scope       memory.Scope // "" = private; the type's own default is advice for agents
}

// Compose returns the file of a draft and the name it gets, or says what it lacks.
func (d Draft) Compose() (memory.Path, []byte, error) {
	name, err := memory.FileName(d.Type, d.Name)
	if err != nil {
		return "", nil, err
	}
	path, err := memory.ParsePath(name)
	if err != nil {
		return "", nil, err
	}
	for field, text := range map[string]string{"name": d.Name, "description": d.Description} {
		if !utf8.ValidString(text) || strings.ContainsAny(text, "\r\n\x00") {
			return "", nil, fmt.Errorf("%s of a new memory: not one line of UTF-8 text", field)
		}
	}
	if strings.TrimSpace(d.Description) == "" {
		return "", nil, errors.New("description of a new memory: it is empty; say in one line what it is found again by")
	}
	if strings.TrimSpace(d.Body) == "" {
		return "", nil, errors.New("body of a new memory: it is empty; say what is to be remembered")
	}
	var b bytes.Buffer
	b.WriteString("---\n")
	for _, f := range []struct{ key, value string }{{"name", strings.TrimSpace(d.Name)}, {"description", strings.TrimSpace(d.Description)}, {"type", string(d.Type)}} {
		line, err := yaml.Marshal(map[string]string{f.key: f.value})
		if err != nil {
			return "", nil, fmt.Errorf("%s of a new memory: %w", f.key, err)
		}
		if bytes.Count(line, []byte("\n")) > 1 {
			line = fmt.Appendf(nil, "%s: %q\n", f.key, f.value) // folded; one line reads the same to everyone
		}
		b.Write(line)
	}
	b.WriteString("---\n\n")
	b.WriteString(strings.TrimRight(strings.ReplaceAll(d.Body, "\r\n", "\n"), "\n"))
	b.WriteByte('\n')
	return path, b.Bytes(), nil
}

// Written is what became of a write.
type Written struct {
	Ref
	Content []byte // what the file holds now
	// Told is what the writer should hear: a cap that is passed, a warning of the guard.
	Told []memory.Violation
}

// Add writes a new memory and its line in the index. A memory that has the name already
// is fs.ErrExist; what the guard refuses a *RefusedError. Nothing is written then.
func (s *Store) Add(ctx context.Context, d Draft) (Written, error) {
	path, content, err := d.Compose()
	if err != nil {
		return Written{}, err
	}
	r := Ref{Scope: d.Scope, Path: path}
	if r.Scope == "" {
		r.Scope = memory.ScopePrivate
	}
	w, err := s.put(ctx, r, content, memory.IfAbsent(), time.Time{})
	if errors.Is(err, fs.ErrExist) {
		return Written{}, fmt.Errorf("%s is there already; change it with edit, or choose another name: %w", r, fs.ErrExist)
	}
	return w, err
}

// Replace gives a memory that still is old another text, and its index line the new
// name and description. A text that changed meanwhile is memdir.ErrChanged. Where the new
// text says of its own time what the old one said, that becomes the present: what was
// written just now must not pass for as old as what it takes the place of.
func (s *Store) Replace(ctx context.Context, r Ref, content []byte, old memory.ETag) (Written, error) {
	m, err := s.Get(ctx, r)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Written{}, err
	}
	if err == nil && memory.ETagOf(m.Content) == old && !bytes.Equal(m.Content, content) {
		if fm, _, err := memory.ParseFrontmatter(content); err == nil && fm.Modified.Equal(m.Front.Modified) {
			content, _ = memory.WithModified(content, s.now())
		}
	}
	return s.put(ctx, r, content, memory.IfMatch(old), time.Time{})
}

// put writes a memory; at is the time that its file gets, zero = the present.
func (s *Store) put(ctx context.Context, r Ref, content []byte, want memory.Precondition, at time.Time) (Written, error) {
	warnings, err := s.judge(ctx, r, content)
	if err != nil {
		return Written{}, err
	}
	d, err := s.create(r.Scope)
	if err != nil {
		return Written{}, err
	}
	defer func() { _ = d.Close() }() // every write was synced by itself
	fm, _, _ := memory.ParseFrontmatter(content)
	told, err := d.Put(ctx, r.Path, content, want, memory.EntryFor(r.Path, fm), at)
	if err != nil {
		return Written{}, err
	}
	return Written{Ref: r, Content: content, Told: append(warnings, told...)}, nil
}

// judge refuses what may not be written: for the team what the guard says, and for both
// what no reader could make sense of.
func (s *Store) judge(ctx context.Context, r Ref, content []byte) (warnings []memory.Violation, err error) {
	if r.Scope != memory.ScopeTeam {
		if !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0 {
			return nil, fmt.Errorf("%s: not UTF-8 text", r)
		}
		return nil, nil
	}
	violations, warnings, err := s.guard.Check(ctx, r.Path, content)
	if err != nil {
		return nil, fmt.Errorf("%s: the guard has no verdict, so it is not shared: %w", r, err)
	}
	if len(violations) > 0 {
		return nil, &RefusedError{Ref: r, Violations: violations}
	}
	return warnings, nil
}

// Remove deletes a memory that still is old, its index line first. old "" asks nothing.
func (s *Store) Remove(ctx context.Context, r Ref, old memory.ETag) error {
	d, err := s.open(r.Scope)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // every write was synced by itself
	want := memory.Precondition{}
	if old != "" {
		want = memory.IfMatch(old)
	}
	return d.Remove(ctx, r.Path, want)
}

// MayShare says what Share would refuse of a text, before anybody is asked about it: what
// the guard refuses is a *RefusedError, another text under that name fs.ErrExist.
func (s *Store) MayShare(ctx context.Context, r Ref, content []byte) error {
	if r.Scope != memory.ScopePrivate {
		return fmt.Errorf("%s is the team's already", r)
	}
	to := Ref{Scope: memory.ScopeTeam, Path: r.Path}
	if _, err := s.judge(ctx, to, content); err != nil {
		return err
	}
	there, err := s.Get(ctx, to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !bytes.Equal(there.Content, content):
		return fmt.Errorf("%s is there already with another text; merge the two, or rename this one: %w", to, fs.ErrExist)
	}
	return nil // an earlier try got so far
}

// Share moves a personal memory that still is old to the team, under the same name: it
// is there first, and gone here only then. A kill in between leaves both. It is as old there
// as it was here.
func (s *Store) Share(ctx context.Context, r Ref, old memory.ETag) (Written, error) {
	m, err := s.Get(ctx, r)
	if err != nil {
		return Written{}, err
	}
	if err := s.MayShare(ctx, r, m.Content); err != nil {
		return Written{}, err
	}
	to := Ref{Scope: memory.ScopeTeam, Path: r.Path}
	if memory.ETagOf(m.Content) != old {
		return Written{}, fmt.Errorf("%s changed since it was shown; look at it again", r)
	}
	w, err := s.put(ctx, to, m.Content, memory.IfAbsent(), m.ModTime)
	if errors.Is(err, fs.ErrExist) {
		// MayShare saw the same text there, or somebody wrote just now.
		if err := s.MayShare(ctx, r, m.Content); err != nil {
			return Written{}, err
		}
		w, err = Written{Ref: to, Content: m.Content}, nil
	}
	if err != nil {
		return Written{}, err
	}
	return w, s.Remove(ctx, r, old)
}

// Vet refuses, with a *RefusedError, what no program may write by itself: what the guard
// would not let into the team's directory, wherever it is to be written, so that no
// secret becomes a memory. That a personal memory is about a person is no reason. A
// guard without a verdict is an error, too.
func (s *Store) Vet(ctx context.Context, r Ref, content []byte) error {
	violations, _, err := s.guard.Check(ctx, r.Path, content)
	if err != nil {
		return fmt.Errorf("%s: the guard has no verdict, so it is not written: %w", r, err)
	}
	if r.Scope != memory.ScopeTeam {
		violations = slices.DeleteFunc(slices.Clone(violations), func(v memory.Violation) bool { return v.Rule == memory.RuleTypeUser })
	}
	if len(violations) > 0 {
		return &RefusedError{Ref: r, Violations: violations}
	}
	return nil
}
