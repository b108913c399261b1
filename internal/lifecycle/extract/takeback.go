package extract

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/lexical"
	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

// byRules writes what was said in so many words, and removes what the rules had written
// of words that are taken back now.
func (e *Extractor) byRules(ctx context.Context, c Conversation, turns Turns, dry bool, r *Report) error {
	if err := e.write(ctx, Explicit(turns.Said), dry, r); err != nil {
		return err
	}
	if !slices.ContainsFunc(turns.Said, func(s Said) bool { return s.Person && mayTakeBack(s.Text) }) {
		return nil
	}
	withdrawn, err := e.withdrawn(ctx, c, turns)
	if err != nil {
		return err
	}
	for _, w := range withdrawn {
		if err := e.unwrite(ctx, w, dry, r); err != nil {
			return err
		}
	}
	return nil
}

// mayTakeBack reports whether a message might take something back; it is cheap.
func mayTakeBack(text string) bool {
	return slices.ContainsFunc(sentences(text), func(s string) bool { _, back, _ := takenBack(s); return back })
}

// withdrawn returns what the turns take back, also of the messages before them, which an
// earlier run has read.
func (e *Extractor) withdrawn(ctx context.Context, c Conversation, turns Turns) ([]Candidate, error) {
	all, err := ReadTurns(ctx, c.Transcript, "", e.Store.Dir(memory.ScopePrivate), e.Store.Dir(memory.ScopeTeam))
	if err != nil {
		return nil, err
	}
	from := slices.IndexFunc(all.Said, func(s Said) bool { return s.UUID == turns.Said[0].UUID })
	for messages := 0; from > 0 && messages < maxReach; {
		if from--; all.Said[from].Person {
			messages++
		}
	}
	_, withdrawn := heard(all.Said[max(from, 0):])
	return withdrawn, nil
}

// unwrite removes the memory that the rules wrote of a statement: one that nobody changed
// since, and that was said this very day. Anything else is not this statement's.
func (e *Extractor) unwrite(ctx context.Context, c Candidate, dry bool, r *Report) error {
	path, content, err := memories.Draft{Type: c.Type, Name: c.Name, Description: c.Description, Body: c.Body}.Compose()
	if err != nil {
		return nil // was never written
	}
	ref := memories.Ref{Scope: memory.ScopePrivate, Path: path}
	m, err := e.Store.Get(ctx, ref)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(m.Content, content) {
		return nil
	}
	if err != nil {
		return err
	}
	return e.remove(ctx, m, dry, r)
}

func (e *Extractor) remove(ctx context.Context, m memories.Memory, dry bool, r *Report) error {
	if !dry {
		err := e.Store.Remove(ctx, m.Ref, memory.ETagOf(m.Content))
		if errors.Is(err, memdir.ErrChanged) || errors.Is(err, fs.ErrNotExist) {
			return nil // somebody has a hand on it
		}
		if err != nil {
			return err
		}
	}
	r.Removed = append(r.Removed, m.Ref)
	return nil
}

// alike is the share of words that a statement has in common with the one it revises.
const alike = 0.6

// revised returns the memories, written by the rules and left as they were, that say
// nearly what c says, which the person announced as a change.
func revised(list []memories.Memory, c Candidate) []memories.Memory {
	var out []memories.Memory
	if !c.revises {
		return nil
	}
	words := terms(memories.Words(c.Body))
	for _, m := range list {
		typ, _ := m.Type()
		body := strings.TrimSpace(string(m.Body()))
		what, day, ok := strings.Cut(body, memories.SaidOn)
		if m.Scope != memory.ScopePrivate || typ != c.Type || !ok || len(day) != len("2006-01-02.") || m.Front.Description != short(what, descriptionChars) {
			continue
		}
		theirs := terms(memories.Words(body))
		if float64(common(words, theirs)) >= alike*float64(max(len(words), len(theirs))) && memories.Words(body) != memories.Words(c.Body) {
			out = append(out, m)
		}
	}
	return out
}

func terms(text string) map[string]bool {
	out := map[string]bool{}
	for t := range lexical.Tokens(text) {
		out[t.Term] = true
	}
	return out
}

// common counts the terms that two texts have in common.
func common(a, b map[string]bool) int {
	n := 0
	for t := range a {
		if b[t] {
			n++
		}
	}
	return n
}
