package extract

import (
	"bytes"
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

// The commands of a shell by what they do to the files that they name.
//
//nolint:gochecknoglobals // tables that never change
var (
	// readers change none of them.
	readers = wordSet(`cat bat ls ll dir head tail less more nl grep egrep fgrep rg ag find fd wc stat file diff cmp comm md5sum sha1sum sha256sum shasum
		du df tree readlink realpath basename dirname echo printf test [ [[ cd pushd popd pwd jq yq sort uniq cut tr awk sed od xxd hexdump strings column
		export set local declare unset true false exit return sleep wait which type git for case open code`)
	// writers change files of the directory that they run in, too.
	writers = wordSet(`tee cp mv rm touch truncate install ln dd rsync patch sed perl python python3 node ruby ed ex unlink shred`)
	// wrappers run the command behind them.
	wrappers = wordSet(`sudo doas env time nice nohup command exec builtin xargs if then else elif while until do ! { (`)
)

func wordSet(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}

// shell reports whether a command of a shell changes a memory, as far as can be told from
// how it is written: what it only reads is no reason to take nothing from a conversation.
func (w *writes) shell(ctx context.Context, script, cwd string) bool {
	left := maxExpanded
	return w.shellIn(ctx, script, cwd, maxShells, &left)
}

// shellIn is shell for a shell that may start so many in one another, and in which variables
// may add so many bytes.
func (w *writes) shellIn(ctx context.Context, script, cwd string, shells int, left *int) bool {
	if shells == 0 {
		return false
	}
	script = script[:min(len(script), maxScript)]
	vars := variables{values: map[string]string{}, left: left}
	if home, err := os.UserHomeDir(); err == nil {
		vars.values["HOME"] = home
	}
	for _, c := range commandsOf(script) {
		if ctx.Err() != nil {
			return false
		}
		words := make([]string, 0, len(c.words))
		for _, word := range c.words {
			words = append(words, vars.expand(word))
		}
		for _, to := range c.to {
			if w.holds(absolute(cwd, vars.expand(to))) {
				return true
			}
		}
		for len(words) > 0 {
			name, value, ok := strings.Cut(words[0], "=")
			if ok && isName(name) {
				vars.values[name] = value
			} else if !wrappers[words[0]] {
				break
			}
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		name, args := filepath.Base(words[0]), words[1:]
		switch {
		case name == "cd" || name == "pushd":
			if len(args) > 0 {
				cwd = absolute(cwd, args[len(args)-1])
			}
			if len(cwd) > maxName {
				cwd = "" // no directory
			}
		case name == "memsync-agent":
			if i := slices.Index(args, "memory"); i >= 0 && i+1 < len(args) && slices.Contains([]string{"add", "edit", "rm"}, args[i+1]) {
				return true
			}
		case strings.HasSuffix(name, "sh") && len(args) > 1 && strings.HasPrefix(args[0], "-") && strings.HasSuffix(args[0], "c"):
			if w.shellIn(ctx, args[1], cwd, shells-1, left) {
				return true
			}
		case w.changes(name, args, c.body, cwd):
			return true
		}
	}
	return false
}

// changes reports whether a command changes a memory that it names, or that lies where it
// runs.
func (w *writes) changes(name string, args []string, body, cwd string) bool {
	inPlace := name == "sed" && slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-i") || strings.HasPrefix(a, "--in-place") }) ||
		name == "find" && slices.ContainsFunc(args, func(a string) bool { return a == "-delete" || strings.HasPrefix(a, "-exec") })
	if readers[name] && !inPlace {
		return false
	}
	if w.holds(cwd) && (inPlace || writers[name] && name != "sed") {
		return true
	}
	for _, arg := range args {
		_, value, _ := strings.Cut(arg, "=") // --output=FILE
		if w.holds(absolute(cwd, arg)) && !w.holds(cwd) || value != "" && w.holds(value) || w.mentions(arg) {
			return true
		}
	}
	return w.mentions(body)
}

// mentions reports whether a text, such as a script, names one of the directories.
func (w *writes) mentions(text string) bool {
	home, _ := os.UserHomeDir()
	return slices.ContainsFunc(w.dirs, func(d string) bool {
		below, ok := strings.CutPrefix(d, home+"/")
		return strings.Contains(text, d+"/") || ok && home != "" && strings.Contains(text, "~/"+below+"/")
	})
}

func isName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// variables are what is known of those of a script.
type variables struct {
	values map[string]string
	left   *int // bytes that they may add yet
}

// expand puts what is known of variables, and the home directory, into a word. One that
// would grow past its bound is left as it is written: x=$x$x, said often enough, fills any
// memory, and it need never have been run to stand in a conversation.
func (v variables) expand(word string) string {
	out := word
	if rest, ok := strings.CutPrefix(word, "~"); ok && (rest == "" || rest[0] == '/') && v.values["HOME"] != "" {
		out = v.values["HOME"] + rest
	}
	room, grown := min(maxGrown, *v.left), len(out)-len(word)
	out = os.Expand(out, func(name string) string {
		value, ok := v.values[name]
		if !ok {
			value = "$" + name
		}
		if grown += len(value); grown > room {
			return ""
		}
		return value
	})
	if grown > room {
		return word
	}
	*v.left -= grown
	return out
}

// simple is one command of a script.
type simple struct {
	words []string
	to    []string // files that its output goes to
	body  string   // what stands below it, for it to read (<<EOF), if it can do something with it
}

// commandsOf takes a script apart, well enough to see what is run on what. What is
// commanded inside of $(…) and of backticks counts as commands, too.
func commandsOf(script string) (out []simple) {
	var c simple
	var word bytes.Buffer
	quoted, redirect := false, false
	var here []string // words that end what is to be read
	hereOf := 0
	endWord := func() {
		if word.Len() == 0 && !quoted {
			return
		}
		if redirect {
			c.to = append(c.to, word.String())
		} else {
			c.words = append(c.words, word.String())
		}
		word.Reset()
		quoted, redirect = false, false
	}
	endCommand := func() {
		endWord()
		redirect = false
		if len(c.words)+len(c.to) > 0 {
			out = append(out, c)
		}
		c = simple{}
	}
	for i := 0; i < len(script); i++ {
		switch ch := script[i]; ch {
		case '\\':
			if i++; i < len(script) && script[i] != '\n' {
				word.WriteByte(script[i])
			}
		case '\'', '"':
			quoted = true
			for i++; i < len(script) && script[i] != ch; i++ {
				if ch == '"' && script[i] == '\\' && i+1 < len(script) {
					i++
				}
				word.WriteByte(script[i])
			}
		case ' ', '\t', '\r':
			endWord()
		case '#':
			if word.Len() > 0 || quoted {
				word.WriteByte(ch)
				continue
			}
			for i+1 < len(script) && script[i+1] != '\n' {
				i++
			}
		case '>':
			if n := word.String(); n == "1" || n == "2" {
				word.Reset() // the number of what is redirected
			}
			endWord()
			for i+1 < len(script) && (script[i+1] == '>' || script[i+1] == '|') {
				i++
			}
			redirect = true
		case '<':
			endWord()
			if strings.HasPrefix(script[i:], "<<") && !strings.HasPrefix(script[i:], "<<<") {
				if end := firstWord(strings.TrimLeft(strings.TrimPrefix(script[i+2:], "-"), " \t")); end != "" {
					here, hereOf = append(here, strings.Trim(end, `'"\`)), len(out)
				}
				i++
			}
		case '\n':
			endCommand()
			for _, end := range here {
				body, after := upTo(script[i+1:], end)
				i = len(script) - len(after) - 1
				if hereOf < len(out) && len(out[hereOf].words) > 0 && !readers[out[hereOf].words[0]] && out[hereOf].words[0] != "tee" {
					out[hereOf].body += body
				}
			}
			here = nil
		case ';', '|', '(', ')', '`':
			endCommand()
		case '&':
			switch {
			case redirect && word.Len() == 0: // 2>&1: no file
				for i+1 < len(script) && (script[i+1] >= '0' && script[i+1] <= '9' || script[i+1] == '-') {
					i++
				}
				redirect = false
			case i+1 < len(script) && script[i+1] == '>': // &> is a redirection
			default:
				endCommand()
			}
		default:
			word.WriteByte(ch)
		}
	}
	endCommand()
	return out
}

func firstWord(s string) string {
	if i := strings.IndexAny(s, " \t\r\n;|&<>)"); i >= 0 {
		s = s[:i]
	}
	return s
}

// upTo returns the lines before the one that is end, and what stands behind that.
func upTo(text, end string) (body, after string) {
	at := 0
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == end {
			return text[:at], text[at+len(line):]
		}
		at += len(line)
	}
	return text, ""
}
