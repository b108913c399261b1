package extract

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/transcript"
)

// writes finds in a conversation what the client itself wrote into the memory directory,
// whichever way: with a tool for files, with a tool or a command of ours, in a shell.
type writes struct {
	dirs []string        // whose files are memories
	done map[string]bool // ids of calls that write, and did not fail as far as it was read
	some bool            // of calls without an id

	looked int // names that were followed on the disk
}

func newWrites(dirs []string) *writes {
	w := &writes{done: map[string]bool{}}
	for _, d := range dirs {
		if d == "" {
			continue
		}
		w.dirs = append(w.dirs, filepath.Clean(d))
		if real := memdir.RealPath(d); real != filepath.Clean(d) {
			w.dirs = append(w.dirs, real)
		}
	}
	return w
}

// Bounds of what is looked at of one call, so that no text of a conversation costs more
// than its length. What is over them could not have been run, or is left as it is written.
const (
	maxScript   = 128 << 10 // bytes of a command; the longest that Linux runs (MAX_ARG_STRLEN)
	maxName     = 4 << 10   // bytes of a file's name; Linux opens no longer one (PATH_MAX)
	maxGrown    = 4 << 10   // bytes that variables may add to one word
	maxExpanded = 256 << 10 // bytes that they may add to all words of a command
	maxShells   = 8         // shells in one another
)

// see looks at a piece of a message. A call that failed wrote nothing. When ctx has ended,
// what it found is of no use.
func (w *writes) see(ctx context.Context, b transcript.Block, cwd string) {
	switch {
	case b.Kind == transcript.ToolResult && b.Error:
		delete(w.done, b.ID)
	case b.Kind == transcript.ToolUse && w.call(ctx, b, cwd):
		if b.ID == "" {
			w.some = true
		} else {
			w.done[b.ID] = true
		}
	}
}

func (w *writes) any() bool { return w.some || len(w.done) > 0 }

// call reports whether a call of a tool writes a memory if it succeeds.
func (w *writes) call(ctx context.Context, b transcript.Block, cwd string) bool {
	for _, ours := range []string{"memory_write", "memory_edit", "memory_delete"} {
		// Clients put the server's name, or more, before it.
		if before, ok := strings.CutSuffix(b.Tool, ours); ok && (before == "" || !isWordByte(before[len(before)-1])) {
			return true
		}
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(b.Input, &fields) != nil {
		var patch string
		return json.Unmarshal(b.Input, &patch) == nil && w.patch(ctx, patch, cwd)
	}
	if slices.ContainsFunc([]string{"content", "contents", "old_string", "oldString", "edits", "file_text", "old_str", "new_str"}, func(k string) bool { return fields[k] != nil }) {
		for _, k := range []string{"file_path", "path", "filePath"} {
			if file := textOf(fields[k]); file != "" && w.holds(absolute(cwd, file)) {
				return true
			}
		}
	}
	for _, k := range []string{"command", "cmd", "script", "patchText", "input"} {
		switch text := textOf(fields[k]); {
		case strings.Contains(text, patchMark):
			if w.patch(ctx, text, cwd) {
				return true
			}
		case text != "" && w.shell(ctx, text, cwd):
			return true
		}
	}
	return false
}

func isWordByte(c byte) bool {
	return c != '_' && (c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9')
}

// textOf is a field that holds a text, or the last of several: a command as a list ends
// with what the shell is to do.
func textOf(field json.RawMessage) string {
	var text string
	if json.Unmarshal(field, &text) == nil {
		return text
	}
	var list []string
	if json.Unmarshal(field, &list) != nil || len(list) == 0 {
		return ""
	}
	if len(list) == 3 && strings.HasSuffix(list[0], "sh") {
		return list[2]
	}
	return strings.Join(list, " ")
}

func absolute(cwd, file string) string {
	if !filepath.IsAbs(file) {
		file = filepath.Join(cwd, file)
	}
	return filepath.Clean(file)
}

// holds reports whether a file lies in one of the directories, or is one.
func (w *writes) holds(file string) bool {
	if !filepath.IsAbs(file) || len(file) > maxName {
		return false
	}
	below := func(file string) bool {
		return slices.ContainsFunc(w.dirs, func(d string) bool {
			rel, err := filepath.Rel(d, file)
			return err == nil && filepath.IsLocal(rel)
		})
	}
	if below(file) || len(w.dirs) == 0 || w.looked >= maxLooks {
		return below(file)
	}
	w.looked++
	return below(filepath.Join(memdir.RealPath(filepath.Dir(file)), filepath.Base(file)))
}

// maxLooks bounds the names of a conversation that are followed where they may be links.
const maxLooks = 1000

// patchMark begins a patch in the form of Codex and others.
const patchMark = "*** Begin Patch"

// patch reports whether a text is a patch of a memory.
func (w *writes) patch(ctx context.Context, text, cwd string) bool {
	for line := range strings.Lines(text) {
		if ctx.Err() != nil {
			return false
		}
		for _, mark := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if file, ok := strings.CutPrefix(line, mark); ok && w.holds(absolute(cwd, strings.TrimSpace(file))) {
				return true
			}
		}
	}
	return false
}

// mentions reports whether a text, such as a script, names one of the directories.
func (w *writes) mentions(text string) bool {
	home, _ := os.UserHomeDir()
	return slices.ContainsFunc(w.dirs, func(d string) bool {
		below, ok := strings.CutPrefix(d, home+"/")
		return strings.Contains(text, d+"/") || ok && home != "" && strings.Contains(text, "~/"+below+"/")
	})
}
