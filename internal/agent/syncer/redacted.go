package syncer

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/memsvc/memsvc/internal/memory"
)

// askTexts and askBytes bound what one question about redacted texts holds in memory.
const (
	askTexts = 500
	askBytes = 8 << 20
)

// judgeRedacted takes texts that were redacted on the hub out of conflicts and the trash
// (ruling 13.14). It comes right after a pull and before the cursor is saved, so that a
// stop in between forgets none. A redaction says at which paths something went; what went
// is known by asking the hub about the very texts that are kept here, wherever they are
// from: other texts of such a path stay. After a full comparison, which saw no commits,
// all are asked about. What merges start from goes later, once the marker is in its place:
// without it a line that is gone on the hub would look like one that is new here.
func (c *cycle) judgeRedacted(ctx context.Context) error {
	if len(c.redactedAt) == 0 && !c.full {
		return nil
	}
	first := c.s.state.Fresh
	if t := &c.todo; len(t.PutTrash)+len(t.PutConflicts)+len(t.PutIntents) > 0 {
		// What the pull noted is part of what is judged.
		if err := c.save(ctx); err != nil {
			return err
		}
	}
	ask := &question{c: c}
	paths := c.judgedPaths()
	if err := c.askKept(ctx, ask, paths); err != nil {
		return err
	}
	for _, p := range paths {
		if err := c.askLocal(ctx, ask, p); err != nil {
			return err
		}
	}
	if err := ask.answer(ctx); err != nil {
		return err
	}
	if err := c.judgeAside(ctx, ask); err != nil {
		return err
	}
	if first && len(c.redactedAt)+len(c.redacted) == 0 {
		return nil // no state from before, in which one could lie that nothing refers to
	}
	c.dropRedacted(paths)
	return c.save(ctx)
}

// judgeAside removes damaged state that was put aside, if a redacted text may be in it.
// What of it existed nowhere else was taken out when it was put aside.
func (c *cycle) judgeAside(ctx context.Context, ask *question) error {
	before := len(c.redacted)
	put, err := c.s.ports.State.Aside(ctx, func(text []byte) error { return ask.add(ctx, text) })
	if err == nil {
		err = ask.answer(ctx)
	}
	if err == nil && put && (len(c.redactedAt) > 0 || len(c.redacted) > before) {
		err = c.s.ports.State.DropAside(ctx)
	}
	if err != nil {
		return &stepError{step: "judge what was put aside of the sync state", err: err}
	}
	return nil
}

