package hooks

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/lifecycle/inject"
	"github.com/memsvc/memsvc/internal/lifecycle/recall"
	"github.com/memsvc/memsvc/internal/lifecycle/transcript"
)

// prompt finds the memories that a prompt needs, and tells what the team changed since
// the last one. It ends the lookup of an older prompt, which is not asked any more.
func (h *handler) prompt(ctx context.Context) (Answer, error) {
	p, err := h.engine.Project(ctx, h.in.CWD, "")
	if err != nil {
		return Answer{}, err
	}
	turn := rand.Text()
	c, err := h.conversation(turn)
	if err != nil {
		return Answer{}, err
	}
	news := h.beside(ctx, p, c.LastPrompt)
	if p.Off || p.NoRecall || inject.Gate(h.in.Prompt, c.used.Conversation) != "" {
		h.endLookup(ctx)
		return Answer{Context: news}, nil
	}
	req := recall.Request{Prompt: Ends(h.in.Prompt), Tools: c.Tools, Surfaced: c.Surfaced, Limit: inject.MaxTurnMemories, Now: h.now}
	chosen, err := h.choose(ctx, p, req, turn)
	if err != nil {
		return Answer{Context: news}, err
	}
	text := h.give(ctx, p, chosen, c.used, inject.MaxContextChars-inject.Chars(news)-1, turn)
	return Answer{Context: join(news, text)}, nil
}

// choose returns the memories for a prompt: those that the model of a daemon chose, if it
// was fast enough, else those of the project's own selector.
func (h *handler) choose(ctx context.Context, p Project, req recall.Request, turn string) ([]recall.Memory, error) {
	refs, state := h.beginLookup(ctx, p, req, turn)
	scanned, err := recall.Scan(ctx, p.Personal, p.Team)
	if err != nil {
		return nil, err
	}
	if state == LookupDone {
		return pick(scanned, refs, req.Surfaced), nil
	}
	selector := p.Selector
	if state != LookupNone {
		selector = recall.Selector{} // the model is being asked, or was, and time was lost already
	}
	choice, err := selector.Select(ctx, scanned, req)
	if err != nil {
		return nil, err
	}
	var chosen []recall.Memory
	for _, s := range choice.Chosen {
		chosen = append(chosen, s.Memory)
	}
	return chosen, nil
}

// pick returns the memories of these names, in their order, but those that the
// conversation has seen.
func pick(scanned []recall.Memory, refs, surfaced []string) []recall.Memory {
	var out []recall.Memory
	for _, ref := range refs {
		i := slices.IndexFunc(scanned, func(m recall.Memory) bool { return m.Ref == ref })
		if i >= 0 && !slices.Contains(surfaced, ref) {
			out = append(out, scanned[i])
		}
	}
	return out
}

// give writes memories for a conversation, as far as the budgets go, and notes that it
// has had them.
func (h *handler) give(ctx context.Context, p Project, chosen []recall.Memory, used inject.Used, maxChars int, turn string) string {
	t := inject.Compose(Sources(ctx, p.Store, chosen, h.in.CWD), used, maxChars, h.now)
	// A memory is worth more than the note of it: without that it may come again.
	_ = h.engine.Record().Add(h.session(), turn, t.Given)
	return t.Text
}

// conversation is what a conversation has had.
type conversation struct {
	transcript.Window
	used inject.Used
}

// conversation reads what the conversation has had, and in this turn, from its transcript
// and from our own record. Where the transcript is of the known form, it alone says what
// was before this turn, so that a compaction counts even if nobody told us of it. One
// without a transcript has had nothing but what we noted: clients write it late.
func (h *handler) conversation(turn string) (c conversation, err error) {
	if f, size, err := transcript.Open(h.in.TranscriptPath); h.in.TranscriptPath != "" && err == nil {
		defer func() { _ = f.Close() }() // only read
		if c.Window, err = transcript.ReadWindow(f, size); err != nil {
			return c, err
		}
	}
	noted, inTurn, err := h.engine.Record().Read(h.session(), turn)
	if err != nil {
		noted, inTurn = nil, nil // a memory that comes again does little harm
	}
	if c.Known {
		noted = inTurn
	}
	for _, g := range noted {
		if !slices.Contains(c.Surfaced, g.Ref) {
			c.Surfaced = append(c.Surfaced, g.Ref)
			c.Injected += g.Bytes
		}
	}
	c.used = inject.Used{Conversation: c.Injected, Memories: len(inTurn)}
	for _, g := range inTurn {
		c.used.Turn += g.Bytes
	}
	return c, nil
}

// session names the conversation; "" if the client does not.
func (h *handler) session() string { return cmp.Or(h.in.SessionID, h.in.TranscriptPath) }

// compacted is told that what the conversation was given has left its context.
func (h *handler) compacted(context.Context) (Answer, error) {
	return Answer{}, h.engine.Record().Forget(h.session())
}

// join puts texts below one another, the first ones first. One that does not fit into a
// context any more is left out whole, so that no wrapper stays open.
func join(texts ...string) string {
	all := ""
	for _, t := range texts {
		t = strings.TrimRight(t, "\n")
		if all != "" && t != "" {
			t = "\n\n" + t
		}
		if inject.Chars(all)+inject.Chars(t) <= inject.MaxContextChars {
			all += t
		}
	}
	return all
}

// listed wraps lines, as many as fit into room inject.Chars, and says with more how many are
// left out: left, and those that do not fit. Of what is oldest first the first ones go.
func listed(about string, lines []string, oldestFirst bool, left, room int, more func(int) string) string {
	for {
		text := strings.Join(lines, "")
		if left > 0 {
			text += more(left)
		}
		data := inject.Data(about, text)
		switch {
		case inject.Chars(data) <= room:
			return data
		case len(lines) == 0:
			return ""
		case oldestFirst:
			lines = lines[1:]
		default:
			lines = lines[:len(lines)-1]
		}
		left++
	}
}

// middle cuts a text to n characters on one line, out of its middle: where a path begins and
// what it or a message ends with tell more.
func middle(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n/2]) + "…" + string(r[len(r)-(n-n/2-1):])
}

// short cuts a text to n characters on one line.
func short(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
