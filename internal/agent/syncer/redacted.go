package syncer

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/memsvc/memsvc/internal/agent/reconcile"
	"github.com/memsvc/memsvc/internal/memory"
)

// askTexts and askBytes bound what one question about redacted texts holds in memory.
const (
	askTexts = 500
	askBytes = 8 << 20
)

// asidePath stands for the paths of texts in damaged state, which are not known.
const asidePath = memory.Path("damaged.md")

// judgement is what the hub said of the texts that the state keeps. It is remembered as
// long as LinkState.Redacting, so that waiting for something to come into step neither
// asks nor rewrites anything again; a redaction or a full comparison makes it void.
type judgement struct {
	said map[memory.ETag]bool
	// blind says that the hub cannot tell: what it redacted is known as far as a pull
	// told it.
	blind bool
	// left is what was still referred to when the disk was last rewritten; nil = it was not.
	left []string
}

// judgeRedacted takes texts that were redacted on the hub out of conflicts and the trash
// (ruling 13.14). It comes right after a pull and before the cursor is saved, so that a
// stop in between forgets none. A redaction says at which paths something went; what went
// is known by asking the hub about the very texts that are kept here, wherever they are
// from: other texts of such a path stay. It is asked after a full comparison too, which
// saw no commits, and, as long as something of a redaction waits to be brought into step,
// about what is kept since. What merges start from goes later, once the marker is in its
// place: without it a line that is gone on the hub would look like one that is new here.
func (c *cycle) judgeRedacted(ctx context.Context) error {
	anew := len(c.redactedAt) > 0 || c.full
	if !anew && !c.s.state.Redacting {
		return nil
	}
	if anew {
		c.s.judged = nil
	}
	first := c.s.judged == nil
	if first {
		c.s.judged = &judgement{said: map[memory.ETag]bool{}}
	}
	err := c.judgeKept(ctx, first)
	if err != nil && first {
		c.s.judged = nil
	}
	return err
}

func (c *cycle) judgeKept(ctx context.Context, first bool) error {
	if t := &c.todo; len(t.PutTrash)+len(t.PutConflicts)+len(t.PutIntents) > 0 {
		// What the pull noted is part of what is judged.
		if err := c.save(ctx); err != nil {
			return err
		}
	}
	said := c.s.judged.said
	for e, gone := range said {
		if gone {
			c.redacted[e] = true
		}
	}
	paths := c.judgedPaths()
	if err := c.askKept(ctx, paths); err != nil {
		return err
	}
	for _, p := range paths {
		if err := c.askLocal(ctx, p); err != nil {
			return err
		}
	}
	if err := c.answer(ctx); err != nil {
		return err
	}
	if first {
		if err := c.judgeAside(ctx); err != nil {
			return err
		}
	}
	for e := range c.asked {
		said[e] = false
	}
	for e := range c.redacted {
		said[e] = true
	}
	if len(c.redactedAt)+len(c.redacted) == 0 {
		return nil // nothing is to be taken out
	}
	c.dropRedacted(paths)
	return c.save(ctx)
}

// judgeAside removes damaged state that was put aside, if a redacted text may be in it.
// What of it existed nowhere else was taken out when it was put aside.
func (c *cycle) judgeAside(ctx context.Context) error {
	var all []memory.ETag
	put, err := c.s.ports.State.Aside(ctx, func(text []byte) error {
		all = append(all, memory.ETagOf(text))
		return c.ask(ctx, asidePath, text)
	})
	if err == nil {
		err = c.answer(ctx)
	}
	if err == nil && put && (len(c.redactedAt) > 0 || slices.ContainsFunc(all, func(e memory.ETag) bool { return c.redacted[e] })) {
		err = c.s.ports.State.DropAside(ctx)
	}
	if err != nil {
		return &stepError{step: "judge what was put aside of the sync state", err: err}
	}
	return nil
}