// dropRedacted notes that conflicts whose local text was redacted go, and trash; that
// other mentions in conflicts become "", and that indexes which lost a text keep no lines
// of before in the notes.
func (c *cycle) dropRedacted(paths []memory.Path) {
	st := &c.s.state
	lost := map[memory.Path]bool{}
	for id, x := range st.Conflicts {
		switch {
		case c.redacted[x.Local]:
			lost[x.Path] = true
			c.todo.DropConflicts = append(c.todo.DropConflicts, id)
			continue
		case !c.redacted[x.Hub] && !c.redacted[x.Base]:
			continue
		}
		if c.redacted[x.Hub] {
			x.Hub = ""
		}
		if c.redacted[x.Base] {
			x.Base = ""
		}
		c.todo.PutConflicts = append(c.todo.PutConflicts, x)
	}
	for id, t := range st.Trash {
		if c.redacted[t.ETag] {
			lost[t.Path] = true
			c.todo.DropTrash = append(c.todo.DropTrash, id)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(lost)) {
		c.note(Note{Kind: NoteRedacted, Path: p})
	}
	for _, p := range paths {
		if memory.IsIndex(p) && (c.redactedAt[p] || c.redacted[c.base[p].Text]) {
			c.todo.DropLines = append(c.todo.DropLines, p)
		}
	}
	yes := true
	c.todo.SetRedacting = &yes
}

// forgetRedacted removes from the disk what the state has let go, as long as a redacted
// text may be in it: until nothing waits to be brought into step any more.
func (c *cycle) forgetRedacted(ctx context.Context, complete bool) error {
	st := &c.s.state
	if !st.Redacting {
		return nil
	}
	if err := c.s.ports.State.Forget(ctx); err != nil {
		return &stepError{step: "take redacted texts out of the sync state", err: err}
	}
	if !complete || c.result.Pending+len(c.held)+len(st.Ahead)+len(st.Intents)+len(c.errs) > 0 {
		return nil
	}
	no := false
	return c.s.save(ctx, Update{SetRedacting: &no})
}

// judgedPaths are the paths whose agreed and local texts may have been redacted: where
// the pull told so, or, after a full comparison, where the hub holds another text now.
func (c *cycle) judgedPaths() []memory.Path {
	paths := maps.Clone(c.redactedAt)
	if c.full {
		for p, b := range c.base {
			if c.remote[p].ETag != b.Hub {
				paths[p] = true
			}
		}
		for p, f := range c.remote {
			if c.local[p] != "" && c.local[p] != f.ETag {
				paths[p] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

// askKept asks about the texts of the state.
func (c *cycle) askKept(ctx context.Context, ask *question, paths []memory.Path) error {
	st := &c.s.state
	kept := map[memory.ETag]bool{}
	for _, x := range st.Conflicts {
		kept[x.Local], kept[x.Hub], kept[x.Base] = true, true, true
	}
	for _, t := range st.Trash {
		kept[t.ETag] = true
	}
	for _, i := range st.Intents {
		kept[i.Base] = true
	}
	for _, p := range paths {
		kept[st.Baseline[p].Text] = true
	}
	delete(kept, "")
	for _, e := range slices.Sorted(maps.Keys(kept)) {
		text, err := c.s.textOf(ctx, e)
		if errors.Is(err, ErrNoText) {
			continue
		}
		if err != nil {
			return &stepError{step: "read a kept text", err: err}
		}
		if err := ask.add(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// askLocal asks about the file at p: where it is a redacted text, as an old version is
// that this machine never agreed on, no copy of it is kept when it loses its place.
func (c *cycle) askLocal(ctx context.Context, ask *question, p memory.Path) error {
	if e := c.local[p]; e == "" || c.masked(p) || c.snap.Files[p].Size > memory.MaxMemoryBytes || ask.asked[e] {
		return nil
	}
	text, err := c.s.ports.Local.Read(ctx, p)
	if err != nil {
		return nil //nolint:nilerr // whoever needs the file reads it again, and says what is wrong
	}
	return ask.add(ctx, text)
}

// question gathers texts to ask the hub about.
type question struct {
	c     *cycle
	asked map[memory.ETag]bool
	texts [][]byte
	bytes int
}

func (q *question) add(ctx context.Context, text []byte) error {
	e := memory.ETagOf(text)
	if q.asked[e] || len(text) == 0 {
		return nil
	}
	if q.asked == nil {
		q.asked = map[memory.ETag]bool{}
	}
	q.asked[e] = true
	q.texts, q.bytes = append(q.texts, text), q.bytes+len(text)
	if len(q.texts) < askTexts && q.bytes < askBytes {
		return nil
	}
	return q.answer(ctx)
}

// answer asks, and notes what was redacted. A hub that cannot tell leaves it at what the
// pull itself told.
func (q *question) answer(ctx context.Context) error {
	if len(q.texts) == 0 {
		return nil
	}
	gone, err := q.c.s.ports.Remote.Redacted(ctx, q.texts)
	if err != nil && !errors.Is(err, ErrCannotTell) {
		return &stepError{step: "ask which texts were redacted", err: err}
	}
	for i, text := range q.texts {
		if err == nil && gone[i] {
			q.c.redacted[memory.ETagOf(text)] = true
		}
	}
	q.texts, q.bytes = nil, 0
	return nil
}
