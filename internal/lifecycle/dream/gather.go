package dream

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/memsvc/memsvc/internal/lifecycle/extract"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/notes"
	"github.com/memsvc/memsvc/internal/memory"
)

// What a model is shown of the sessions, narrowly: characters of a section, of what a
// person said, and of all together.
const (
	maxSessions = 8
	maxSection  = 1_500
	maxSaid     = 300
	maxSaids    = 6 // of one session
	maxGathered = 20_000
)

// notesBytes bounds what is read of notes; ours are shorter.
const notesBytes = 256 << 10

// gather tells what the latest sessions were about: of their notes the sections that
// matter beyond them (ruling 13.19), without notes what the person said last.
func (d *Dreamer) gather(ctx context.Context, touched []session) string {
	var b strings.Builder
	for i, s := range touched[:min(maxSessions, len(touched))] {
		var part string
		if text, ok := readNotes(notes.Path(s.file)); ok {
			doc := notes.Parse(text)
			for _, title := range []string{"Files and Functions", "Errors & Corrections", "Learnings"} {
				if body := strings.TrimSpace(doc.Body(title)); body != "" {
					part += title + ":\n  " + model.Indented(short(d.Secrets.Masked(body), maxSection)) + "\n"
				}
			}
		} else {
			part = d.saidLast(ctx, s.file)
		}
		if part == "" {
			continue
		}
		fmt.Fprintf(&b, "Session %d, %s:\n%s\n", i+1, s.time.UTC().Format("2006-01-02"), part)
	}
	return short(b.String(), maxGathered)
}

func readNotes(file string) (string, bool) {
	if fi, err := os.Stat(file); err != nil || !fi.Mode().IsRegular() {
		return "", false
	}
	f, err := os.Open(file)
	if err != nil {
		return "", false
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, notesBytes))
	return string(text), err == nil
}

// saidLast is what the person typed last in a conversation; one that cannot be read says
// nothing.
func (d *Dreamer) saidLast(ctx context.Context, file string) string {
	turns, err := extract.ReadTurns(ctx, file, "", d.Store.Dir(memory.ScopePrivate), d.Store.Dir(memory.ScopeTeam))
	if err != nil {
		return ""
	}
	var said []string
	for _, s := range turns.Said {
		if s.Person {
			said = append(said, "The person said: "+d.Secrets.Line(s.Text, maxSaid)+"\n")
		}
	}
	return strings.Join(said[max(len(said)-maxSaids, 0):], "")
}

func short(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
