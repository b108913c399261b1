package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/secretscan"
)

// localEntry is something that happened to a link on this machine.
type localEntry struct {
	Link string    `json:"link"`
	Dir  string    `json:"dir"`
	Time time.Time `json:"time"`
	Kind string    `json:"kind"` // see syncer.Note
	What string    `json:"what"`
	Path string    `json:"path,omitempty"` // "" is the whole link
	// Text is this machine's index line that gave way.
	Text string `json:"text,omitempty"`
	// Refused are the rules by which the guard refuses Text, which is then left out.
	Refused []string `json:"refused,omitempty"`
	ETag    string   `json:"etag,omitempty"`   // of the text that it is about
	Origin  string   `json:"origin,omitempty"` // who wrote the hub's side
	Trash   string   `json:"trash,omitempty"`  // the id of the text that gave way
	Asks    bool     `json:"asks"`             // wants a person's look
	Todo    string   `json:"todo,omitempty"`
}

// local prints what happened on this machine, the newest first. It reads the state on
// disk, whether a daemon runs or not, and asks no hub.
func (x *logCmd) local(c *command) error {
	links, err := c.trashLinks(x.selectFlags)
	if err != nil {
		return err
	}
	entries := []localEntry{}
	var none error // the path is none in any link
	for _, l := range links {
		var path memory.Path
		if x.Path != "" {
			if path, err = pathIn(l, x.Path); err != nil {
				none = err
				continue
			}
		}
		of, err := c.localEntries(l, path)
		if err != nil {
			return fmt.Errorf("link %s: %w", l.Name(), err)
		}
		entries, none = append(entries, of...), nil
	}
	if none != nil && len(entries) == 0 {
		return none
	}
	slices.SortStableFunc(entries, func(a, b localEntry) int { return b.Time.Compare(a.Time) })
	entries = entries[:min(len(entries), x.Limit)]
	if x.JSON {
		return printJSON(c.Stdout, entries)
	}
	if len(entries) == 0 {
		fmt.Fprintln(c.Stdout, c.none(len(links), "nothing out of the ordinary happened here"))
	}
	for _, e := range entries {
		fmt.Fprint(c.Stdout, visibleText(e.text()))
	}
	return nil
}

// localEntries returns what happened to a link, or to one path of it, the newest first.
func (c *command) localEntries(l Link, path memory.Path) ([]localEntry, error) {
	st, err := c.peek(l)
	if err != nil {
		return nil, err
	}
	g := guard{scanner: secretscan.New(secretscan.Options{}), policy: &policyHolder{}}
	if p, ok := c.state.loadPolicy(l.Hub, l.Team); ok {
		g.policy.set(p)
	}
	var out []localEntry
	for _, n := range slices.Backward(st.Notes) {
		if path != "" && n.Path != path {
			continue
		}
		e := localEntryOf(l, n, st.Trash)
		if e.Text != "" {
			// The line lost its place before anything judged it.
			v, err := g.Check(c.ctx, n.Path, []byte(e.Text))
			if err != nil {
				return nil, err
			}
			e.withhold(v.Violations)
		}
		out = append(out, e)
	}
	return out, nil
}

func localEntryOf(l Link, n syncer.Note, trash map[string]syncer.Trashed) localEntry {
	w := wordsFor(n)
	e := localEntry{
		Link: l.Name(), Dir: l.Dir, Time: n.Time.UTC(), Kind: n.Kind, What: w.what, Path: string(n.Path),
		ETag: string(n.ETag), Origin: n.Origin, Asks: n.Asks(), Todo: w.todo,
	}
	if n.Kind == syncer.NoteIndexLine {
		e.Text = strings.TrimRight(n.Text, "\r\n")
	}
	if !w.trashed {
		return e
	}
	for id, t := range trash {
		if t.Path == n.Path && t.ETag == n.ETag {
			e.Trash = id
			e.Todo = fmt.Sprintf("nothing, or bring back what gave way: 'memsync-agent trash show %[1]s' prints it, 'memsync-agent trash restore %[1]s' writes it", id)
		}
	}
	return e
}

// withhold takes a text out that the guard refuses, and says by which rules.
func (e *localEntry) withhold(violations []memory.Violation) {
	for _, v := range violations {
		e.Text = ""
		if !slices.Contains(e.Refused, v.Rule) {
			e.Refused = append(e.Refused, v.Rule)
		}
	}
}

// text is the entry as a person reads it.
func (e localEntry) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s", e.Time.Local().Format(time.DateTime), e.Link)
	if e.Path != "" {
		fmt.Fprintf(&b, "  %s", visible(e.Path))
	}
	fmt.Fprintf(&b, "\n    %s\n", visible(e.What))
	if e.Origin != "" {
		fmt.Fprintf(&b, "    the hub's text is by %s\n", visible(e.Origin))
	}
	if e.Text != "" {
		fmt.Fprintf(&b, "    this machine's line: %s\n", visible(e.Text))
	}
	if len(e.Refused) > 0 {
		fmt.Fprintf(&b, "    this machine's line is not shown, since the guard refuses it (%s)\n", strings.Join(e.Refused, ", "))
	}
	if e.Todo != "" {
		fmt.Fprintf(&b, "    to do: %s\n", e.Todo)
	}
	return b.String()
}
