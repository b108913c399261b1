package hooks

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memsvc/memsvc/internal/lifecycle/inject"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/lifecycle/recall"
	"github.com/memsvc/memsvc/internal/lifecycle/transcript"
	"github.com/memsvc/memsvc/internal/lifecycle/verify"
)

// maxChanges bounds how many of the team's changes a prompt hears of (ruling 13.21).
const maxChanges = 5

// prompt finds the memories that a prompt needs, and tells what the team changed since
// the last one.
func (h *handler) prompt(ctx context.Context) (Answer, error) {
	p, err := h.engine.Project(ctx, h.in.CWD, "")
	if err != nil {
		return Answer{}, err
	}
	window, since, err := h.conversation()
	if err != nil {
		return Answer{}, err
	}
	news := h.news(ctx, p, since)
	if inject.Gate(h.in.Prompt, window.Injected) != "" {
		return Answer{Context: news}, nil
	}
	scanned, err := recall.Scan(ctx, p.Personal, p.Team)
	if err != nil {
		return Answer{}, err
	}
	choice, err := p.Selector.Select(ctx, scanned, recall.Request{
		Prompt: ends(h.in.Prompt), Tools: window.Tools, Surfaced: window.Surfaced, Limit: inject.MaxTurnMemories, Now: h.now,
	})
	if err != nil {
		return Answer{}, err
	}
	var sources []inject.Source
	repo := h.repository()
	if repo != nil {
		defer func() { _ = repo.Close() }() // only read
	}
	for _, m := range choice.Chosen {
		r, err := memories.ParseRef(m.Ref)
		if err != nil {
			continue // a name that cannot be a memory's; lint says so
		}
		full, err := p.Store.Get(ctx, r)
		if err != nil {
			continue // gone meanwhile
		}
		sources = append(sources, inject.Source{Ref: m.Ref, File: m.File, Scope: m.Scope, Type: m.Type, Time: m.Time, Content: full.Content, Missing: missing(repo, full.Content)})
	}
	turn := inject.Compose(sources, window.Injected, inject.MaxContextChars-utf8.RuneCountInString(news)-1, h.now)
	return Answer{Context: join(news, turn.Text)}, nil
}

// repository opens the working tree that the client works in; nil without one.
func (h *handler) repository() *verify.Repository {
	if !filepath.IsAbs(h.in.CWD) {
		return nil
	}
	r, err := verify.Open(h.in.CWD)
	if err != nil {
		return nil // a memory is worth more than the check of it
	}
	return r
}

// maxMissing bounds what is said of one memory.
const maxMissing = 5

// missing returns what a memory cites that is plainly gone.
func missing(r *verify.Repository, content []byte) []string {
	if r == nil {
		return nil
	}
	var out []string
	for _, c := range r.Quick(content) {
		if len(out) < maxMissing {
			out = append(out, c.Text)
		}
	}
	return out
}

// conversation reads what the conversation has had, and when its last prompt was. One
// without a transcript has had nothing: clients write it late.
func (h *handler) conversation() (w transcript.Window, since time.Time, err error) {
	if h.in.TranscriptPath == "" {
		return w, since, nil
	}
	f, size, err := transcript.Open(h.in.TranscriptPath)
	if err != nil {
		return w, since, nil
	}
	defer func() { _ = f.Close() }() // only read
	w, err = transcript.ReadWindow(f, size)
	if err != nil {
		return w, since, err
	}
	return w, lastPrompt(f, size), nil
}

// maxPrompt bounds what of a prompt is looked at, in bytes from either end: people paste
// whole logs.
const maxPrompt = 16 << 10

func ends(prompt string) string {
	if len(prompt) <= 2*maxPrompt {
		return prompt
	}
	return strings.ToValidUTF8(prompt[:maxPrompt]+"\n"+prompt[len(prompt)-maxPrompt:], "")
}

// maxLookBack bounds how far back the last prompt is looked for.
const maxLookBack = 400

// lastPrompt returns when a person last typed something; zero if that is not found.
func lastPrompt(r io.ReaderAt, size int64) time.Time {
	n := 0
	for l, err := range transcript.Backward(r, size) {
		if n++; err != nil || n > maxLookBack {
			break
		}
		line, ok := transcript.Parse(l.Text)
		if !ok || line.Kind != transcript.User || line.Meta || line.Sidechain || line.Time.IsZero() {
			continue
		}
		for _, b := range line.Blocks {
			if b.Kind == transcript.Text {
				return line.Time
			}
		}
	}
	return time.Time{}
}

// news is a line for each of the last things that others changed since a time.
func (h *handler) news(ctx context.Context, p Project, since time.Time) string {
	if p.Changes == nil || since.IsZero() {
		return ""
	}
	changes, err := p.Changes(ctx, since)
	if err != nil || len(changes) == 0 {
		return "" // the prompt is worth more than the news
	}
	left := max(len(changes)-maxChanges, 0)
	var b strings.Builder
	for _, c := range changes[left:] {
		did := "changed"
		if c.Deleted {
			did = "deleted"
		}
		fmt.Fprintf(&b, "- team/%s, %s by %s", c.Path, did, short(c.Author, 80))
		if c.Description != "" {
			fmt.Fprintf(&b, ": %q", short(c.Description, 160))
		}
		b.WriteByte('\n')
	}
	if left > 0 {
		fmt.Fprintf(&b, "- and %d before these\n", left)
	}
	return inject.Data("team memories that changed since the last prompt", b.String())
}

// join puts texts below one another.
func join(texts ...string) string {
	var some []string
	for _, t := range texts {
		if t != "" {
			some = append(some, strings.TrimRight(t, "\n"))
		}
	}
	return strings.Join(some, "\n\n")
}

// short cuts a text to n characters on one line.
func short(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
