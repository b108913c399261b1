package transcript

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Marker begins every block of text that memsync-agent puts into a conversation. What
// was injected is read back from the transcript by it, so that a compaction, which
// drops the text, by itself makes the memory eligible again (SPEC 6.3).
const Marker = "<memsvc-memory "

// Mark returns the opening tag of an injected memory without its closing bracket: more
// attributes may follow. ref names the memory; bytes is how long the whole block is,
// which is what the conversation's budget counts.
func Mark(ref string, size int) string {
	return Marker + `ref="` + ref + `" bytes="` + strconv.Itoa(size) + `"`
}

// Window is what the part of a conversation that is still in the context says: from the
// end of the transcript back to the last compaction.
type Window struct {
	Tools    []string // used recently and successfully, the latest first, each once
	Failed   []string // used recently, the last time without success
	Surfaced []string // refs of the memories that were injected, each once
	Injected int      // bytes that were injected, together
	Compact  bool     // a compaction ends the window
	// LastPrompt is when a person typed last, however much tools did since: of a window in
	// which nobody typed anything the compaction that ends it. Zero if that is not known.
	LastPrompt time.Time
	// Known is that the lines have the form that is read here; what a transcript of another
	// form says of its conversation is nothing.
	Known bool
}

// recentTools bounds how many calls of tools count as recent.
const recentTools = 30

// maxUnknown bounds how many lines are looked at to know a transcript's form: clients write
// some for themselves between those of a conversation.
const maxUnknown = 100

// boundary is what the line of a compaction holds; such lines are short.
const boundary = `compact_boundary`

const maxBoundaryLine = 16 << 10

// maxWindowLine bounds the lines that a window is read from: what hooks inject is short, and
// a longer line is a tool's output or a picture. A tool whose result is so long says nothing.
const maxWindowLine = 4 << 20

// ReadWindow reads the window of a transcript of size bytes. Lines of sub-agents do not
// count: their context is another one. It holds maxWindowLine and little more: a person
// waits for it.
func ReadWindow(r io.ReaderAt, size int64) (Window, error) {
	var (
		w Window
		// A conversation of many megabytes is looked through for these before a line is
		// parsed; each begins with a character that is rare in one, so that looking is fast.
		marker  = []byte(Marker[strings.IndexByte(Marker, '-'):])
		bound   = []byte(boundary[strings.IndexByte(boundary, '_'):])
		use     = []byte(`_use"`)
		result  = []byte(`_result"`)
		person  = []byte(`"user"`)
		results = map[string]bool{} // by call: it failed
		seen    = map[string]bool{}
		calls   int
		unknown int
	)
	for l, err := range backwardWithin(r, size, maxWindowLine) {
		if err != nil {
			return Window{}, err
		}
		if l.Text == nil {
			continue
		}
		if len(l.Text) < maxBoundaryLine && bytes.Contains(l.Text, bound) {
			if line, ok := Parse(l.Text); ok && line.Compaction && !line.Sidechain {
				w.Compact, w.Known = true, true
				if w.LastPrompt.IsZero() {
					w.LastPrompt = line.Time
				}
				break
			}
		}
		if !w.Known && unknown < maxUnknown {
			unknown++
			line, ok := Parse(l.Text)
			w.Known = ok && line.Message && (line.Kind == User || line.Kind == Assistant)
		}
		prompt := w.LastPrompt.IsZero() && bytes.Contains(l.Text, person) && !bytes.Contains(l.Text, result)
		injected := bytes.Contains(l.Text, marker)
		tools := calls < recentTools && (bytes.Contains(l.Text, use) || bytes.Contains(l.Text, result))
		if !injected && !tools && !prompt {
			continue
		}
		line, ok := Parse(l.Text)
		if !ok || line.Sidechain {
			continue
		}
		if prompt && line.Kind == User && !line.Meta && slices.ContainsFunc(line.Blocks, func(b Block) bool { return b.Kind == Text }) {
			w.LastPrompt = line.Time
		}
		for _, b := range slices.Backward(line.Blocks) {
			switch {
			case b.Kind == ToolResult:
				results[b.ID] = b.Error
			case b.Kind == ToolUse && calls < recentTools:
				calls++
				w.tool(b.Tool, results, b.ID)
			case b.Kind == Text && injected && (line.Kind == User || line.Kind == Attachment || line.Kind == System):
				w.inject(b.Text, seen)
			}
		}
	}
	return w, nil
}

// tool counts a call, whose result was read before it. One without a result is under
// way, or was refused: it says nothing.
func (w *Window) tool(name string, results map[string]bool, id string) {
	failed, known := results[id]
	if !known || slices.Contains(w.Tools, name) || slices.Contains(w.Failed, name) {
		return
	}
	if failed {
		w.Failed = append(w.Failed, name)
	} else {
		w.Tools = append(w.Tools, name)
	}
}

// inject counts the blocks that Mark began in a text.
func (w *Window) inject(text string, seen map[string]bool) {
	for {
		_, rest, ok := strings.Cut(text, Marker+`ref="`)
		if !ok {
			return
		}
		text = rest
		ref, rest, ok := strings.Cut(rest, `" bytes="`)
		digits, _, closed := strings.Cut(rest, `"`)
		n, err := strconv.ParseUint(digits, 10, 31)
		if !ok || !closed || err != nil || ref == "" || strings.ContainsAny(ref, "\"\n") {
			continue // somebody else's words
		}
		w.Injected += int(n)
		if !seen[ref] {
			seen[ref] = true
			w.Surfaced = append(w.Surfaced, ref)
		}
	}
}
