package hooks

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/memory"
)

// maxLongLines bounds how many lines of an index are named as too long.
const maxLongLines = 5

// overCap tells who just wrote an index past a cap what of it is not loaded, and which
// lines are too long (SPEC 2.4); "" = nothing is.
func (h *handler) overCap(ctx context.Context) (string, error) {
	var told []string
	for _, w := range writings(h.in.ToolInput, h.in.CWD) {
		if filepath.Base(w.file) != memory.IndexName {
			continue
		}
		ours, err := h.isIndex(ctx, w.file)
		if err != nil {
			return "", err
		}
		if !ours {
			continue
		}
		text, err := readFile(w.file)
		if err != nil {
			continue // it was not written after all
		}
		if what := indexTold(text); what != "" {
			told = append(told, middle(w.file, maxFileChars)+": "+what)
		}
	}
	return strings.Join(slices.Compact(told), "\n"), nil
}

// isIndex reports whether a file is the index of the project's personal directory, or of
// one that is shared.
func (h *handler) isIndex(ctx context.Context, file string) (bool, error) {
	p, err := h.engine.Project(ctx, h.in.CWD, file)
	if err != nil || p.Off {
		return false, err
	}
	if slices.Contains(below(p.Personal, waysTo(file)), memory.IndexName) {
		return true, nil
	}
	shared, _, err := h.shared(ctx, file)
	return slices.ContainsFunc(shared, func(s sharedFile) bool { return s.rel == memory.IndexName }), err
}

// indexTold is in a few words what the writer of an index should know.
func indexTold(text []byte) string {
	var told, long []string
	for _, v := range memory.IndexWarnings(memory.IndexName, text) {
		if v.Rule == memory.RuleIndexLineLong {
			long = append(long, fmt.Sprint(v.Line))
			continue
		}
		told = append(told, v.Message)
	}
	if n := len(long); n > 0 {
		more := ""
		if n > maxLongLines {
			more = fmt.Sprintf(", and %d more", n-maxLongLines)
		}
		told = append(told, fmt.Sprintf("over %d characters: line %s%s; the rest of such a line belongs into the memory",
			memory.MaxIndexLineChars, strings.Join(long[:min(n, maxLongLines)], ", "), more))
	}
	return strings.Join(told, "; ")
}
