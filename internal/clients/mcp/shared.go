package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
)

type historyIn struct {
	Memory string `json:"memory,omitempty" jsonschema:"team/file.md; all of the team's memories unless given"`
	Limit  int    `json:"limit,omitempty" jsonschema:"at most so many commits, 1 to 100; 20 unless given"`
}

type historyOut struct {
	Commits []Commit `json:"commits" jsonschema:"the newest first"`
}

type restoreIn struct {
	Memory   string `json:"memory" jsonschema:"team/file.md"`
	Revision int64  `json:"revision" jsonschema:"what it was then, as memory_history says"`
}

type doneOut struct {
	Done string `json:"done"`
}

type conflictIn struct {
	ID     string `json:"id" jsonschema:"as sync_status says"`
	Offset int    `json:"offset,omitempty" jsonschema:"begin at this byte of both texts; 'next' of the answer before"`
}

type resolveIn struct {
	ID     string `json:"id" jsonschema:"as sync_status says"`
	Take   string `json:"take" jsonschema:"ours, theirs or merged"`
	Merged string `json:"merged,omitempty" jsonschema:"the text that holds what is right in both; with take merged"`
}

type statusIn struct{}

func (t tools) addShared(s *sdk.Server) {
	add(s, t, "sync_status", "Sync status", "How the sharing of team memories is: what is refused and why, and open conflicts; conflict_read shows one, conflict_resolve ends it.", reads(), t.status)
	add(s, t, "memory_history", "History", "The commits that changed the team's memories, or one of them: revision, author, time.", reads(), t.history)
	add(s, t, "memory_restore", "Restore a memory", "Bring a team memory back to what it was at a revision, by a new commit.", changes(), t.restore)
	add(s, t, "conflict_read", "Read a conflict", "Both texts of an open conflict, of this machine or of another.", reads(), t.conflict)
	add(s, t, "conflict_resolve", "Resolve a conflict", "End a conflict by taking the text that lost its place, the hub's, or a merged one.", changes(), t.resolve)
}

// errNotShared is what tools about sharing answer where nothing is shared.
var errNotShared = errors.New("the team directory of this project is not shared; a person can link it: memsync-agent link")

func (t tools) status(ctx context.Context, p Project, _ statusIn) (Status, error) {
	out := Status{Refused: []string{}, Conflicts: []OpenRef{}}
	if p.Shared == nil {
		return out, nil
	}
	st, err := p.Shared.Status(ctx)
	if err != nil {
		return out, err
	}
	if st.Refused == nil {
		st.Refused = out.Refused
	}
	st.Refused = few(st.Refused, maxHistory)
	if st.Conflicts == nil {
		st.Conflicts = out.Conflicts
	}
	st.Shared = true
	return st, nil
}

// maxHistory bounds one answer, maxChanges what is said of one commit in it.
const (
	maxHistory = 100
	maxChanges = 20
)

func (t tools) history(ctx context.Context, p Project, in historyIn) (historyOut, error) {
	out := historyOut{Commits: []Commit{}}
	if p.Shared == nil {
		return out, errNotShared
	}
	switch {
	case in.Limit == 0:
		in.Limit = 20
	case in.Limit < 1 || in.Limit > maxHistory:
		return out, fmt.Errorf("limit: want 1 to %d", maxHistory)
	}
	path := ""
	if in.Memory != "" {
		var err error
		if path, err = teamPath(in.Memory); err != nil {
			return out, err
		}
	}
	commits, err := p.Shared.History(ctx, path, in.Limit)
	for _, c := range commits {
		c.Changes = few(c.Changes, maxChanges)
		out.Commits = append(out.Commits, c)
	}
	return out, err
}

func (t tools) restore(ctx context.Context, p Project, in restoreIn) (doneOut, error) {
	if p.Shared == nil {
		return doneOut{}, errNotShared
	}
	path, err := teamPath(in.Memory)
	if err != nil {
		return doneOut{}, err
	}
	if in.Revision < 1 {
		return doneOut{}, errors.New("revision: revisions count from 1; memory_history lists them")
	}
	if err := p.Shared.Restore(ctx, path, in.Revision); err != nil {
		return doneOut{}, err
	}
	return doneOut{Done: fmt.Sprintf("%s is what it was at revision %d", in.Memory, in.Revision)}, nil
}

func (t tools) conflict(ctx context.Context, p Project, in conflictIn) (ConflictTexts, error) {
	if p.Shared == nil {
		return ConflictTexts{}, errNotShared
	}
	c, err := p.Shared.Conflict(ctx, in.ID)
	if err != nil {
		return ConflictTexts{}, err
	}
	longest := max(len(c.Ours), len(c.Theirs))
	if in.Offset < 0 || in.Offset > 0 && in.Offset >= longest {
		return ConflictTexts{}, fmt.Errorf("offset: the longer text has %d bytes; begin at 0, or where 'next' of the answer before says", longest)
	}
	const half = maxPageBytes / 2
	if longest > in.Offset+half {
		c.Next = in.Offset + half
	}
	c.Ours, c.Theirs = window(c.Ours, in.Offset, half), window(c.Theirs, in.Offset, half)
	return c, nil
}

func (t tools) resolve(ctx context.Context, p Project, in resolveIn) (doneOut, error) {
	if p.Shared == nil {
		return doneOut{}, errNotShared
	}
	switch {
	case in.Take != "ours" && in.Take != "theirs" && in.Take != "merged":
		return doneOut{}, errors.New("take: use ours, theirs or merged")
	case (in.Take == "merged") != (in.Merged != ""):
		return doneOut{}, errors.New("merged: give the text with take merged, and only then")
	}
	if in.Merged != "" {
		if texts, err := p.Shared.Conflict(ctx, in.ID); err == nil {
			in.Merged = asWritten(texts.Ours, asWritten(texts.Theirs, in.Merged))
		}
	}
	done, err := p.Shared.Resolve(ctx, in.ID, in.Take, in.Merged)
	if err != nil {
		return doneOut{}, err
	}
	return doneOut{Done: "resolved with " + in.Take + "; " + done}, nil
}

// teamPath takes the path below team/ from what a tool calls a memory.
func teamPath(name string) (string, error) {
	path, ok := strings.CutPrefix(name, memdir.TeamDir+"/")
	if !ok {
		return "", errors.New("memory: only the team's have a history; give team/file.md")
	}
	return path, nil
}
