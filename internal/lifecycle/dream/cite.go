package dream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/lifecycle/verify"
	"github.com/memsvc/memsvc/internal/memory"
)

// mark is what is put at the end of a line that cites what is no longer there. It holds
// no code quotes, so that it cites nothing itself.
const mark = "no longer there"

var marked = regexp.MustCompile(` ?\(` + mark + `: ([^()\n]+)\)`)

// citations marks what personal memories cite and the repository no longer has, each
// once, and takes the mark from a path that is there again. The team's are left alone:
// what is checked out here is not what is checked out elsewhere.
func (d *Dreamer) citations(ctx context.Context, t *tree) error {
	if d.Project == "" {
		return nil
	}
	repo, err := verify.Open(d.Project)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("dream: the project: %w", err)
	}
	defer func() { _ = repo.Close() }() // only read
	root, err := os.OpenRoot(d.Project)
	if err != nil {
		return fmt.Errorf("dream: the project: %w", err)
	}
	defer func() { _ = root.Close() }() // only read
	for _, it := range t.scope(memory.ScopePrivate) {
		if it.frozen {
			continue
		}
		back := func(name string) bool {
			_, err := root.Stat(filepath.FromSlash(name))
			return err == nil && strings.Contains(name, "/")
		}
		t.set(it, it.withBody(unmark(string(it.Body()), back)), reasonCitations)
		gone, err := repo.Missing(ctx, it.Content)
		if err != nil {
			return fmt.Errorf("dream: %w", err)
		}
		if len(gone) > 0 {
			t.set(it, markCited(it, gone), reasonCitations)
		}
	}
	return nil
}

// unmark takes out of marks what is there again.
func unmark(body string, back func(string) bool) string {
	return marked.ReplaceAllStringFunc(body, func(m string) string {
		list := strings.Split(marked.FindStringSubmatch(m)[1], ", ")
		kept := slices.DeleteFunc(slices.Clone(list), back)
		switch len(kept) {
		case len(list):
			return m
		case 0:
			return ""
		}
		return " (" + mark + ": " + strings.Join(kept, ", ") + ")"
	})
}

// markCited returns the text with marks at the lines that cite what is gone.
func markCited(it *item, gone []verify.Citation) []byte {
	lines := strings.SplitAfter(string(it.Content), "\n")
	first := strings.Count(string(it.head()), "\n") // what the head cites is not marked
	known := map[string]bool{}
	for _, m := range marked.FindAllStringSubmatch(string(it.Content), -1) {
		for _, name := range strings.Split(m[1], ", ") {
			known[name] = true
		}
	}
	add := map[int][]string{}
	for _, c := range gone {
		if at := c.Line - 1; at >= first && at < len(lines) && !known[c.Text] && !strings.ContainsAny(c.Text, "()\n") && !strings.Contains(c.Text, ", ") {
			add[at] = append(add[at], c.Text)
		}
	}
	for at, names := range add {
		line := strings.TrimRight(lines[at], "\r\n")
		end := lines[at][len(line):]
		text := strings.TrimRight(line, " \t")
		m := " (" + mark + ": " + strings.Join(names, ", ") + ")"
		if strings.HasSuffix(text, "|") {
			lines[at] = strings.TrimSuffix(text, "|") + strings.TrimPrefix(m, " ") + " |" + end
			continue
		}
		lines[at] = text + m + line[len(text):] + end
	}
	return []byte(strings.Join(lines, ""))
}
