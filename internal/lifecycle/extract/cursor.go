package extract

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
		wholefile.MakeRoom(e.Dir, cursorSuffix, maxCursors)
	}
	if err := wholefile.Replace(file, []byte(uuid+"\n"), 0o600); err != nil {
		return fmt.Errorf("extract: keep the cursor: %w", err)
	}
	return nil
}
