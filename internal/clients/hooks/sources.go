package hooks

import (
	"context"
	"strings"

	"github.com/memsvc/memsvc/internal/lifecycle/inject"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/lifecycle/recall"
	"github.com/memsvc/memsvc/internal/lifecycle/verify"
)

// Sources reads chosen memories as a conversation gets them: whole, with who shared them
// and what they cite that is no longer in the repository of cwd, where the client works.
// What is gone meanwhile is left out.
func Sources(ctx context.Context, store *memories.Store, chosen []recall.Memory, cwd string) []inject.Source {
	var sources []inject.Source
	var whole []memories.Memory
	repo := verify.Near(cwd)
	defer func() { _ = repo.Close() }() // only read
	for _, m := range chosen {
		r, err := memories.ParseRef(m.Ref)
		if err != nil {
			continue // a name that cannot be a memory's; lint says so
		}
		full, err := store.Get(ctx, r)
		if err != nil {
			continue
		}
		whole = append(whole, full)
		sources = append(sources, inject.Source{Ref: m.Ref, File: m.File, Scope: m.Scope, Type: m.Type, Time: m.Time, Content: full.Content, Missing: repo.Gone(full.Content)})
	}
	authors := store.AuthorsOf(whole...)
	for i := range sources {
		sources[i].Author = authors[whole[i].Ref]
	}
	return sources
}

// maxPrompt bounds what of a prompt is looked at, in bytes from either end: people paste
// whole logs.
const maxPrompt = 16 << 10

// Ends returns what of a prompt is looked at.
func Ends(prompt string) string {
	if len(prompt) <= 2*maxPrompt {
		return prompt
	}
	return strings.ToValidUTF8(prompt[:maxPrompt]+"\n"+prompt[len(prompt)-maxPrompt:], "")
}
