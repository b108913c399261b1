package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/clients/hooks"
	"github.com/memsvc/memsvc/internal/lifecycle/inject"
	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/lifecycle/recall"
	"github.com/memsvc/memsvc/internal/lifecycle/transcript"
	"github.com/memsvc/memsvc/internal/memory"
)

type recallCmd struct {
	Query      string   `required:"" cmdline:"" help:"The prompt that wants memories." placeholder:"TEXT"`
	Dir        []string `cmdline:"" help:"Memory directories, each with its team/ below; else found from the working directory. May be repeated." placeholder:"DIR"`
	Transcript string   `cmdline:"" help:"The conversation so far: what it has had is not offered again." placeholder:"FILE"`
	Limit      int      `cmdline:"" help:"At most so many." default:"5"`
	JSON       bool     `name:"json" help:"Print JSON; see docs/recall.md."`
	Explain    bool     `cmdline:"" help:"Say what was considered, with scores, and what was left out and why."`
}

// recallEntry is what recall --json prints.
type recallEntry struct {
	By       string           `json:"by"` // ranker or model
	Fallback string           `json:"fallback,omitempty"`
	Memories []recalledEntry  `json:"memories"`
	Ranked   []recalledEntry  `json:"ranked,omitempty"`   // with --explain
	Filtered []recallFiltered `json:"filtered,omitempty"` // with --explain
	Gate     string           `json:"gate,omitempty"`     // why the prompt hook does not even look
	Budget   recallBudget     `json:"budget"`
}

// recallBudget is what the prompt hook would make of the memories.
type recallBudget struct {
	Conversation    int      `json:"conversation"` // bytes that the conversation has had
	MaxConversation int      `json:"max_conversation"`
	Turn            int      `json:"turn"` // bytes that the given ones take
	MaxTurn         int      `json:"max_turn"`
	Given           []string `json:"given"`
	Left            []string `json:"left"` // for which no budget is left
}

type recalledEntry struct {
	Ref         string  `json:"ref"`
	File        string  `json:"file"`
	Type        string  `json:"type"`
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Age         string  `json:"age"`
	Score       float64 `json:"score"` // of the ranker; 0 where the model chose
	Fit         float64 `json:"fit"`   // of the ranker: what its threshold is for
}

type recallFiltered struct {
	Ref    string `json:"ref"`
	Reason string `json:"reason"`
}

// Run finds the memories that a prompt needs.
func (x *recallCmd) Run(c *command) error {
	if x.Limit < 1 {
		return usage("--limit %d: want at least 1", x.Limit)
	}
	var scanned []recall.Memory
	stores := map[string]*memories.Store{} // by file
	add := func(s *memories.Store) error {
		found, err := recall.Scan(c.ctx, s.Dir(memory.ScopePrivate), s.Dir(memory.ScopeTeam))
		scanned = append(scanned, found...)
		for _, m := range found {
			stores[m.File] = s
		}
		return err
	}
	off := ""
	for _, d := range x.Dir {
		dir, err := absDir(d)
		if err != nil {
			return err
		}
		if !isDir(dir) {
			return usage("--dir %s: no such directory", dir)
		}
		if err := add(memories.New(dir, filepath.Join(dir, memdir.TeamDir), nil)); err != nil {
			return err
		}
	}
	if len(x.Dir) == 0 {
		p, err := c.place(placeFlags{})
		if err != nil {
			return err
		}
		off = p.Off
		if err := add(c.store(p)); err != nil {
			return err
		}
	}
	req := recall.Request{Prompt: hooks.Ends(x.Query), Limit: x.Limit, Now: c.Now()}
	var used inject.Used
	if x.Transcript != "" {
		w, err := readWindow(expandHome(x.Transcript))
		if err != nil {
			return err
		}
		req.Tools, req.Surfaced = w.Tools, w.Surfaced
		used.Conversation = w.Injected
	}
	selector, err := c.selector()
	if err != nil {
		c.warnNoModel(err)
		selector = recall.Selector{}
	}
	choice, err := selector.Select(c.ctx, scanned, req)
	if err != nil {
		return err
	}
	gate := inject.Gate(x.Query, used.Conversation)
	if off != "" {
		gate = "memory is turned off by " + off
	}
	budget := c.budgetOf(choice, stores, used, gate)
	if x.JSON {
		e := x.entry(c, choice)
		e.Gate, e.Budget = gate, budget
		return printJSON(c.Stdout, e)
	}
	x.print(c, choice)
	x.printBudget(c, gate, budget)
	if x.Explain && choice.Answer != "" {
		fmt.Fprintf(c.Stdout, "\nthe model's answer:\n%s\n", c.models.answerShown(choice.Answer))
	}
	return nil
}

