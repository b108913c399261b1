package notes

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/extract"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/transcript"
)

// Facts are what a transcript tells by itself, without a model.
type Facts struct {
	Tokens    int // of everything said, as Tokens counts them
	ToolCalls int
	// QuietTurn says that the last turn ended without a call of a tool.
	QuietTurn bool

	prompts  []said
	answers  []said
	files    map[string]*file
	commands []command
	errors   []failure
	calls    map[string]call // under way, by id
	callsNow int             // since the last prompt
}

type said struct {
	at   time.Time
	text string
	// what was done for a prompt
	edits, runs int
}

type file struct {
	name         string
	edits, reads int
	last         int // order
}

type command struct {
	text string
	ok   bool
}

type failure struct{ what, how, mended string }

type call struct {
	tool, target string
}

// ReadFacts reads the lines of a conversation; those of sub-agents do not count.
func ReadFacts(lines func(yield func(transcript.Raw, error) bool), cwd string) (Facts, error) {
	f := Facts{files: map[string]*file{}, calls: map[string]call{}}
	for l, err := range lines {
		if err != nil {
			return Facts{}, err
		}
		line, ok := transcript.Parse(l.Text)
		if !ok || line.Sidechain {
			continue
		}
		f.line(&line, cwd)
	}
	f.QuietTurn = f.callsNow == 0 && len(f.prompts) > 0
	return f, nil
}

func (f *Facts) line(line *transcript.Line, cwd string) {
	for _, b := range line.Blocks {
		f.Tokens += Tokens(b.Text)
		b.Text = ends(b.Text)
		switch {
		case b.Kind == transcript.ToolUse:
			f.Tokens += len(b.Input) / 4
			f.call(b, cwd)
		case b.Kind == transcript.ToolResult:
			f.result(b)
		case b.Kind != transcript.Text:
		case line.Kind == transcript.Assistant:
			f.answers = append(f.answers, said{at: line.Time, text: b.Text})
		case line.Kind == transcript.User && !line.Meta:
			if text := extract.Typed(b.Text); text != "" {
				f.prompts = append(f.prompts, said{at: line.Time, text: text})
				f.callsNow = 0
			}
		}
	}
}

// What of one text is looked at, in bytes: what a person pasted or a tool printed may be many
// megabytes long, and no notes hold more of it than a few lines.
const (
	textHead = 48 << 10
	textTail = 16 << 10
)

// ends returns a text, or its two ends if it is a very long one.
func ends(text string) string {
	if len(text) <= textHead+textTail {
		return text
	}
	return model.Head(text, textHead) + "\n…\n" + model.Tail(text, textTail)
}

func (f *Facts) call(b transcript.Block, cwd string) {
	f.ToolCalls++
	f.callsNow++
	var in struct {
		FilePath string `json:"file_path"`
		Path     string `json:"path"`
		Command  string `json:"command"`
	}
	if json.Unmarshal(b.Input, &in) != nil {
		return
	}
	if in.FilePath == "" {
		in.FilePath = in.Path
	}
	in.FilePath, in.Command = ends(in.FilePath), ends(in.Command)
	c := call{tool: b.Tool, target: in.Command}
	if in.Command == "" && in.FilePath != "" {
		name := in.FilePath
		if rel, err := filepath.Rel(cwd, name); filepath.IsAbs(name) && err == nil && filepath.IsLocal(rel) {
			name = rel
		}
		c.target = name
		if f.files[name] == nil {
			f.files[name] = &file{name: name}
		}
		one := f.files[name]
		one.last = f.ToolCalls
		switch b.Tool {
		case "Edit", "Write", "MultiEdit", "NotebookEdit", "write_file", "replace", "edit", "write":
			one.edits++
			if n := len(f.prompts); n > 0 {
				f.prompts[n-1].edits++
			}
		default:
			one.reads++
		}
	} else if n := len(f.prompts); n > 0 && in.Command != "" {
		f.prompts[n-1].runs++
	}
	f.calls[b.ID] = c
}

func (f *Facts) result(b transcript.Block) {
	c, known := f.calls[b.ID]
	if !known {
		return
	}
	delete(f.calls, b.ID)
	isCommand := c.target != "" && f.files[c.target] == nil
	if isCommand {
		f.commands = append(f.commands, command{kept(c.target), !b.Error})
	}
	what := kept(c.tool + " " + c.target)
	if b.Error {
		f.errors = append(f.errors, failure{what: what, how: kept(firstLine(b.Text))})
		return
	}
	// The same thing that failed before and now does not was mended in between.
	for i := range f.errors {
		if f.errors[i].what == what && f.errors[i].mended == "" {
			f.errors[i].mended = "it works since"
		}
	}
}

// kept is what is kept of a command or an error until secrets are left out.
func kept(s string) string { return model.Head(strings.Join(strings.Fields(s), " "), maxKept) }

// maxKept bounds what is kept of a command or an error, in bytes, and maxLine and maxHow
// what is shown of them, in characters.
const (
	maxKept = 4000
	maxLine = 160
	maxHow  = 200
)

// How much of what the rules find goes into a section; lines are counted, not tokens, so
// that a section reads well.
const (
	maxFiles    = 30
	maxCommands = 20
	maxErrors   = 20
	maxWork     = 60
)

