package extract

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wholefile"
)

const (
	cursorSuffix = ".cursor"
	// maxCursors is of how many conversations of a project cursors are kept: of those that
	// were read last. Clients forget a conversation after about a month by themselves; one
	// that is taken up again without its cursor counts from its beginning, as after a
	// compaction.
	maxCursors = 1000
)

// cursorFile is where the cursor of a conversation is kept.
func (e *Extractor) cursorFile(c Conversation) string {
	name := c.Session
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(c.Transcript), ".jsonl")
	}
	if len(name) > 100 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" || name == "" {
		name = string(memory.ETagOf([]byte(c.Transcript)))
	}
	return filepath.Join(e.Dir, name+cursorSuffix)
}

func (e *Extractor) cursor(c Conversation) (string, error) {
	text, err := os.ReadFile(e.cursorFile(c))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("extract: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// advance keeps the cursor. A kill before it is done repeats the extraction, which finds
// its own memories there.
func (e *Extractor) advance(c Conversation, uuid string) error {
	file := e.cursorFile(c)
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		wholefile.Sweep(e.Dir)
		e.prune()
	}
	if err := wholefile.Replace(file, []byte(uuid+"\n"), 0o600); err != nil {
		return fmt.Errorf("extract: keep the cursor: %w", err)
	}
	return nil
}

// prune makes room for the cursor of one more conversation. What it cannot remove stays.
func (e *Extractor) prune() {
	entries, err := os.ReadDir(e.Dir)
	if err != nil || len(entries) < maxCursors {
		return
	}
	type old struct {
		name string
		last time.Time
	}
	var all []old
	for _, entry := range entries {
		if fi, err := entry.Info(); err == nil && fi.Mode().IsRegular() && strings.HasSuffix(entry.Name(), cursorSuffix) {
			all = append(all, old{entry.Name(), fi.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b old) int { return cmp.Or(a.last.Compare(b.last), cmp.Compare(a.name, b.name)) })
	for _, o := range all[:max(len(all)-maxCursors+1, 0)] {
		_ = os.Remove(filepath.Join(e.Dir, o.name))
	}
}