// dropRedacted notes that conflicts whose local text was redacted go, and trash; that
// in others the hub's text becomes the marker and an ancestor "", and that indexes which lost a text keep no lines
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
			// Not "": it was not deleted, and whoever resolves this is to know.
			marker := []byte(memory.RedactionMarker)
			x.Hub = memory.ETagOf(marker)
			c.keepText(marker)
		}
		if c.redacted[x.Base] {
			x.Base = ""
		}
		c.todo.PutConflicts, c.letGo = append(c.todo.PutConflicts, x), true
	}
	for id, t := range st.Trash {
		if c.redacted[t.ETag] {
			lost[t.Path] = true
			c.todo.DropTrash = append(c.todo.DropTrash, id)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(st.Intents)) {
		if i := st.Intents[p]; i.ToHub && c.redacted[i.Base] {
			c.notSent(p) // it cannot come any more, or is gone again
		}
	}
	c.letGo = c.letGo || len(lost) > 0
	for _, p := range slices.Sorted(maps.Keys(lost)) {
		c.note(Note{Kind: NoteRedacted, Path: p})
	}
	for _, p := range paths {
		if memory.IsIndex(p) && (c.redactedAt[p] || c.redacted[c.base[p].Text]) && st.hasLines(p) {
			c.todo.DropLines, c.letGo = append(c.todo.DropLines, p), true
		}
	}
	if !st.Redacting {
		yes := true
		c.todo.SetRedacting = &yes
	}
}

// hasLines reports whether notes hold lines of an index.
func (s *LinkState) hasLines(p memory.Path) bool {
	return slices.ContainsFunc(s.Notes, func(n Note) bool { return n.Kind == NoteIndexLine && n.Path == p && n.Text != LineRedacted })
}

// forgetRedacted removes from the disk what the state has let go of redacted texts, once
// for each time that it let something go, until it refers to none any more.
func (c *cycle) forgetRedacted(ctx context.Context, complete bool) error {
	if !c.s.state.Redacting {
		c.s.judged = nil
		return nil
	}
	j := c.s.judged
	if j == nil {
		return nil // this cycle did not come to judge
	}
	left := c.redactedLeft()
	if j.left == nil || c.letGo || !slices.Equal(j.left, left) {
		if err := c.s.ports.State.Forget(ctx); err != nil {
			return &stepError{step: "take redacted texts out of the sync state", err: err}
		}
		j.left = left
	}
	if !complete || len(left)+c.result.Pending+len(c.errs) > 0 {
		return nil
	}
	no := false
	if err := c.s.save(ctx, Update{SetRedacting: &no}); err != nil {
		return err
	}
	c.s.judged = nil
	return nil
}

// redactedLeft names the redacted texts that the state still refers to, in order: what
// merges start from where the marker is not in its place. Where the hub cannot tell they
// may be at every such path. It is never nil.
func (c *cycle) redactedLeft() []string {
	st, left := &c.s.state, []string{}
	for e := range st.Texts() {
		if c.redacted[e] {
			left = append(left, string(e))
		}
	}
	if c.s.judged.blind {
		for p := range st.Ahead {
			left = append(left, string(p))
		}
		for p := range st.Intents {
			left = append(left, string(p))
		}
	}
	slices.Sort(left)
	return left
}