// budgetOf composes the chosen memories as the prompt hook does, and says how far the
// budgets go.
func (c *command) budgetOf(choice recall.Choice, stores map[string]*memories.Store, used inject.Used, gate string) recallBudget {
	b := recallBudget{Conversation: used.Conversation, MaxConversation: inject.MaxConversationBytes, MaxTurn: inject.MaxTurnBytes, Given: []string{}, Left: []string{}}
	if gate != "" {
		return b
	}
	wd, _ := os.Getwd() // without one nothing is checked against a repository
	var sources []inject.Source
	for _, m := range choice.Chosen {
		sources = append(sources, hooks.Sources(c.ctx, stores[m.File], []recall.Memory{m.Memory}, wd)...)
	}
	t := inject.Compose(sources, used, 0, c.Now())
	b.Turn = t.Bytes
	for _, g := range t.Given {
		b.Given = append(b.Given, g.Ref)
	}
	b.Left = append(b.Left, t.Left...)
	return b
}

// printBudget says what the prompt hook would make of the memories: all of it with
// --explain, else only that it would give fewer.
func (x *recallCmd) printBudget(c *command, gate string, b recallBudget) {
	if !x.Explain {
		switch {
		case gate != "":
			fmt.Fprintf(c.Stderr, "memsync-agent: the prompt hook gives nothing here: %s\n", visible(gate))
		case len(b.Left) > 0:
			fmt.Fprintf(c.Stderr, "memsync-agent: the prompt hook gives %d of these; --explain says which, and the budget\n", len(b.Given))
		}
		return
	}
	fmt.Fprintf(c.Stdout, "\nbudget: the conversation has had %d of %d bytes", b.Conversation, b.MaxConversation)
	if gate != "" {
		fmt.Fprintf(c.Stdout, "; the prompt hook gives nothing here: %s\n", visible(gate))
		return
	}
	fmt.Fprintf(c.Stdout, "; the prompt hook gives %d of these, in %d of a turn's %d bytes\n", len(b.Given), b.Turn, b.MaxTurn)
	for _, ref := range b.Left {
		fmt.Fprintf(c.Stdout, "-         left out  %s: no budget is left for it\n", visible(ref))
	}
}

// readWindow reads what of a conversation is still in its context.
func readWindow(file string) (transcript.Window, error) {
	f, size, err := transcript.Open(file)
	if err != nil {
		return transcript.Window{}, err
	}
	defer func() { _ = f.Close() }() // only read
	return transcript.ReadWindow(f, size)
}

func (x *recallCmd) entry(c *command, choice recall.Choice) recallEntry {
	list := func(from []recall.Scored) []recalledEntry {
		out := []recalledEntry{}
		for _, m := range from {
			out = append(out, recalledEntry{
				Ref: m.Ref, File: m.File, Type: string(m.Type), Name: m.Name, Description: m.Description,
				Age: recall.Age(m.Time, c.Now()), Score: m.Score, Fit: m.Fit(),
			})
		}
		return out
	}
	e := recallEntry{By: choice.By, Fallback: choice.Fallback, Memories: list(choice.Chosen)}
	if x.Explain {
		e.Ranked = list(choice.Ranked)
		for _, f := range choice.Filtered {
			e.Filtered = append(e.Filtered, recallFiltered(f))
		}
	}
	return e
}

func (x *recallCmd) print(c *command, choice recall.Choice) {
	for _, m := range choice.Chosen {
		fmt.Fprintf(c.Stdout, "%s  %s", visible(m.File), recall.Age(m.Time, c.Now()))
		if about := strings.TrimSpace(m.Description); about != "" {
			fmt.Fprintf(c.Stdout, "  %s", visible(about))
		}
		fmt.Fprintln(c.Stdout)
	}
	if !x.Explain {
		if len(choice.Chosen) == 0 {
			fmt.Fprintln(c.Stderr, "memsync-agent: no memory fits; --explain says what was considered")
		}
		return
	}
	if len(choice.Chosen) == 0 {
		fmt.Fprintln(c.Stdout, "nothing chosen")
	}
	fmt.Fprintf(c.Stdout, "\nchosen by the %s", choice.By)
	if choice.Fallback != "" {
		fmt.Fprintf(c.Stdout, ", since %s", visible(choice.Fallback))
	}
	fmt.Fprintf(c.Stdout, "; the ranker is silent where its best one fits less than %.2f\n", choice.Needed)
	for _, m := range choice.Ranked {
		mark := " "
		if slices.ContainsFunc(choice.Chosen, func(s recall.Scored) bool { return s.Ref == m.Ref }) {
			mark = "*"
		}
		fmt.Fprintf(c.Stdout, "%s score %5.2f  fit %5.2f  %d in common  %s\n", mark, m.Score, m.Fit(), m.Matched, visible(m.Ref))
	}
	for _, f := range choice.Filtered {
		fmt.Fprintf(c.Stdout, "-         left out  %s: %s\n", visible(f.Ref), visible(f.Reason))
	}
	if n := len(choice.Ranked) + len(choice.Filtered); n == 0 {
		fmt.Fprintln(c.Stdout, "no memory shares a word or a concept with the prompt")
	}
}
