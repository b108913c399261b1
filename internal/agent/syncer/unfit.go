package syncer

import (
	"slices"
	"strconv"

	"github.com/memsvc/memsvc/internal/memory"
)

// unfit returns why a text of the hub is not put on the disk, whatever hub took it: it
// is no text, it hides some of itself from whoever reads it, or it is about a person.
// What is merely wrong is pulled, so that somebody can mend it.
func unfit(p memory.Path, content []byte) []memory.Violation {
	return slices.DeleteFunc(memory.CheckContent(p, content).Violations, func(v memory.Violation) bool {
		switch v.Rule {
		case memory.RuleContentUTF8, memory.RuleContentNUL, memory.RuleContentBidi, memory.RuleContentTag, memory.RuleTypeUser:
			return false
		}
		return true
	})
}

// unfitPath is how a path that this program does not take is named and remembered: quoted,
// so that it can be shown, is no path, and is never one by accident.
func unfitPath(raw string) memory.Path {
	if len(raw) > memory.MaxPathBytes {
		raw = raw[:memory.MaxPathBytes] + "…"
	}
	return memory.Path(strconv.Quote(raw))
}

// maxUnfit bounds how many paths are remembered so: a hub that sends more is no hub of ours.
const maxUnfit = 1000

// holdUnfit notes that the hub has something at a path that this program cannot hold, or,
// if it is gone there, that there is nothing to say any more. Everything else goes on.
func (c *cycle) holdUnfit(u memory.Unfit) {
	p := unfitPath(u.Path)
	if u.Deleted {
		delete(c.held, p)
		return
	}
	if _, known := c.held[p]; !known {
		n := 0
		for _, h := range c.held {
			if h.By == HeldByAgent {
				n++
			}
		}
		if n >= maxUnfit {
			return
		}
	}
	c.hold(Held{Path: p, By: HeldByAgent, Violations: []memory.Violation{{
		Path: string(p), Rule: ruleHubPath, Message: "this agent cannot hold a file of this name; it stays on the hub; update the agent, or have the file renamed there",
	}}})
}

// keepUnfit holds on to what was unfit before, until a commit takes it away.
func (c *cycle) keepUnfit() {
	for p, h := range c.s.state.Held {
		if h.By == HeldByAgent {
			c.held[p] = h
		}
	}
}

// fitNow reports whether a path that was unfit is one by now: this program was updated.
func (c *cycle) fitNow() bool {
	for _, h := range c.s.state.Held {
		if h.By != HeldByAgent {
			continue
		}
		if raw, err := strconv.Unquote(string(h.Path)); err == nil {
			if _, err := memory.ParsePath(raw); err == nil {
				return true
			}
		}
	}
	return false
}
