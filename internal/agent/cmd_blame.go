package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
)

type blameCmd struct {
	selectFlags
	Path string `arg:"" help:"The memory."`
	JSON bool   `name:"json" help:"Print JSON; see docs/cli.md."`
}

// blameLine is a line and the commit that it came with.
type blameLine struct {
	Line      int       `json:"line"`
	Text      string    `json:"text"`
	Revision  int64     `json:"revision"`
	Time      time.Time `json:"time"`
	Principal string    `json:"principal"`
	Machine   string    `json:"machine,omitempty"`
	Client    string    `json:"client,omitempty"`
}

// version is one text of a memory's history.
type version struct {
	commit memory.Commit
	text   []byte
}

// Run prints each line of a memory with who wrote it, in which revision (13.22).
func (x *blameCmd) Run(c *command) error {
	return c.ask(x.selectFlags, func(ctx context.Context, cl *client.Client, l Link) error {
		path, err := pathIn(l, x.Path)
		if err != nil {
			return err
		}
		history, err := versionsOf(ctx, cl, l.Key(), path)
		if err != nil {
			return err
		}
		lines := blame(history)
		if x.JSON {
			return printJSON(c.Stdout, lines)
		}
		for _, b := range lines {
			who := strings.TrimPrefix(b.Principal, "token:")
			if b.Machine != "" {
				who += "@" + b.Machine
			}
			fmt.Fprintf(c.Stdout, "%5d  %-24.24s %s  %s\n", b.Revision, visible(who), b.Time.Local().Format(time.DateOnly), visibleText(b.Text))
		}
		return nil
	})
}

// versionsOf returns the texts of a memory that the hub still keeps, oldest first, over
// renames; the last one is the present.
func versionsOf(ctx context.Context, cl *client.Client, key memory.ProjectKey, path memory.Path) ([]version, error) {
	if _, err := cl.Get(ctx, key, path, 0); err != nil {
		return nil, err
	}
	var out []version
	name := path
	var pages client.Pages
	for page := ""; ; {
		commits, next, err := cl.Log(ctx, key, path, 500, page)
		if err != nil {
			return nil, err
		}
		for _, commit := range commits {
			i := slices.IndexFunc(commit.Changes, func(ch memory.AppliedChange) bool { return ch.Path == name && ch.Kind != memory.Delete })
			if i < 0 {
				continue
			}
			m, err := cl.Get(ctx, key, name, commit.Revision)
			switch {
			case errors.Is(err, memory.ErrRevisionCompacted), errors.Is(err, memory.ErrNotFound):
				next = "" // older texts are not kept any more
			case err != nil:
				return nil, err
			default:
				// A marker stands where a redaction put it. Earlier versions hold it in
				// place of a text that nobody knows any more.
				if commit.Changes[i].Kind == memory.Put && len(out) > 0 && memory.IsRedactionMarker(m.Content) {
					m.Content = nil
				}
				out = append(out, version{commit, m.Content})
			}
			if from := commit.Changes[i].RenamedFrom; from != "" {
				name = from
			}
		}
		if page, err = pages.Next(next, len(commits)); err != nil {
			return nil, err
		}
		if page == "" {
			slices.Reverse(out)
			return out, nil
		}
	}
}

// blame gives every line of the last version to the version that it came with. Lines
// of the oldest version that is kept are its own, whoever wrote them before.
func blame(history []version) []blameLine {
	lines := []blameLine{}
	var before [][]byte
	for _, v := range history {
		now := splitLines(v.text)
		next := make([]blameLine, 0, len(now))
		old := 0
		for _, op := range diffLines(before, now) {
			switch op.kind {
			case '-':
				old++
			case ' ':
				next = append(next, lines[old])
				old++
			default:
				a := v.commit.Author
				next = append(next, blameLine{
					Text: strings.TrimRight(string(op.text), "\r\n"), Revision: int64(v.commit.Revision), Time: v.commit.Time.UTC(),
					Principal: a.Principal, Machine: a.Machine, Client: a.Client,
				})
			}
		}
		lines, before = next, now
	}
	for i := range lines {
		lines[i].Line = i + 1
	}
	return lines
}