// judgedPaths are the paths whose agreed and local texts may have been redacted: where
// the pull told so or what it told before waits, or, after a full comparison, where the
// hub holds another text now.
func (c *cycle) judgedPaths() []memory.Path {
	paths := maps.Clone(c.redactedAt)
	for p := range c.s.state.Ahead {
		paths[p] = true
	}
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
func (c *cycle) askKept(ctx context.Context, paths []memory.Path) error {
	st := &c.s.state
	kept := map[memory.ETag][]memory.Path{}
	for _, x := range sortedConflicts(st.Conflicts) {
		for _, e := range []memory.ETag{x.Local, x.Hub, x.Base} {
			kept[e] = append(kept[e], x.Path)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(st.Trash)) {
		t := st.Trash[id]
		kept[t.ETag] = append(kept[t.ETag], t.Path)
	}
	for _, p := range slices.Sorted(maps.Keys(st.Intents)) {
		e := st.Intents[p].Base
		kept[e] = append(kept[e], p)
	}
	for _, p := range paths {
		e := st.Baseline[p].Text
		kept[e] = append(kept[e], p)
	}
	delete(kept, "")
	for _, e := range slices.Sorted(maps.Keys(kept)) {
		if _, judged := c.s.judged.said[e]; judged {
			continue
		}
		text, err := c.s.textOf(ctx, e)
		if errors.Is(err, ErrNoText) {
			continue
		}
		if err != nil {
			return &stepError{step: "read a kept text", err: err}
		}
		for _, p := range kept[e] {
			if err := c.ask(ctx, p, text); err != nil {
				return err
			}
		}
		if !c.asked[e] {
			c.s.judged.said[e] = false // it stays here, until something else is redacted
		}
	}
	return nil
}

// askLocal asks about the file at p: where it is a redacted text, as an old version is
// that this machine never agreed on, no copy of it is kept when it loses its place.
func (c *cycle) askLocal(ctx context.Context, p memory.Path) error {
	if e := c.local[p]; e == "" || c.masked(p) || c.snap.Files[p].Size > memory.MaxMemoryBytes || c.asked[e] {
		return nil
	}
	if _, judged := c.s.judged.said[c.local[p]]; judged {
		return nil
	}
	text, err := c.s.ports.Local.Read(ctx, p)
	if err != nil {
		return nil //nolint:nilerr // whoever needs the file reads it again, and says what is wrong
	}
	return c.ask(ctx, p, text)
}

// ask gathers texts to ask the hub about, each once in a cycle. The hub has the key of the
// fingerprint that names a text, and could guess a short one by it: so only such texts are
// named that may leave this machine, or of which the hub surely had or has taken away one
// at this path.
func (c *cycle) ask(ctx context.Context, p memory.Path, text []byte) error {
	e := memory.ETagOf(text)
	if c.asked[e] || len(text) == 0 {
		return nil
	}
	if !c.hubHad(e) && !c.redactedAt[p] && c.remote[p].ETag != memory.ETagOf([]byte(memory.RedactionMarker)) {
		v, err := c.s.ports.Guard.Check(ctx, p, text)
		if err != nil && interrupted(ctx, err) {
			return &stepError{step: "check", path: p, err: err}
		}
		if err != nil || len(v.Violations) > 0 {
			return nil
		}
	}
	if c.asked == nil {
		c.asked = map[memory.ETag]bool{}
	}
	c.asked[e] = true
	c.asking, c.askingBytes = append(c.asking, text), c.askingBytes+len(text)
	if len(c.asking) < askTexts && c.askingBytes < askBytes {
		return nil
	}
	return c.answer(ctx)
}

// hubHad reports whether the hub's history surely had a text, as far as this machine
// knows it: then its fingerprint tells nothing new.
func (c *cycle) hubHad(e memory.ETag) bool {
	if c.had == nil {
		st, had := &c.s.state, map[memory.ETag]bool{}
		for _, b := range st.Baseline {
			had[b.Text], had[b.Hub] = true, true
		}
		for _, x := range st.Conflicts {
			had[x.Hub], had[x.Base], had[x.Local] = true, true, had[x.Local] || x.Kept
		}
		for _, t := range st.Trash {
			had[t.ETag] = had[t.ETag] || t.Shared() || t.Reason == trashLost
		}
		for _, seen := range c.passed {
			for e := range seen {
				had[e] = true
			}
		}
		c.had = had
	}
	return c.had[e] || c.redacted[e]
}

// answer asks, and notes what was redacted. A hub that cannot tell leaves it at what the
// pull itself told.
func (c *cycle) answer(ctx context.Context) error {
	if len(c.asking) == 0 {
		return nil
	}
	asking := c.asking
	c.asking, c.askingBytes = nil, 0
	gone, err := c.s.ports.Remote.Redacted(ctx, asking)
	if errors.Is(err, ErrCannotTell) && c.s.judged != nil {
		c.s.judged.blind = true
	}
	if err != nil && !errors.Is(err, ErrCannotTell) {
		for _, text := range asking {
			delete(c.asked, memory.ETagOf(text))
		}
		return &stepError{step: "ask which texts were redacted", err: err}
	}
	for i, text := range asking {
		if err == nil && gone[i] {
			c.redacted[memory.ETagOf(text)] = true
		}
	}
	return nil
}

// askLosing asks in one go about the texts that the actions may take from their place, so
// that no copy is kept of one that was redacted. Where the question fails these paths
// wait for a later cycle, and others do not; it is put once in a cycle then.
func (c *cycle) askLosing(ctx context.Context, actions []reconcile.Action) error {
	var paths []memory.Path
	err := c.askErr
	for _, a := range actions {
		texts, err2 := c.losing(ctx, a)
		if err2 != nil {
			return err2
		}
		open := false
		for _, text := range texts {
			open = open || len(text) > 0 && !c.answered(text)
			if err == nil {
				err = c.ask(ctx, a.Path, text)
			}
		}
		if open {
			paths = append(paths, a.Path)
		}
	}
	if err == nil {
		err = c.answer(ctx)
	}
	if err == nil || interrupted(ctx, err) {
		return err
	}
	if c.askErr == nil {
		c.askErr = err
		c.errs = append(c.errs, err)
	}
	for _, p := range paths {
		c.unasked[p] = true
	}
	return nil
}

// answered reports whether nothing needs to be asked about a text in this cycle any more.
func (c *cycle) answered(text []byte) bool {
	e := memory.ETagOf(text)
	return c.redacted[e] || c.asked[e]
}

// losing returns the texts that an action may take from their place here, and what they
// were made on.
func (c *cycle) losing(ctx context.Context, a reconcile.Action) ([][]byte, error) {
	at, f := a.Path, c.remote[a.Path]
	switch a.Kind {
	case reconcile.PullDelete:
	case reconcile.Pull, reconcile.Merge:
		from, moved := c.moves[a.Path]
		if moved = moved && a.Local == ""; moved {
			at = from
		}
		stale := a.Kind == reconcile.Pull && c.stale[a.Path]
		if f.Content == nil || memory.IsIndex(a.Path) || !moved && !stale && a.Kind == reconcile.Pull {
			return nil, nil
		}
	default:
		return nil, nil
	}
	if c.local[at] == "" || c.snap.Files[at].Size > memory.MaxMemoryBytes {
		return nil, nil
	}
	local, err := c.s.ports.Local.Read(ctx, at)
	if err != nil || memory.ETagOf(local) != c.local[at] {
		return nil, ctx.Err() // whoever carries the action out reads it again, and says what is wrong
	}
	if a.Kind == reconcile.PullDelete {
		return [][]byte{local}, nil
	}
	ancestorAt := at
	if _, known := c.base[at]; !known {
		ancestorAt = a.Path
	}
	base, hasBase := c.ancestor(ctx, ancestorAt)
	if a.Kind == reconcile.Merge && at == a.Path && reconcile.MergeTexts(a.Path, base, hasBase, local, f.Content).OK {
		return nil, nil
	}
	return [][]byte{base, local}, nil
}

// wasRedacted reports whether a text that is about to lose its place was redacted, and
// asks about what it was made on too. Then no copy of it is kept: whoever has one brought
// it back, under another name perhaps, or nobody could look at its path, when the
// redaction itself was long worked off here.
func (c *cycle) wasRedacted(ctx context.Context, p memory.Path, text, base []byte) (bool, error) {
	err := c.ask(ctx, p, base)
	if err == nil {
		err = c.ask(ctx, p, text)
	}
	if err == nil {
		err = c.answer(ctx)
	}
	return c.redacted[memory.ETagOf(text)], err
}

// heldRedacted reports whether the hub refused a text at this path because it had been
// redacted.
func (s *Syncer) heldRedacted(p memory.Path, e memory.ETag) bool {
	h, held := s.state.Held[p]
	return held && h.ETag == e && slices.ContainsFunc(h.Violations, func(v memory.Violation) bool { return v.Rule == memory.RuleRedacted })
}