// Fill puts the facts into notes that have our sections; a section that a person's own
// template does not have is left out.
func (f *Facts) Fill(d *Document) {
	if len(f.prompts) > 0 {
		d.Set("Session Title", oneLine(firstLine(f.prompts[0].text), 80))
		d.Set("Task specification", f.task())
	}
	d.Set("Current State", f.state())
	d.Set("Files and Functions", f.fileList(func(string) bool { return true }, maxFiles))
	d.Set("Workflow", f.workflow())
	d.Set("Errors & Corrections", f.mistakes())
	d.Set("Codebase and System Documentation", f.fileList(isDocument, maxFiles))
	d.Set("Learnings", f.learnings())
	if n := len(f.answers); n > 0 {
		d.Set("Key results", quoted(f.answers[n-1].text, 1500))
	}
	d.Set("Worklog", f.worklog())
}

func (f *Facts) state() string {
	var b strings.Builder
	if n := len(f.prompts); n > 0 {
		fmt.Fprintf(&b, "Last asked: %s\n", oneLine(f.prompts[n-1].text, 400))
	}
	if n := len(f.answers); n > 0 {
		fmt.Fprintf(&b, "Last said: %s\n", oneLine(f.answers[n-1].text, 400))
	}
	for _, e := range f.errors {
		if e.mended == "" {
			fmt.Fprintf(&b, "Still failing: %s\n", oneLine(e.what, maxLine))
		}
	}
	return lastLines(b.String(), 12)
}

func (f *Facts) task() string {
	var b strings.Builder
	for i, p := range f.prompts {
		if i > 0 && len([]rune(p.text)) < 40 && i < len(f.prompts)-1 {
			continue // go on, yes, thanks
		}
		b.WriteString("- " + oneLine(p.text, 500) + "\n")
	}
	return b.String()
}

func (f *Facts) fileList(want func(string) bool, most int) string {
	var list []*file
	for _, one := range f.files {
		if want(one.name) {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b *file) int {
		if a.edits != b.edits {
			return b.edits - a.edits
		}
		return b.last - a.last
	})
	var b strings.Builder
	for _, one := range list[:min(len(list), most)] {
		did := "read"
		if one.edits > 0 {
			did = fmt.Sprintf("changed %d times", one.edits)
			if one.edits == 1 {
				did = "changed"
			}
		}
		fmt.Fprintf(&b, "- %s: %s\n", one.name, did)
	}
	return b.String()
}

// isDocument knows files that describe a system rather than being it.
func isDocument(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".md", ".rst", ".adoc", ".proto", ".sql", ".graphql":
		return true
	}
	return false
}

func (f *Facts) workflow() string {
	var b strings.Builder
	seen := map[string]bool{}
	var list []string
	for _, c := range slices.Backward(f.commands) {
		text := oneLine(c.text, maxLine)
		if c.ok && !seen[text] && len(list) < maxCommands {
			seen[text] = true
			list = append(list, text)
		}
	}
	for _, c := range slices.Backward(list) {
		b.WriteString("- `" + strings.ReplaceAll(c, "`", "'") + "`\n")
	}
	return b.String()
}

// corrections begin what a person says when something was not right.
func isCorrection(text string) bool {
	low := strings.ToLower(strings.TrimSpace(text))
	for _, p := range []string{"no,", "no.", "no ", "don't", "do not", "stop", "wrong", "that's not", "that is not", "instead", "actually", "undo", "revert", "不对", "不要", "别", "错了", "不是", "应该", "改回"} {
		if strings.HasPrefix(low, p) {
			return true
		}
	}
	return false
}

func (f *Facts) mistakes() string {
	var lines []string
	for _, e := range f.errors {
		line := "- " + oneLine(e.what, maxLine) + ": " + oneLine(e.how, maxHow)
		if e.mended != "" {
			line += " (" + e.mended + ")"
		}
		lines = append(lines, line)
	}
	for _, p := range f.prompts {
		if isCorrection(p.text) {
			lines = append(lines, "- corrected: "+oneLine(p.text, 300))
		}
	}
	if over := len(lines) - maxErrors; over > 0 {
		lines = lines[over:]
	}
	return strings.Join(lines, "\n")
}

func (f *Facts) learnings() string {
	var list []extract.Said
	for _, p := range f.prompts {
		list = append(list, extract.Said{Person: true, Text: p.text, Time: p.at})
	}
	var b strings.Builder
	for _, c := range extract.Explicit(list) {
		b.WriteString("- " + oneLine(c.Description, 300) + "\n")
	}
	return b.String()
}

func (f *Facts) worklog() string {
	var lines []string
	for _, p := range f.prompts {
		when := ""
		if !p.at.IsZero() {
			when = p.at.Format("2006-01-02 15:04") + " "
		}
		line := "- " + when + oneLine(p.text, 120)
		var did []string
		if p.edits > 0 {
			did = append(did, fmt.Sprintf("%d edits", p.edits))
		}
		if p.runs > 0 {
			did = append(did, fmt.Sprintf("%d commands", p.runs))
		}
		if len(did) > 0 {
			line += " (" + strings.Join(did, ", ") + ")"
		}
		lines = append(lines, line)
	}
	if over := len(lines) - maxWork; over > 0 {
		lines = append([]string{fmt.Sprintf("- (%d earlier ones)", over)}, lines[over:]...)
	}
	return strings.Join(lines, "\n")
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// quoted keeps the lines of a text, cut to n characters.
func quoted(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], "\n")
}
